"""Older names of tensors by element type: `FloatTensor`, `cuda.LongTensor`.

In: sizes or data, as in `FloatTensor(2, 3)` and `LongTensor([1, 2])`. Out: tensors of that type;
`isinstance` asks for dtype and device, `tensor.type(LongTensor)` converts. Programs written for
early PyTorch use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracejit.core.eager.construction import must_be_on, tensor
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.type_names import dtype_of_type_name
from tracejit.core.eager.typed_storage import TypedStorage
from tracejit.core.eager.untyped_storage import UntypedStorage
from tracejit.core.memory import set_default_device
from tracejit.core.ops.creation import empty
from tracejit.core.ops.operators import method
from tracejit.core.ops.types import SCALAR_NAMES, dtype, set_default_dtype

_TYPE = """Tensors of {name}, of any shape: `isinstance` asks for dtype and device.

A call makes one: zeros of the given sizes, or a copy of a sequence.

>>> import tracejit
>>> {module}.{scalar}Tensor.dtype
tracejit.{name}
"""


class TensorType(type):
    """Metaclass of `FloatTensor` and the like, for one dtype and device type."""

    dtype: dtype
    device: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.device.type == cls.device
        )

    def __call__(cls, *args: Any, size: Any = None, device: Any = None) -> Any:
        """Make a tensor of this type: with undefined elements from sizes, with copies from data.

        Raises TypeError for a tensor of another type, or if data is neither sizes nor a sequence;
        RuntimeError for a device of another kind than the type's.
        """
        must_be_on(device, cls.device)
        args = args if size is None else (*args, *size)
        kind: dict[str, Any] = {"dtype": cls.dtype, "device": cls.device}
        if all(isinstance(x, (int, np.integer)) for x in args):
            return empty(*args or (0,), **kind)
        if len(args) != 1:
            raise TypeError(f"{cls.__name__}(): expected sizes or one sequence of data")
        (data,) = args
        if isinstance(data, Tensor):
            if not isinstance(data, cls):
                raise TypeError(f"expected {cls.dtype!r} on {cls.device}, got {data.dtype} on "
                                f"{data.device}")  # fmt: skip
            return data.detach()
        if type(data).__name__ == "Size":
            return empty(*data, **kind)
        if isinstance(data, (UntypedStorage, TypedStorage)):
            return empty(0, **kind).set_(data)
        if isinstance(data, str):
            raise TypeError("new(): invalid data type 'str'")
        if not hasattr(data, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        integers = cls.dtype.name.startswith(("int", "uint"))
        array = np.asarray(data) if integers else data
        if integers and array.dtype.kind == "f":  # towards zero, as the constructors always did
            array = array.astype(np.int64)
        return tensor(array, **kind)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _named(place: str, names: Iterable[str]) -> dict[str, TensorType]:
    """Make the types of these dtypes on a device, by name."""
    module = "tracejit" if place == "cpu" else f"tracejit.{place}"
    return {
        f"{scalar}Tensor": TensorType(
            f"{scalar}Tensor", (),
            {"dtype": dtype._by_name[name], "device": place, "__module__": module,
             "__doc__": _TYPE.format(module=module, scalar=scalar, name=name)},
        )
        for name in names
        for scalar in [SCALAR_NAMES[name]]
    }  # fmt: skip


_COMPLEX = ("complex64", "complex128")  # `new` knows their types; there are no public ones
_PUBLIC = [name for name in SCALAR_NAMES if name not in _COMPLEX]
CPU_TYPES, CUDA_TYPES = _named("cpu", _PUBLIC), _named("cuda", _PUBLIC)
_OF_NEW = {
    "cpu": {**CPU_TYPES, **_named("cpu", _COMPLEX)},
    "cuda": {**CUDA_TYPES, **_named("cuda", _COMPLEX)},
}


def new(self: Any, *args: Any, size: Any = None, device: Any = None) -> Any:
    """Make a tensor of this one's type from sizes or data.

    PyTorch's older name of `new_empty` and `new_tensor`.

    >>> import tracejit
    >>> tracejit.zeros(1).new([1, 2])
    tensor([1., 2.])
    """
    kinds = _OF_NEW["cpu" if self.device.type == "cpu" else "cuda"]
    return kinds[f"{SCALAR_NAMES[self.dtype.name]}Tensor"](*args, size=size, device=device)


method()(new)


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype and the device of new floating point tensors by such a type or its name.

    >>> import tracejit
    >>> tracejit.set_default_tensor_type(tracejit.DoubleTensor)
    >>> tracejit.zeros(1).dtype
    tracejit.float64
    >>> tracejit.set_default_tensor_type("tracejit.FloatTensor")

    Raises TypeError for other objects, and for a type that is not floating point.
    """
    if isinstance(t, str):
        kind, place = dtype_of_type_name(t)
    elif isinstance(t, TensorType):
        kind, place = t.dtype, t.device
    else:
        raise TypeError("invalid type object: only floating-point types are supported as the "
                        "default type")
    if not kind.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(kind)
    set_default_device(None if place == "cpu" else place)
