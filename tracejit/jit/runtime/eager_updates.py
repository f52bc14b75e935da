"""Updates of parameters in place: an optimizer's op as one program over its operands.

In: an op of `core.ops.optimizer_steps`, tensors of one type and shape, and numbers. Out: True once
the results are in the memory of operands; False where the ops one by one have to run. Called by
`optim/at_once.py`.

The arithmetic is exact, so results have the bits of NumPy. The program runs once the ops one by one
have taken the time of a compile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracejit.config import flags
from tracejit.core.eager.recording import active
from tracejit.core.eager.views import AliasFamily
from tracejit.core.eager.writing import bump_version
from tracejit.core.memory.readers import about_to_write
from tracejit.core.ops.record import Op
from tracejit.jit.runtime import eager_fused, progress
from tracejit.jit.runtime.executable import ProgramError

_KEPT = 4096  # sets of sizes
_EACH = 20.0  # microseconds that the ops one by one take beside their passes over elements
_calls: dict[tuple, eager_fused.Call | None] = {}
_spent: dict[tuple, float] = {}


def update(op: Op, tensors: Sequence[Any], numbers: tuple[float, ...], attributes: dict,
           written: tuple[int, ...]) -> bool:
    """Write the results of `op` into tensors in place. Return False where nothing was done.

    written  places of these tensors, in the order of results
    """
    if active.grad_enabled or active.inference or flags.check_nans or not _plain(tensors):
        return False
    for k in written:
        if not _may_be_written(tensors[k]):
            return False
    call = _call(op, (*tensors, *numbers), attributes, written)
    if call is None:
        return False
    for k in written:
        about_to_write(tensors[k]._storage)
    try:
        call.segment.run((*tensors, *numbers), call.bound)
    except (ProgramError, MemoryError):
        return False
    for k in written:
        bump_version(tensors[k])
    return True


def _plain(tensors: Sequence[Any]) -> bool:
    """Return True if tensors of one type are contiguous and share no memory."""
    kind, shape, starts = tensors[0]._dtype, tensors[0]._shape, []
    count = kind.itemsize
    for size in shape:
        count *= size
    for x in tensors:
        storage = x._storage
        if storage is None or x._strides is not None or not storage.nbytes:
            return False
        starts.append(storage.ptr + x._offset * kind.itemsize)
    starts.sort()
    return count > 0 and all(b - a >= count for a, b in zip(starts, starts[1:]))


def _may_be_written(x: Any) -> bool:
    """Return True if no error stands against a write in place, and nobody stands for the tensor."""
    view = x._view
    if view is not None and (type(view) is not AliasFamily or view.inference or view.stand_ins):
        return False
    return not x._storage.readonly


def _pays(op: Op, p: Any, attributes: dict) -> bool:
    """Return True once the ops one by one have taken as long as a compile."""
    key = (op, p._dtype, *attributes.values())
    cost = _EACH + len(op.operands) * math.prod(p._shape) / 1000
    spent = _spent[key] = _spent.get(key, 0.0) + cost
    return spent >= eager_fused.WORTH


def _call(op: Op, operands: tuple, attributes: dict, written: tuple[int, ...]
          ) -> eager_fused.Call | None:
    key = (op, operands[0]._dtype, operands[0]._shape, *attributes.values())
    try:
        return _calls[key]
    except KeyError:
        if not _pays(op, operands[0], attributes):
            return None
    with progress.compiling(op.name, "passes"):
        call = eager_fused.bound(op, operands, attributes, written)
    if len(_calls) >= _KEPT:
        _calls.clear()
    _calls[key] = call
    return call
