"""Ops of eager mode that a kernel computes. Library kernels are programs of one node, one for each
set of shapes; fused ops go to `eager_fused`.

In: an op of `Op.library` or `Op.fused`, its operands and attributes. Out: fresh tensors, or None
where NumPy must compute the op. Called by `eager.dispatch`, in which `tracejit/__init__.py`
installs `run`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tracejit.config import flags
from tracejit.core.eager.state import TensorState, make
from tracejit.core.memory import CPU, address
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.ir.graph import Graph
from tracejit.jit.lowering.library import library_of
from tracejit.jit.lowering.lower import lower
from tracejit.jit.runtime import eager_fused, eager_large
from tracejit.jit.runtime.binding import Binding
from tracejit.jit.runtime.executable import Executable

_KEPT = 512


class _Program(NamedTuple):
    executable: Executable
    binding: Binding
    results: tuple[TensorType, ...]


_programs: dict[tuple, _Program | None] = {}


def run(op: Op, operands: tuple, attributes: dict) -> Any:
    """Return the results of `op` as `eager.dispatch` would make them; None where NumPy must compute
    them."""
    if op.fused:
        return eager_fused.run(op, operands, attributes)
    if op.exact:
        return None if attributes else eager_large.run(op, operands)
    key: tuple = (op, *attributes.values())
    for x in operands:
        if not isinstance(x, TensorState) or x._device is not CPU:
            return None
        key += (x._dtype, x._shape)
    try:
        program = _programs[key]
    except KeyError:
        # In a recording, the text of a kernel that no cache has would count as the user's code.
        program = unwatched(_made, key, op, operands, attributes)
    except TypeError:  # an attribute is not hashable
        return None
    if program is None or flags.check_nans:
        return None
    arrays = [np.ascontiguousarray(x.array) for x in operands]
    stored = program.executable.run(program.binding, [address(a) for a in arrays])
    made = [
        make(storage, 0, kind.shape, None, kind.dtype, CPU)
        for storage, kind in zip(stored, program.results)
    ]
    return made[0] if len(op.outputs) == 1 else tuple(made)


def _made(key: tuple, op: Op, operands: tuple, attributes: dict) -> _Program | None:
    graph = Graph(op.name)
    for k, x in enumerate(operands):
        graph.input(TensorType(x._dtype, tuple(x._shape), CPU), f"x{k}")
    found = op(*graph.inputs, **attributes)
    graph.outputs = list(found) if type(found) is tuple else [found]
    program = None
    if library_of(graph.nodes[-1]) is not None:
        executable = Executable(lower(graph))
        results = tuple(v.type for v in graph.outputs)
        program = _Program(executable, executable.bind({}), results)
    if len(_programs) >= _KEPT:
        _programs.clear()
    _programs[key] = program
    return program
