"""Tensors over existing memory: of buffers, files, arrays and other tensors.

In: bytes-like objects, paths, arrays, tensors. Out: tensors that show the same memory. Called by
users (`tracejit.asarray` and its relatives).
"""

from __future__ import annotations

import mmap
import os
import warnings
from typing import Any

import numpy as np

from tracejit.core.eager.construction import (
    from_array,
    from_dlpack,
    from_numpy,
    marked,
    new_tensor,
)
from tracejit.core.eager.state import TensorState
from tracejit.core.memory import as_device
from tracejit.core.memory.devices import makes_tensors
from tracejit.core.ops.types import SCALAR_NAMES, asked_dtype, dtype, get_default_dtype

_NOT_STATED = ("asarray: without requires_grad the result requires grad as obj does; "
               "requires_grad=False keeps it from that")


@makes_tensors
def asarray(obj: Any, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Any:
    """Return `obj` (a tensor, an array, a DLPack producer, a buffer, numbers) as a tensor.

    copy: True for memory of its own, False for `obj`'s memory or a ValueError. Else a copy is made
    where dtype or device ask for one. requires_grad: as `obj` does, if not given.

    >>> import tracejit
    >>> memory = bytearray(2)
    >>> tracejit.asarray(memory, dtype=tracejit.uint8)[0] = 7
    >>> memory
    bytearray(b'\\x07\\x00')
    """
    kind = asked_dtype(dtype)
    if requires_grad is None:
        requires_grad = isinstance(obj, TensorState) and obj.requires_grad
        if requires_grad:
            warnings.warn(_NOT_STATED, UserWarning, stacklevel=3)
    found = _over(obj, kind)
    if found is None:
        if copy is False:
            if isinstance(obj, np.generic):
                raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or "
                                   "transform it in a ndarray. ")
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return marked(new_tensor(obj, kind, device), requires_grad)
    place = found.device if device is None else as_device(device)
    if copy is False:
        if place != found.device:
            raise ValueError(f"can't alias tensor from device '{found.device}' to '{place}'.")
        if kind not in (None, found.dtype):
            raise ValueError(f"can't alias tensor with dtype '{SCALAR_NAMES[found.dtype.name]}' "
                             f"into dtype '{SCALAR_NAMES[kind.name]}'.")
    made = found.to(place, kind, copy=bool(copy))
    if requires_grad:
        return marked(made, True)
    if made.is_leaf:
        return made.requires_grad_(False) if made.requires_grad else made
    return made.detach()


def _over(obj: Any, kind: dtype | None) -> Any:
    """Make a tensor over an object's memory. Return None for objects without memory, such as
    numbers."""
    if isinstance(obj, TensorState):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, np.generic):
        return None
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=kind or get_default_dtype())


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Any:
    """Make a vector over the memory of a bytes-like object, without a copy.

    count: how many elements (-1: all there are), offset: of the first, in bytes.

    >>> import tracejit
    >>> tracejit.frombuffer(bytearray(b"abc"), dtype=tracejit.uint8, offset=1).tolist()
    [98, 99]

    Raises ValueError if the buffer has not so many, or `buffer` is no such object.
    """
    dtype = asked_dtype(dtype)
    try:
        length, size = memoryview(buffer).nbytes, dtype.itemsize
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({length} bytes) minus 1")
    if count < 0:
        if (length - offset) % size:
            raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} "
                             f"bytes) must be a multiple of element size ({size})")
        count = (length - offset) // size
    if offset + count * size > length:
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} "
                         f"bytes) must not be greater than actual buffer length ({length} bytes)")
    array = np.frombuffer(buffer, np.uint8, count * size, offset).view(dtype.numpy)
    if not array.flags.writeable:
        warnings.warn("The given buffer is not writable: writing to this tensor will raise. Copy "
                      "the buffer to protect its data or to write to the tensor.", UserWarning,
                      stacklevel=2)
        return marked(from_array(array), requires_grad)
    return marked(from_numpy(array), requires_grad)


def from_file(filename: Any, shared: bool | None = None, size: int = 0, *,
              dtype: dtype | None = None, device: Any = None) -> Any:
    """Make a vector of `size` elements whose memory is a file's first bytes.

    With `shared`, writes reach the file, which is created or extended as needed; else they stay
    with the tensor. Raises RuntimeError if the file cannot be read, or is too short.

    >>> import tracejit
    >>> import pathlib, tempfile, tracejit
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two")
    >>> _ = path.write_bytes(bytes([7, 8]))
    >>> tracejit.from_file(str(path), size=2, dtype=tracejit.uint8).tolist()
    [7, 8]
    """
    kind = asked_dtype(dtype) or get_default_dtype()
    nbytes = size * kind.itemsize
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        file = os.open(filename, flags, 0o600)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} "
                           f"({error.errno})") from None
    try:
        there = os.fstat(file).st_size
        if there < nbytes and not shared:
            raise RuntimeError(f"file <{filename}> size <{there}> is smaller than the required "
                               f"mapping size <{nbytes}>")
        if there < nbytes:
            os.truncate(file, nbytes)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        pages = mmap.mmap(file, nbytes, access=access) if nbytes else bytearray()
    finally:
        os.close(file)
    array = np.frombuffer(pages, np.uint8, nbytes).view(kind.numpy)
    return (from_numpy if shared else from_array)(array).to(as_device(device))
