"""Questions about a tensor, under PyTorch's function names: is_nonzero, is_signed, typename.

In: a tensor. Out: a bool, a number or a text. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import is_tensor


@method()
def is_nonzero(input: Any) -> bool:
    """Return True if the only element is not 0. RuntimeError if there is none, or more than one."""
    if not shapes.equal(shapes.numel(input.shape), 1):
        if shapes.equal(shapes.numel(input.shape), 0):
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input != 0)


def is_signed(input: Any) -> bool:
    """Return True if the tensor's dtype has negative numbers."""
    return bool(input.dtype.is_signed)


@method()
def is_same_size(input: Any, other: Any) -> bool:
    """Return True if two tensors have the same sizes."""
    return shapes.same_shape(tuple(input.shape), tuple(other.shape))


def is_inference(input: Any) -> bool:
    """Return True if the tensor was made in inference mode."""
    return bool(input.is_inference())


@method()
def is_neg(input: Any) -> bool:
    """Return False: negatives are computed at once."""
    return False


def get_device(input: Any) -> int:
    """Return the number of the tensor's CUDA device; -1 on the CPU."""
    return int(input.get_device())


def typename(obj: Any) -> str:
    """Return PyTorch's name of a tensor's type; of another object, that of its class."""
    if is_tensor(obj):
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    within = cls.__module__
    return cls.__qualname__ if within == "builtins" else f"{within}.{cls.__qualname__}"
