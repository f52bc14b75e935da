"""PyTorch's names in a saved file, and the objects that they stand for.

In: a tracejit dtype, or a module and a name out of a file. Out: a name to write, or the object it
stands for. Nothing is imported: names outside these tables are not known.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

from tracejit.core.ops.types import dtype, dtype_named

_STORAGES = {
    "bool": "BoolStorage", "uint8": "ByteStorage", "int8": "CharStorage", "int16": "ShortStorage",
    "int32": "IntStorage", "int64": "LongStorage", "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage", "float32": "FloatStorage", "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip


class TorchName:
    """Name of PyTorch's, written to a file as it is."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *arguments: Any) -> Any:
        """Raise TypeError: a pickle may name it as a function, but it is never called."""
        raise TypeError(f"{self.module}.{self.name} is only a name")


class StorageType:
    """Storage class of PyTorch's: the dtype of its elements."""

    __slots__ = ("kind",)

    def __init__(self, kind: dtype) -> None:
        self.kind = kind


STORAGE_NAMES = {dtype_named(k): TorchName("torch", name) for k, name in _STORAGES.items()}
BYTES = TorchName("torch.storage", "UntypedStorage")
DTYPE_NAMES = {dtype_named(k): TorchName("torch", k) for k in _STORAGES}
DEVICE = TorchName("torch", "device")
SIZE = TorchName("torch", "Size")
VERSION = TorchName("torch.torch_version", "TorchVersion")
TENSOR = TorchName("torch._utils", "_rebuild_tensor_v2")
META_TENSOR = TorchName("torch._utils", "_rebuild_meta_tensor_no_storage")
PARAMETER = TorchName("torch._utils", "_rebuild_parameter")
PARAMETER_WITH_STATE = TorchName("torch._utils", "_rebuild_parameter_with_state")
TYPED = TorchName("torch._tensor", "_rebuild_from_type_v2")
TENSOR_CLASS = TorchName("torch", "Tensor")
LAYOUT = TorchName("torch.serialization", "_get_layout")

# What a name stands for as a value.
VALUES: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.bytes": bytes,
    "builtins.bytearray": bytearray,
    "builtins.complex": complex,
    "torch.storage.UntypedStorage": StorageType(dtype_named("uint8")),
    **{f"torch.{kind}": dtype_named(kind) for kind in _STORAGES},
    **{f"torch.{place}{name}": StorageType(dtype_named(kind))
       for kind, name in _STORAGES.items() for place in ("", "cuda.")},
}  # fmt: skip
# How Python 2 called it, and pickles of protocol 2 do still.
_RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}


def qualified(module: str, name: str) -> str:
    """Return the full name that a pickle means by a module and a name."""
    return f"{_RENAMED.get(module, module)}.{name}"
