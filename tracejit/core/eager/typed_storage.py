"""`TypedStorage`: the memory behind tensors as a sequence of numbers, PyTorch's older storages.

In: a tensor, sizes or numbers. Out: `TypedStorage`. `FloatStorage` and its kin make those of their
dtype, and `isinstance` checks for it. Deprecated: like PyTorch, it warns once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tracejit.core.eager.interchange import wide
from tracejit.core.eager.untyped_storage import (
    UntypedStorage,
    asked,
    listing,
    on_host,
    position,
    storage_object,
    untyped_storage,
    writable,
)
from tracejit.core.memory import Storage
from tracejit.core.ops.operators import method
from tracejit.core.ops.types import SCALAR_NAMES, dtype, dtype_named, get_default_dtype, rounded

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)
_TAKEN = "a size, a sequence of numbers or wrap_storage=, and dtype="
_told: set[str] = set()


def _warn() -> None:
    if _DEPRECATED not in _told:
        _told.add(_DEPRECATED)
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=3)


class TypedStorage:
    """Sequence of elements of a dtype over an `UntypedStorage`'s bytes.

    >>> import warnings, tracejit
    >>> warnings.simplefilter("ignore")
    >>> numbers = tracejit.TypedStorage([1, 2], dtype=tracejit.float64)
    >>> len(numbers), numbers.nbytes(), numbers[1]
    (2, 16, 2.0)

    TypeError for other arguments.
    """

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Read the first `size` elements of a file. Only classes of one dtype have it, e.g.
        FloatStorage.

        With `shared` writes reach the file. Raises RuntimeError if the file cannot be read, or is
        too short.
        """
        if not isinstance(cls, StorageType):
            raise RuntimeError("from_file can only be called on derived classes")
        kind: dtype = vars(cls)["dtype"]
        memory = UntypedStorage.from_file(filename, shared, size * kind.itemsize)
        return typed(memory._storage, kind)

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None,
                 device: Any = None) -> None:
        _warn()
        self.dtype: Any = dtype or get_default_dtype()
        if wrap_storage is not None:
            if args or not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"TypedStorage() takes {_TAKEN}; wrap_storage has to be an "
                                f"UntypedStorage, but got {type(wrap_storage).__name__}")
            self._untyped_storage = wrap_storage
            return
        content = args[0] if len(args) == 1 else 0
        if len(args) > 1 or not isinstance(content, (int, list, tuple, range)):
            raise TypeError(f"TypedStorage() takes {_TAKEN}, but got "
                            f"{', '.join(type(x).__name__ for x in args)}")
        kind = self.dtype.numpy
        count = content if isinstance(content, int) else len(content)
        self._untyped_storage = UntypedStorage(count * kind.itemsize, device=device)
        if not isinstance(content, int):
            self._write(slice(None), np.array(content).astype(kind))

    # -- what it is ----------------------------------------------------------------------------
    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    is_sparse = False
    filename = None

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int | None:
        """Return the number of the CUDA device; None on the CPU."""
        return self._untyped_storage.get_device()

    def resizable(self) -> bool:
        """Return True if `resize_` may be called."""
        return self._untyped_storage.resizable()

    def pickle_storage_type(self) -> str:
        """Return the name of the class for this dtype, e.g. FloatStorage."""
        return f"{SCALAR_NAMES[self.dtype.name]}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type. Given a storage class or its name, convert to that type."""
        place = "cuda." if self.is_cuda else ""
        if dtype is None:
            return f"tracejit.{place}{self.pickle_storage_type()}"
        name = dtype if isinstance(dtype, str) else dtype.__name__
        found = CLASSES.get(name.rsplit(".", 1)[-1])
        if found is None:
            raise RuntimeError(f"{dtype} is no type of a storage")
        return self._to(found.dtype)

    # -- its elements --------------------------------------------------------------------------
    def _elements(self) -> np.ndarray:
        size = self.dtype.itemsize
        block = on_host(asked(self._untyped_storage))
        return block[: block.nbytes // size * size].view(self.dtype.numpy)

    def _write(self, key: Any, value: Any) -> None:
        size = self.dtype.itemsize
        block = writable(asked(self._untyped_storage))
        block[: block.nbytes // size * size].view(self.dtype.numpy)[key] = value

    def tolist(self) -> list:
        """Return all elements."""
        return wide(self._elements()).tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return wide(self._elements()[position(key, self.size(), self)]).item()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(key if isinstance(key, slice) else position(key, self.size(), self), value)

    def fill_(self, value: Any) -> TypedStorage:
        """Write one number everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Write the bytes of another storage. Raises RuntimeError if it has another size."""
        self._untyped_storage.copy_(source.untyped())
        return self

    def resize_(self, size: int) -> None:
        """Give the storage room for `size` elements; see `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    # -- others --------------------------------------------------------------------------------
    def _over(self, memory: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=memory, dtype=self.dtype)

    def _to(self, kind: dtype) -> TypedStorage:
        """Convert the elements to another dtype."""
        made = TypedStorage(self.size(), dtype=kind, device=self.device)
        made._write(slice(None), rounded(self._elements(), kind))
        return made

    def _new_shared(self, size: int) -> TypedStorage:
        """Make a storage of `size` elements in memory that processes forked later share."""
        return self._over(self._untyped_storage._new_shared(size * self.dtype.itemsize))

    def is_shared(self) -> bool:
        """Return True if processes forked later share the memory."""
        return self._untyped_storage.is_shared()

    def clone(self) -> TypedStorage:
        """Return a copy: a storage with its own memory."""
        return self._over(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        """Return a storage with the same elements on the CPU."""
        return self._over(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Return a storage with the same elements on a CUDA device."""
        return self._over(self._untyped_storage.cuda(device))

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return self._over(self._untyped_storage.__deepcopy__(memo))

    def __repr__(self) -> str:
        return listing(self, self.tolist(), f"dtype={self.dtype!r}, device={self.device}")


TypedStorage.__module__ = "tracejit.storage"


class StorageType(type):
    """Class of `FloatStorage` and its kin."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None) -> Any:
        """Make a storage of this dtype, from a number of elements or from a sequence of them."""
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)


_TYPE = """Memory of {name} elements in a row, PyTorch's older class: see `UntypedStorage`.

>>> import tracejit
>>> tracejit.{scalar}Storage.dtype
tracejit.{name}
"""
CLASSES = {
    f"{scalar}Storage": StorageType(
        f"{scalar}Storage", (TypedStorage,),
        {"dtype": dtype_named(name), "__module__": "tracejit",
         "__doc__": _TYPE.format(scalar=scalar, name=name)},
    )
    for name, scalar in SCALAR_NAMES.items()
}  # fmt: skip


def typed(storage: Storage, kind: dtype) -> TypedStorage:
    """Return a storage as elements of a dtype, without the warning."""
    made = object.__new__(TypedStorage)
    made.dtype, made._untyped_storage = kind, storage_object(storage)
    return made


def _conversion(kind: dtype, name: str) -> Callable[[TypedStorage], TypedStorage]:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(kind)

    convert.__name__, convert.__doc__ = name, f"The elements as {kind.name}."
    return convert


for _name, _kind in {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
    "double": "float64", "complex_float": "complex64", "complex_double": "complex128",
}.items():  # fmt: skip
    setattr(TypedStorage, _name, _conversion(dtype_named(_kind), _name))


def is_storage(obj: Any) -> bool:
    """Return True if an object is a storage.

    >>> import tracejit
    >>> tracejit.is_storage(tracejit.ones(1).untyped_storage())
    True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


@method()
def storage(self: Any) -> TypedStorage:
    """Return the memory that holds the elements, as a sequence of its dtype, without a shape; see
    `untyped_storage`.

    >>> import tracejit
    >>> list(tracejit.tensor([[1, 2]]).storage())
    [1, 2]
    """
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@method()
def _typed_storage(self: Any) -> TypedStorage:
    """Return `storage()` without the warning: for libraries, whose users did not call it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@method()
def storage_type(self: Any) -> StorageType:
    """Return the class of storages of this dtype; the shape does not count.

    >>> import tracejit
    >>> tracejit.ones(1).storage_type().__name__
    'FloatStorage'
    """
    return CLASSES[f"{SCALAR_NAMES[self.dtype.name]}Storage"]
