"""Changing dtype and device: `to`, `cpu`, `cuda`, `type`.

In: PyTorch's spellings of a dtype, a device or another tensor. Out: tensors, made by the ops
`convert` and `to_device`, the tensor itself where nothing changes. Mixed into Tensor.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.state import TensorState
from tracejit.core.eager.transfer import numbered, to_device
from tracejit.core.eager.type_names import dtype_of_type_name, tensor_type_name
from tracejit.core.memory import as_device, device
from tracejit.core.ops import pointwise
from tracejit.core.ops.types import asked_dtype
from tracejit.core.ops.types import dtype as DType


class Conversion(TensorState):
    """Casts and transfers."""

    __slots__ = ()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert the tensor to another dtype, another device, or to those of another tensor.

        `to(dtype)`, `to(device, dtype=None)`, `to(other)`; keywords dtype, device, non_blocking,
        copy, memory_format.

        >>> import tracejit
        >>> tracejit.tensor([1, 2]).to(tracejit.float64)
        tensor([1., 2.], dtype=tracejit.float64)
        """
        place, kind, copy = parse_to(args, kwargs)
        moved = self if place is None else to_device(self, place)
        if kind is not None and kind is not moved._dtype:
            moved = pointwise.convert(moved, kind)
        return self.clone() if copy and moved is self else moved

    def cpu(self, *, memory_format: Any = None) -> Any:
        """Return the tensor in main memory, in the same shape: itself if it is there.

        >>> import tracejit
        >>> x = tracejit.ones(2)
        >>> x.cpu() is x
        True
        """
        return to_device(self, as_device("cpu"))

    def cuda(self, device: Any = None, non_blocking: bool = False,
             memory_format: Any = None) -> Any:
        """Return the tensor on a CUDA device, in the same shape. Raises DeviceUnavailable, which
        says what to install, if there is none.
        """
        return to_device(self, as_device("cuda" if device is None else device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the tensor's type, or the tensor as another type.

        >>> import tracejit
        >>> tracejit.tensor([1.0]).type()
        'tracejit.FloatTensor'
        """
        if dtype is None:
            return tensor_type_name(self._dtype, self._device)
        if isinstance(dtype, type) and issubclass(dtype, TensorState):
            dtype = "torch.Tensor" if dtype.__name__ == "Tensor" else dtype.__name__
        if isinstance(dtype, str):
            kind, place = dtype_of_type_name(dtype)
            return self.to(place, kind)
        if hasattr(dtype, "dtype"):  # a name such as FloatTensor
            return self.to(dtype.device, dtype.dtype)
        if not isinstance(dtype, DType):
            raise ValueError(f"invalid type: {getattr(dtype, '__name__', dtype)!r}")
        return self.to(dtype)

    def type_as(self, other: Any) -> Any:
        """Return the tensor in the dtype and on the device of another, in the same shape.

        >>> import tracejit
        >>> tracejit.ones(2).type_as(tracejit.tensor([1]))
        tensor([1, 1])
        """
        return self.to(other)

    def get_device(self) -> int:
        """Return the number of the CUDA device of a tensor of any shape; -1 on the CPU.

        >>> import tracejit
        >>> tracejit.ones(2).get_device()
        -1
        """
        return -1 if self._device.type != "cuda" else self._device.index or 0


def parse_to(args: tuple, kwargs: dict) -> tuple[Any, Any, bool]:
    """Return (device or None, dtype or None, copy) from the arguments of `to`."""
    known = {"dtype", "device", "other", "non_blocking", "copy", "memory_format"}
    if set(kwargs) - known:
        raise TypeError("to() got an unexpected keyword argument "
                        f"{sorted(set(kwargs) - known)[0]!r}")
    place, kind = kwargs.get("device"), asked_dtype(kwargs.get("dtype"))
    flags = []
    for x in (*args, *([kwargs["other"]] if "other" in kwargs else [])):
        if isinstance(x, TensorState):
            place, kind = x._device, x._dtype
        elif isinstance(x, (DType, type)):
            kind = asked_dtype(x)
        elif isinstance(x, bool):
            flags.append(x)
        elif isinstance(x, (str, int, device)):
            place = x
        elif x is not None:
            raise TypeError(f"to() received an invalid argument {x!r}: expected a dtype, a device "
                            "or a tensor")
    copy = kwargs.get("copy", flags[1] if len(flags) > 1 else False)
    return None if place is None else numbered(as_device(place)), kind, bool(copy)


def parse_module_to(args: tuple, kwargs: dict) -> tuple[Any, Any]:
    """Return (device or None, dtype or None) from the arguments of a module's `to`. Raises
    RuntimeError if they ask for a copy."""
    where, kind, copy = parse_to(args, kwargs)
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    return where, kind
