"""Fused ops of eager mode: each runs as one compiled program, with sizes as symbols.

In: an op of `Op.fused`, its operands and attributes. Out: fresh tensors, or None where NumPy must
compute the op. Called by `eager_kernels`, for eager dispatch, the interpreter and host calls.

A program always computes such an op in float32 and float64, however small its operands are. So bits
depend on no threshold, no number of threads, and not on what is compiled already. Kernels come from
the ordinary cache. Nothing is locked here: threads that build the same program do so twice.

Contiguous dimensions are taken together first, so one program serves all ranks: "flat" ops see one
dimension, "rows" ops see what lies before, along and after their dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.config import flags
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState, of_array
from tracejit.core.memory import CPU
from tracejit.core.ops.composite import has_fused_types
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import TensorType, float64
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.ir.graph import Graph
from tracejit.jit.runtime import progress
from tracejit.jit.runtime.compiled_graph import BoundGraph, CompiledGraph
from tracejit.jit.runtime.executable import ProgramError

NUMBER = TensorType(float64, ())  # a Python float: an input, so all values share one program
_KEPT_CALLS = 4096  # sets of shapes
_KEPT_PROGRAMS = 512


# Time that NumPy has spent on ops whose bits are those of their kernels, by op, types and ranks.
_spent: dict[tuple, float] = {}
WORTH = 50_000.0  # microseconds that a compile takes


def pays(op: Op, operands: Sequence[Any], count: int) -> bool:
    """Return True once NumPy has spent as long on such operands as a compile takes. It runs `count`
    ops of one pass each."""
    tensors = [x for x in operands if isinstance(x, TensorState)]
    key = (op, *[(x._dtype, len(x._shape)) for x in tensors])
    each = 3 + max(math.prod(x._shape) for x in tensors) / 1000
    spent = _spent[key] = _spent.get(key, 0.0) + count * each
    return spent >= WORTH


class Call:
    """Op at given shapes: its program, bound to them."""

    __slots__ = ("segment", "bound", "tensors")

    def __init__(self, segment: CompiledGraph, bound: BoundGraph, tensors: tuple[int, ...]):
        self.segment, self.bound, self.tensors = segment, bound, tensors


_calls: dict[tuple, Call | None] = {}
_programs: dict[tuple, list[CompiledGraph]] = {}


def run(op: Op, operands: tuple, attributes: dict) -> Any:
    """Return the results of `op` as `eager.dispatch` would make them; None where NumPy must compute
    them, or tell what is wrong with the call."""
    for x in operands:
        if isinstance(x, TensorState) and x._device is not CPU:
            return None
    key = _key(op, operands, attributes)
    try:
        call = _calls[key]
    except KeyError:
        if op.fused == "exact" and not pays(op, operands, len(op.operands)):
            return None
        # In a recording, the text of a kernel that no cache has would count as the user's code.
        call = unwatched(_made, key, op, operands, attributes)
    except TypeError:  # an attribute is not hashable
        return None
    if call is None or flags.check_nans:
        return None
    inputs = [operands[k] for k in call.tensors]
    for k, x in enumerate(inputs):
        if type(x) is not float and x._strides is not None:
            inputs[k] = of_array(np.ascontiguousarray(x.array))
    try:
        made = call.segment.run(inputs, call.bound)
    except (ProgramError, MemoryError):  # the ops one by one raise what users know
        return None
    return made[0] if len(op.outputs) == 1 else tuple(made)


def _key(op: Op, operands: tuple, attributes: dict) -> tuple:
    key: tuple = (op, *attributes.values())
    for x in operands:
        if isinstance(x, TensorState):
            key += (x._dtype, x._shape)
        else:
            key += (float,) if type(x) is float else (type(x), x)
    return key


def known_call(op: Op, operands: tuple, attributes: dict) -> Call | None:
    """Return the program that `run` has found before for tensors on the CPU like these."""
    return _calls.get(_key(op, operands, attributes))


def _made(key: tuple, op: Op, operands: tuple, attributes: dict) -> Call | None:
    call = None
    if has_fused_types(op, operands) and all(math.prod(x._shape) for x in operands
                                   if isinstance(x, TensorState)):
        with progress.compiling(op.name, "passes"):
            call = bound(op, operands, attributes)
    if len(_calls) >= _KEPT_CALLS:
        _calls.clear()
    _calls[key] = call
    return call


def bound(op: Op, operands: tuple, attributes: dict, written: tuple[int, ...] = ()) -> Call | None:
    """Return the op's program bound to these shapes; None where the call is wrong.

    written  operands whose memory receives the results, one each; none: results are fresh
    """
    # The result types are asked of tensors: a recording would take these for its inputs.
    tracer, active.tracer = active.tracer, None
    try:
        return _bound(op, operands, attributes, written)
    finally:
        active.tracer = tracer


def _bound(op: Op, operands: tuple, attributes: dict, written: tuple[int, ...]) -> Call | None:
    shapes, static = _together(op, operands, attributes)
    given = [NUMBER if type(x) is float else x if shape is None else
             TensorType(x._dtype, shape, CPU) for x, shape in zip(operands, shapes)]
    try:
        types = op.infer(*operands, **attributes)
        segment, sizes = _program(op, given, static, written)
    except Exception:  # shapes that do not fit: the ops one by one say so
        return None
    bound = BoundGraph(segment, sizes)
    if not written:
        results = (types,) if type(types) is TensorType else types
        bound.outputs = [(tuple(t.shape), t.dtype, CPU) for t in results]
    return Call(segment, bound, tuple([k for k, x in enumerate(given) if type(x) is TensorType]))


def _together(op: Op, operands: tuple, attributes: dict) -> tuple[list[Any], dict]:
    """Return the shapes of the tensors among the operands, with dimensions taken together, and the
    attributes for these."""
    shapes: list[Any] = [x._shape if isinstance(x, TensorState) else None for x in operands]
    known = [s for s in shapes if s]
    if op.fused in ("flat", "exact") or op.exact:
        if all(s == known[0] for s in known):  # numbers beside them have no dimension
            shapes = [(math.prod(s),) if s else s for s in shapes]
        return shapes, attributes
    if op.fused != "rows":
        return shapes, attributes
    whole = known[0]
    dims = attributes["dims"] if "dims" in attributes else (attributes["dim"],)
    first, last = dims[0], dims[-1] + 1
    along, after = math.prod(whole[first:last]), math.prod(whole[last:])
    taken = (math.prod(whole[:first]), along, *((after,) if after > 1 else ()))
    static = {**attributes, **({"dims": (1,)} if "dims" in attributes else {"dim": 1})}
    return [None if s is None else taken if s == whole else (math.prod(s),) for s in shapes], static


def _program(op: Op, given: Sequence[Any], attributes: dict, written: tuple[int, ...]
             ) -> tuple[CompiledGraph, dict]:
    """Return a program for types like these, and the values of its sizes."""
    key = (op, written, *attributes.values(), *[
        (x.dtype, len(x.shape)) if type(x) is TensorType else x for x in given])
    shapes = [x.shape for x in given if type(x) is TensorType]
    known = _programs.get(key, [])
    for segment in known:
        sizes = _sizes(segment, shapes)
        if all(guard.holds(sizes) for guard in segment.guards):
            return segment, sizes
    segment = CompiledGraph(_graph(op, given, attributes, written), "compiled", "fast")
    if len(_programs) >= _KEPT_PROGRAMS:
        _programs.clear()
    _programs[key] = [*known, segment]
    return segment, _sizes(segment, shapes)


def _graph(op: Op, given: Sequence[Any], attributes: dict, written: tuple[int, ...]) -> Graph:
    graph = Graph(op.name)
    operands = []
    for x in given:
        if type(x) is not TensorType:
            operands.append(x)
            continue
        k = len(graph.inputs)
        shape = []
        for d, size in enumerate(x.shape):
            shape.append(graph.scope.symbol(size, f"s{k}_{d}"))
            graph.symbol_sources[f"s{k}_{d}"] = ("size", k, d)
        value = graph.input(TensorType(x.dtype, tuple(shape), CPU), f"x{k}")
        value.is_weak = x is NUMBER
        operands.append(value)
    found = apply(op, tuple(operands), attributes)
    results = list(found) if type(found) is tuple else [found]
    if written:
        graph.writes = [(operands[k], result) for k, result in zip(written, results)]
    else:
        graph.outputs = results
    return graph


def _sizes(segment: CompiledGraph, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    values = {name: shapes[k][d]
              for name, (_, k, d) in segment.graph.symbol_sources.items()}
    segment.graph.scope.complete(values)
    return values
