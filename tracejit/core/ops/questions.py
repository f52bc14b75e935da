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
    """Return True if the only element is not 0. RuntimeError if there is none, or more than one;
    the shape does not count.

    >>> import tracejit
    >>> tracejit.is_nonzero(tracejit.tensor([[2.0]]))
    True
    """
    if not shapes.equal(shapes.numel(input.shape), 1):
        if shapes.equal(shapes.numel(input.shape), 0):
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(input != 0)


def is_signed(input: Any) -> bool:
    """Return True if the tensor's dtype, in any shape, has negative numbers.

    >>> import tracejit
    >>> tracejit.is_signed(tracejit.tensor([1], dtype=tracejit.uint8))
    False
    """
    return bool(input.dtype.is_signed)


@method()
def is_same_size(input: Any, other: Any) -> bool:
    """Return True if two tensors have the same shape.

    >>> import tracejit
    >>> tracejit.is_same_size(tracejit.ones(2), tracejit.zeros(2))
    True
    """
    return shapes.same_shape(tuple(input.shape), tuple(other.shape))


def is_inference(input: Any) -> bool:
    """Return True if the tensor, of any shape, was made in inference mode.

    >>> import tracejit
    >>> with tracejit.inference_mode():
    ...     x = tracejit.ones(2)
    >>> tracejit.is_inference(x)
    True
    """
    return bool(input.is_inference())


@method()
def is_neg(input: Any) -> bool:
    """Return False for every shape and dtype: negatives are computed at once.

    >>> import tracejit
    >>> tracejit.is_neg(-tracejit.ones(2))
    False
    """
    return False


def get_device(input: Any) -> int:
    """Return the number of the device of a tensor of any shape; -1 on the CPU.

    >>> import tracejit
    >>> tracejit.get_device(tracejit.ones(2))
    -1
    """
    return int(input.get_device())


def typename(obj: Any) -> str:
    """Return PyTorch's name of a tensor's type, whatever its shape; of another object, that of its
    class.

    >>> import tracejit
    >>> tracejit.typename(tracejit.ones(2))
    'tracejit.FloatTensor'
    """
    if is_tensor(obj):
        return str(obj.type())
    cls = obj if isinstance(obj, type) else type(obj)
    within = cls.__module__
    return cls.__qualname__ if within == "builtins" else f"{within}.{cls.__qualname__}"
