"""Updates of a parameter by one op, where eager mode may run it so.

In: an op of `core.ops.optimizer_steps`, its tensors and numbers. Out: True once they are written.
Called by Adam and SGD; False sends them to their ops one by one, whose bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tracejit
from tracejit.core.eager import dispatch
from tracejit.core.eager.recording import active
from tracejit.core.memory import CPU
from tracejit.core.ops.overriding import asking
from tracejit.core.ops.record import Op

_FLOATS = (tracejit.float32, tracejit.float64)


def may_run(tensors: Sequence[Any], numbers: Sequence[Any]) -> bool:
    """Return True if one op may update these: nothing records, nobody overrides, types agree."""
    if active.tracer is not None or asking.modes or dispatch.is_replaced():
        return False
    for number in numbers:
        if type(number) is not float and type(number) is not int:
            return False
    p = tensors[0]
    kind, shape = p._dtype, p._shape
    if not shape or kind not in _FLOATS:
        return False
    for x in tensors:
        if type(x) is not tracejit.Tensor and type(x) is not tracejit.nn.Parameter:
            return False
        if x._dtype is not kind or x._shape != shape or x._device is not CPU:
            return False
    return True


def update(op: Op, tensors: Sequence[Any], numbers: tuple[float, ...], attributes: dict[str, Any],
           written: tuple[int, ...]) -> bool:
    """Write the op's results to the tensors at these places, in the order of results. Return False
    where nothing was done."""
    from tracejit.jit.runtime import eager_updates  # which brings in lowering

    return eager_updates.update(op, tensors, numbers, attributes, written)
