"""`UntypedStorage`: the memory behind tensors as a sequence of bytes.

In: a tensor, sizes or bytes. Out: PyTorch's `UntypedStorage`, one object for each piece of memory
while anybody holds it. In a recording every use breaks the graph: no op reads or writes bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tracejit.core.eager.recording import active
from tracejit.core.eager.shared_memory import is_shared_array, shared_array
from tracejit.core.eager.state import NO_DATA
from tracejit.core.eager.storage_size import is_resizable, resize
from tracejit.core.memory import CPU, Storage, allocate, array_module, as_device, storage_of_array
from tracejit.core.memory.readers import about_to_write, copied, show
from tracejit.core.memory.storage import RELEASED
from tracejit.core.ops.operators import method

_known: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()  # by id of the Storage


class UntypedStorage:
    """Bytes that tensors look at; equal to no other object.

    `UntypedStorage(n)` has n bytes of any content, `UntypedStorage([1, 2])` these, and
    `UntypedStorage()` none.

    >>> import tracejit
    >>> memory = tracejit.ones(3).untyped_storage()
    >>> memory.nbytes(), memory[3], memory.tolist()[:4]
    (12, 63, [0, 0, 128, 63])

    Raises TypeError or RuntimeError for other arguments.
    """

    __slots__ = ("_storage", "__weakref__")
    _storage: Storage
    is_sparse = is_sparse_csr = is_hpu = False
    filename = None

    def __new__(cls, *args: Any, device: Any = None) -> UntypedStorage:
        if len(args) > 1:
            kinds = ", ".join(type(x).__name__ for x in args)
            raise TypeError(f"UntypedStorage() takes a size or a sequence - got ({kinds})")
        content = args[0] if args else 0
        where = CPU if device is None else as_device(device)
        if isinstance(content, int):
            if content < 0:
                raise RuntimeError(f"UntypedStorage(): expected a size >= 0, got {content}")
            return storage_object(allocate(content, where))
        items = _bytes_of(content)
        made = allocate(len(items), where)
        made.block[: len(items)] = array_module(where).asarray(items)
        return storage_object(made)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return the first bytes of a file, which are read as they are asked for.

        With `shared` writes reach the file, which is made, or made longer, as needed; else they
        stay here. RuntimeError where the file cannot be read, or is too short.

        >>> import os, tempfile
        >>> name = os.path.join(tempfile.mkdtemp(), "bytes")
        >>> UntypedStorage.from_file(name, shared=True, nbytes=2).fill_(7).tolist()
        [7, 7]
        >>> open(name, "rb").read()
        b'\\x07\\x07'
        """
        from tracejit.core.eager.existing_memory import from_file
        from tracejit.core.ops.types import uint8

        made = from_file(filename, shared, nbytes, dtype=uint8)
        return storage_object(made._storage)

    # -- what it is ----------------------------------------------------------------------------
    def nbytes(self) -> int:
        """Return the number of bytes; 0 after `resize_(0)`."""
        return asked(self).nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return 1: elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 where there is none."""
        storage = asked(self)
        return storage.ptr if storage.nbytes and storage.device.type != "meta" else 0

    @property
    def _cdata(self) -> int:
        return id(self._storage)

    @property
    def device(self) -> Any:
        return self._storage.device

    @property
    def is_cuda(self) -> bool:
        return self._storage.device.type == "cuda"

    def get_device(self) -> int | None:
        """Return the number of the CUDA device; None on the CPU, as in PyTorch."""
        return self._storage.device.index or 0 if self.is_cuda else None

    def resizable(self) -> bool:
        """Return True if `resize_` may be called: no array looks at the memory."""
        return is_resizable(asked(self))

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Return False for a tensor of any shape: nothing is pinned.

        >>> import tracejit
        >>> tracejit.ones(2).is_pinned()
        False
        """
        return False

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the type. Raises RuntimeError if the caller asks for another type."""
        if dtype is not None and dtype not in (type(self), _TYPE_NAME):
            raise RuntimeError(f"an UntypedStorage has no type {dtype}")
        return _TYPE_NAME if dtype is None else self

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

    # -- its bytes -----------------------------------------------------------------------------
    def tolist(self) -> list[int]:
        """Return all bytes."""
        return on_host(asked(self)).tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, key: Any) -> Any:
        storage = asked(self)
        if isinstance(key, slice):
            start, stop = _span(key, storage)
            return storage_object(_part(storage, start, max(start, stop)))
        return int(on_host(storage)[position(key, storage.nbytes, self)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError("can only set storage content with a int types, but got "
                               f"{type(value).__name__} instead")
        storage = asked(self)
        if isinstance(key, slice):
            start, stop = _span(key, storage)
        else:
            start = position(key, storage.nbytes, self)
            stop = start + 1
        writable(storage)[start:stop] = value & 255

    def fill_(self, value: int) -> UntypedStorage:
        """Write one byte everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Write the bytes of another storage. Raises RuntimeError if it has another size."""
        if not hasattr(source, "untyped"):
            raise TypeError("copy_(): argument 'source' must be a storage, not "
                            f"{type(source).__name__}")
        given, storage = asked(source.untyped()), asked(self)
        if given.nbytes != storage.nbytes:
            raise RuntimeError(f"size does not match, self was {storage.nbytes} bytes but src was "
                               f"{given.nbytes} bytes")
        if given.nbytes:
            library = array_module(storage.device)
            writable(storage)[: given.nbytes] = library.asarray(on_host(given))
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Give the storage another size; what fits of its content stays, new bytes are zeros.

        After `resize_(0)` tensors over it keep their shape. They have no elements to read until it
        is resized again.

        >>> import tracejit
        >>> x = tracejit.ones(2)
        >>> memory = x.untyped_storage()
        >>> _ = memory.resize_(0)
        >>> x.shape, memory.nbytes()
        (tracejit.Size([2]), 0)
        >>> _ = memory.resize_(8)
        >>> x.copy_(tracejit.tensor([3.0, 4.0]))
        tensor([3., 4.])

        RuntimeError for sizes that are no ints or negative, and for memory that arrays look at.
        Also for sizes between 0 and what tensors over it need.
        """
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"resize_ expects a size >= 0, but got {size}")
        resize(asked(self), int(size))
        return self

    # -- others --------------------------------------------------------------------------------
    def clone(self) -> UntypedStorage:
        """Return a copy: a storage with its own memory."""
        return storage_object(copied(asked(self)))

    @classmethod
    def _new_shared(cls, size: int) -> UntypedStorage:
        """Make a storage of `size` bytes in memory that processes forked later share."""
        return storage_object(storage_of_array(shared_array(size)))

    def is_shared(self) -> bool:
        """Return True if processes forked later share the memory. That of CUDA devices always
        counts as shared."""
        return self.is_cuda or is_shared_array(asked(self).block)

    def new(self) -> UntypedStorage:
        """Make an empty storage on the same device."""
        return storage_object(allocate(0, self._storage.device))

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """Return a storage with the same bytes on a device: itself if it is there already."""
        where = as_device(device)
        storage = asked(self)
        if where == storage.device:
            return self
        made = allocate(storage.nbytes, where)
        made.block[: storage.nbytes] = array_module(where).asarray(on_host(storage))
        return storage_object(made)

    def cpu(self) -> UntypedStorage:
        """Return a storage with the same bytes on the CPU: itself if it is there already."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Return a storage with the same bytes on a CUDA device."""
        return self.to(device="cuda" if device is None else device)

    def pin_memory(self, device: Any = "cuda") -> UntypedStorage:
        """Return a copy of the same shape; nothing is pinned.

        >>> import tracejit
        >>> tracejit.ones(2).pin_memory()
        tensor([1., 1.])
        """
        return self.clone()

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        storage = asked(self)
        made = memo.get(id(storage))  # there if a tensor over it was copied first
        if made is None:
            made = memo[id(storage)] = copied(storage)
        return storage_object(made)

    def __reduce__(self) -> tuple:
        return storage_object, (asked(self),)

    def __repr__(self) -> str:
        return listing(self, self.tolist(), f"device={self.device}")


UntypedStorage.__module__ = "tracejit.storage"
_TYPE_NAME = "tracejit.storage.UntypedStorage"


def storage_object(storage: Storage) -> UntypedStorage:
    """Return the `UntypedStorage` of a Storage: the same object while anybody holds it."""
    found = _known.get(id(storage))
    if found is None:
        found = object.__new__(UntypedStorage)
        found._storage = storage
        _known[id(storage)] = found
    return found


def asked(self: UntypedStorage) -> Storage:
    """Return the Storage for a read or a write. Break the graph first: a tracer does not see
    these."""
    if active.tracer is not None:
        active.tracer.break_graph(None, "the function reads or writes a storage", "use tensors")
    return self._storage


def on_host(storage: Storage) -> np.ndarray:
    """Return a storage's bytes on the CPU."""
    if storage.device.type == "meta":
        raise NotImplementedError(NO_DATA)
    if storage.block is RELEASED:
        return np.empty(0, np.uint8)
    block = storage.block[: storage.nbytes]
    return block if storage.device.type == "cpu" else block.get()


def writable(storage: Storage) -> Any:
    """Return a storage's bytes for a write. Raises ValueError if they are read-only."""
    if storage.readonly:
        raise ValueError("assignment destination is read-only: the memory belongs to an array that "
                         "may not be written")
    about_to_write(storage)
    return storage.block[: storage.nbytes]


def _span(key: slice, storage: Storage) -> tuple[int, int]:
    """Return (start, stop) of a slice in bytes. Raises RuntimeError for steps."""
    start, stop, step = key.indices(storage.nbytes)
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is "
                           "supported")
    return start, stop


def _part(storage: Storage, start: int, stop: int) -> Storage:
    """Make a Storage over a part of the memory. Neither can be resized then."""
    show(storage)
    made = Storage(storage.block[start:stop], stop - start, storage.device)
    show(made)
    return made


def position(key: Any, count: int, of: Any) -> int:
    """Return the non-negative index of a subscript. Raises IndexError if it is out of range,
    TypeError if it is no int."""
    if not isinstance(key, int):
        raise TypeError(f"can't index a {type(of).__module__}.{type(of).__name__} with "
                        f"{type(key).__name__}")
    if not -count <= key < count:
        raise IndexError(f"index {key} out of range for storage of size {count}")
    return key % count


def listing(of: Any, items: list, what: str) -> str:
    """Return the text of a storage: an element per line, then its description."""
    lines = "\n ".join(map(str, items))
    name = f"{type(of).__module__}.{type(of).__name__}"
    return f" {lines}\n[{name}({what}) of size {len(items)}]"


def _bytes_of(content: Any) -> np.ndarray:
    """Convert a sequence of ints to bytes, each modulo 256."""
    if not isinstance(content, (list, tuple, range, str)):
        raise RuntimeError("UntypedStorage(): Expected a sequence type, but got "
                           f"{type(content).__name__}")
    for item in itertools.filterfalse(lambda x: isinstance(x, int), content):
        raise RuntimeError("UntypedStorage(): tried to construct a storage from a sequence "
                           f"({type(content).__name__}), but one of the items was of type "
                           f"{type(item).__name__} instead of int")
    return np.array(list(map((255).__and__, content)), np.uint8)


@method()
def untyped_storage(self: Any) -> UntypedStorage:
    """Return the memory that holds the elements, as bytes.

    >>> import tracejit
    >>> x = tracejit.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage() is x.untyped_storage()
    (24, True)
    """
    if active.tracer is not None:
        active.tracer.break_graph(self, "the function reads a storage")
    return storage_object(self._storage)
