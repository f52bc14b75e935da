"""Identity of two numbers or texts, as far as a replay can know it.

In: the operands of `is`, or of `in` where the item is nan, in recorded code. Runtime numbers, sizes
and pending values stand for plain ones. Out: Python's answer. Different values are different
objects, and small ints are one object each: guards on values can tell that. They cannot tell which
of two equal floats some variable holds: such a call is not replayed, and says so (C1). Called by
`control`.
"""

from __future__ import annotations

from typing import Any

from tracejit.jit.capture.concretize import concretize
from tracejit.jit.capture.looking import class_of, is_a

_CONSTANTS: Any = (int, float, complex, str, bytes)
_ONE_OBJECT = range(-5, 257)  # ints that CPython makes once
_REASON = "the function asks if two equal constants are one object"


def same_constant(tracer: Any, one: Any, other: Any) -> bool:
    """Return `one is other`; add a break if a replay could not know the answer."""
    kind = class_of(one)
    if kind not in _CONSTANTS or class_of(other) is not kind:
        return one is other
    left, right = concretize(one), concretize(other)
    if not _equal(left, right):
        return False
    if kind is int and left in _ONE_OBJECT:
        return True
    tracer.add_break_later(_REASON, "compare with `==`")
    return one is other or left is right


def contains_nan(tracer: Any, item: Any, container: Any) -> bool:
    """Return `item in container`, for an item that equals nothing, not even itself. Add a break."""
    tracer.add_break_later(_REASON, "use `math.isnan`")
    plain_item = concretize(item)
    if is_a(container, (list, tuple)):
        return any(concretize(x) is plain_item or x == plain_item for x in container)
    return plain_item in container


def _equal(one: Any, other: Any) -> bool:
    return one == other or one != one and other != other
