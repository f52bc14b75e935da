"""Gradients that only the engine holds, to which others are added in place.

In: nodes of `select` and `slice`, and gradients that arrive at a node one after the other. Out:
their sums. Called by the engine. A loop over the rows of a tensor would otherwise make, and add, as
many tensors of its size as it has rows.

Elements are the same bits as those of sums of wholes. In these a part has 0.0 around it, and
-0.0 + 0.0 is 0.0: what may be -0.0 is added to 0.0 before the next part comes. Only two -0.0
add up to another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import Unsaved
from tracejit.core.eager.state import is_ordinary
from tracejit.core.memory import CPU
from tracejit.core.ops.slicing import part
from tracejit.core.ops.types import float32, float64

_FLOATS = (float32, float64)
_WHOLE = (Ellipsis,)
_LARGE = 1 << 13  # elements from which on a sum in place saves time


class Gathered:
    """Gradient that others are added to.

    whole   the tensor, which only the engine holds
    number  of the result whose gradient it is
    signed  NumPy's index of what may be -0.0; empty: nothing
    """

    __slots__ = ("whole", "number", "signed")

    def __init__(self, whole: Any, number: int, signed: tuple = _WHOLE):
        self.whole, self.number, self.signed = whole, number, signed

    def add(self, grad: Any, index: tuple = _WHOLE) -> None:
        """Add a gradient of the same shape, or that of a part."""
        array = self.whole.array
        with np.errstate(all="ignore"):
            if self.signed and index is not _WHOLE:
                self._normalise(array, index, grad.array)
            else:
                array[index] += grad.array

    def _normalise(self, array: Any, index: tuple, grad: Any) -> None:
        """Add a part, and 0.0 to what may be -0.0 around it."""
        signed, place = array[self.signed], array[index]
        total = place + grad
        signed += 0.0
        place[...] = total
        self.signed = index if np.may_share_memory(signed, place) else ()

    def takes(self, grad: Any) -> bool:
        """Return True if a gradient of the same shape can be added in place."""
        whole = self.whole
        return (is_ordinary(grad) and grad._dtype is whole._dtype and grad._shape == whole._shape
                and grad._device is CPU and grad._storage is not None)


def index_of(node: Any, grad: Any) -> tuple | None:
    """Return NumPy's index of the part that a node looks at; None where it is not plain."""
    if node.operands is None or node.symbolic or active.inference or not is_ordinary(grad):
        return None
    whole, given = node.operands[0], node.outputs[0]
    if type(whole) is not Unsaved or type(given) is not Unsaved or whole.dtype not in _FLOATS:
        return None
    if grad._dtype is not whole.dtype or grad._shape != given.shape or grad._device is not CPU:
        return None
    at = node.attributes
    if "index" in at:
        return part(at["dim"], at["index"])
    return part(at["dim"], slice(at["start"], at["stop"], at["step"]))


def may_receive(whole: Any) -> bool:
    """Return True if others can be added in place to a fresh tensor."""
    return (is_ordinary(whole) and whole._view is None and whole._strides is None
            and whole._storage is not None and whole._device is CPU and whole._dtype in _FLOATS)


def is_large(whole: Any) -> bool:
    return bool(whole._storage.nbytes >= _LARGE * whole._dtype.itemsize)
