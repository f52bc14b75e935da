"""Saving and loading; PyTorch's `torch.serialization`.

In: objects and files. Out: files that PyTorch reads, and objects out of files that PyTorch wrote.
Loading never executes what a file holds, unless the caller sets `weights_only=False`: see
`saving/`.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from tracejit.core.eager.recording import active
from tracejit.core.eager.typed_storage import TypedStorage, typed
from tracejit.core.eager.untyped_storage import storage_object
from tracejit.core.memory import (
    DeviceUnavailable,
    Storage,
    allocate,
    array_module,
    as_device,
    device,
)
from tracejit.core.ops import sealing as _sealing
from tracejit.saving import archive, foreign, legacy, legacy_writing
from tracejit.saving.names import StorageType
from tracejit.saving.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    maps_shared,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from tracejit.saving.pickling import pickled
from tracejit.saving.rebuilding import KNOWN, refuse
from tracejit.saving.trusted import TrustingUnpickler
from tracejit.saving.unpickling import Reader, Unpickler, globals_in

__all__ = ["LoadEndianness", "SourceChangeWarning", "add_safe_globals", "clear_safe_globals",
           "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
           "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save",
           "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options",
           "skip_data"]  # fmt: skip

DEFAULT_PROTOCOL = 2
_NOT_SEEKABLE = (
    ". You can only tracejit.load from a file that is seekable. Please pre-load the data into a "
    "buffer like io.BytesIO and try to load from it instead."
)
_allowed: dict[str, Any] = {}


MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None


class SourceChangeWarning(Warning):
    """Warning about a changed source of a saved module's class; never given: no source is saved."""


# -- what files may name -------------------------------------------------------------------------


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files name these classes and functions, or (class or function, full name) pairs.

    Loading calls them when a file says so: trust them, and the files.
    """
    for given in safe_globals:
        if isinstance(given, tuple):
            if len(given) != 2 or not callable(given[0]) or not isinstance(given[1], str):
                raise ValueError("Each tuple should be a (callable, str) pair, got "
                                 f"{given!r}")
            found, name = given
        elif callable(given):
            found, name = given, f"{given.__module__}.{given.__qualname__}"
        else:
            raise TypeError(f"Expected a class, a function or a tuple, got {given!r}")
        _allowed[name] = found


def get_safe_globals() -> list[Any]:
    """Return the classes and functions that files may name."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Let files name nothing but PyTorch's own."""
    _allowed.clear()


class safe_globals:
    """Let files name these classes and functions inside a `with` block.

    >>> import io, tracejit
    >>> from fractions import Fraction
    >>> file = io.BytesIO()
    >>> tracejit.save(Fraction(1, 2), file)
    >>> with safe_globals([Fraction]):
    ...     tracejit.load(io.BytesIO(file.getvalue()))
    Fraction(1, 2)
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.given = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self.given)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _allowed.clear()
        _allowed.update(self._before)


# -- saving --------------------------------------------------------------------------------------


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = DEFAULT_PROTOCOL,
         _use_new_zipfile_serialization: bool = True,
         _disable_byteorder_record: bool = False) -> None:
    """Write an object to a file that `torch.load` reads too.

    f  a path, or a file-like object open for writing bytes

    Tensors over the same memory are over the same memory after loading. For a view all of its base
    is saved. Tensors with a history become leaves. `pickle_module` is accepted and not used.
    `_use_new_zipfile_serialization=False` writes the format of PyTorch before 1.6.

    Raises AttributeError for what is no file, RuntimeError where the folder is missing, and for
    tensors of different dtypes over the same memory.

    >>> import io, tracejit
    >>> file = io.BytesIO()
    >>> tracejit.save({"weight": tracejit.ones(2), "epoch": 3}, file)
    >>> tracejit.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    _tell_recorder("saves a file")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a "
                             "'write' attribute")
    if not _use_new_zipfile_serialization:
        with nullcontext(f) if hasattr(f, "write") else open(f, "wb") as file:
            legacy_writing.write(file, obj, pickle_protocol)
            _flush(file)
        return
    data, storages = pickled(obj, pickle_protocol)
    if not isinstance(f, (str, os.PathLike)):
        archive.write(f, "archive", data, storages)
        _flush(f)
        return
    path = Path(f)
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    with open(path, "wb") as file:
        archive.write(file, path.stem if path.stem.isascii() else "archive", data, storages)


def _flush(file: Any) -> None:
    if hasattr(file, "flush"):  # who opens the file's path while it is open here finds all of it
        file.flush()


# -- loading -------------------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *,
         weights_only: bool | None = None, mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:
    """Read an object from a file that `save`, or `torch.save`, wrote.

    f             a path, or a file-like object that can be read and sought
    map_location  where tensors go: a device, a dict from places in the file to places here, or a
                  function (storage on the CPU, place) -> storage or None, these `UntypedStorage`s;
                  default: where they were
    weights_only  False: import and call whatever the file names, as Python's `pickle` does
    mmap          the elements stay in the file, which must be a path, until they are used

    `weights_only=False` is for files of your own that hold whole modules. `pickle_load_args` go to
    the unpickler then; `encoding` (of Python 2's texts; default: utf-8) always holds.

    Otherwise nothing in a file is executed. Tensors, parameters, numbers, texts and plain
    containers of them are loaded, and classes that `safe_globals` allows. Files of PyTorch before
    1.6 are always loaded so, whatever `weights_only` says.

    Raises UnpicklingError for anything else, by its name. Raises RuntimeError for a damaged file,
    and for tensors of a CUDA device where there is none; EOFError for an empty file.

    >>> import io, tracejit
    >>> file = io.BytesIO()
    >>> tracejit.save(print, file)
    >>> tracejit.load(io.BytesIO(file.getvalue()))
    Traceback (most recent call last):
        ...
    _pickle.UnpicklingError: Weights only load failed...GLOBAL print was not an allowed global...
    """
    _tell_recorder("loads a file")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    place = _placing(map_location)
    encoding = pickle_load_args.get("encoding", "utf-8")
    if isinstance(f, (str, os.PathLike)) and os.fsdecode(f).endswith(".safetensors"):
        return _safetensors(f, map_location)
    with _opened(f, "r+b" if mmap and maps_shared() else "rb") as file:
        if not archive.is_archive(file):
            _refuse_foreign(file)
            if mmap:
                raise RuntimeError("mmap can only be used with files saved with "
                                   "`torch.save(_use_new_zipfile_serialization=True)`")
            plain = foreign.is_plain_pickle(file)
            try:
                return legacy.load(_rest(file), place, _allowed, encoding)
            except pickle.UnpicklingError as error:
                if not plain:
                    raise
                raise pickle.UnpicklingError(f"{error} {foreign.PLAIN_PICKLE}") from None
        with archive.Archive(file) as opened:
            storages = _Storages(opened, place, bool(mmap))
            data = opened.read("data.pkl")
            if weights_only is False:
                return TrustingUnpickler(io.BytesIO(data), storages.reference, _allowed,
                                         **{"encoding": encoding, **pickle_load_args}).load()
            return Unpickler(Reader(io.BytesIO(data), len(data)), storages.reference,
                             _allowed, encoding).load()


def _safetensors(path: Any, map_location: Any) -> dict[str, Any]:
    """Return the tensors of a safetensors file; PyTorch's `load` knows one by its name's ending."""
    from tracejit import safetensors

    place = "cpu" if map_location is None or callable(map_location) else map_location
    return safetensors.load_file(path, "cpu" if isinstance(place, dict) else place)


def _refuse_foreign(file: Any) -> None:
    """Raise UnpicklingError for a file that other programs write, and name its kind."""
    found = foreign.what_is(file)
    if found:
        raise pickle.UnpicklingError(f"Weights only load failed. {found}")


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the full names in a file that `load` would refuse.

    Raises ValueError for files of the format before PyTorch 1.6.
    """
    with _opened(f) as file:
        if not archive.is_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a "
                             "file of another format")
        with archive.Archive(file) as opened:
            data = opened.read("data.pkl")
            named = globals_in(Reader(io.BytesIO(data), len(data)))
    return [name for name in named if name not in KNOWN and name not in _allowed]


def _get_layout(name: str) -> Any:
    """Return the layout of a name such as "torch.strided"; pickles call it."""
    return getattr(importlib.import_module("tracejit"), name.removeprefix("torch."))


@contextmanager
def _opened(f: Any, mode: str = "rb") -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file
        return
    _check_has(f, "seek", "tell")
    try:
        f.seek(f.tell())  # a file's own error comes before what is said of its other methods
    except (io.UnsupportedOperation, OSError) as error:
        raise type(error)(str(error) + _NOT_SEEKABLE) from error
    _check_has(f, "read", "readline")
    yield f


def _check_has(f: Any, *names: str) -> None:
    for name in names:
        if not hasattr(f, name):
            raise AttributeError(f"{type(f).__name__!r} object has no attribute {name!r}"
                                 + _NOT_SEEKABLE)


def _rest(file: Any) -> Reader:
    start = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    if end == start:
        raise EOFError("Ran out of input: the file is empty")
    return Reader(file, end - start)


class _Storages:
    """Storages of an archive, read when a tensor first refers to them."""

    def __init__(self, opened: archive.Archive, place: Callable[[Storage, str], Storage],
                 mapped: bool) -> None:
        self.opened, self.place, self.mapped = opened, place, mapped
        self.made: dict[str, tuple[TypedStorage, int]] = {}

    def reference(self, given: Any) -> TypedStorage:
        """Return the storage of a persistent id."""
        refuse(not isinstance(given, tuple) or len(given) != 5 or given[0] != "storage"
               or type(given[1]) is not StorageType or type(given[2]) is not str
               or type(given[3]) is not str or type(given[4]) is not int or given[4] < 0,
               "a storage is not described as it should be")
        _, cls, key, location, count = given
        nbytes = count * cls.kind.itemsize
        if key not in self.made:
            name = f"data/{key}"
            storage = (self.opened.mapped(name, nbytes) if self.mapped and not self.opened.swapped
                       else self.opened.storage(name, nbytes, cls.kind))
            self.made[key] = typed(self.place(storage, location), cls.kind), nbytes
        made, known = self.made[key]
        refuse(known != nbytes, f"storage {key!r:.80} has two sizes")
        return made if made.dtype is cls.kind else typed(made.untyped()._storage, cls.kind)


def _placing(map_location: Any) -> Callable[[Storage, str], Storage]:
    """Return the function that brings a storage from the CPU to the place of `map_location`."""
    if map_location is None:
        return _moved
    if isinstance(map_location, dict):
        return lambda storage, place: _moved(storage, map_location.get(place, place))
    if isinstance(map_location, (str, device)):
        return lambda storage, place: _moved(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(f"map_location: expected a device, a dict or a function, got "
                        f"{type(map_location).__name__}")

    def chosen(storage: Storage, place: str) -> Storage:
        found = map_location(storage_object(storage), place)
        return _moved(storage, place) if found is None else found.untyped()._storage

    return chosen


def _moved(storage: Storage, place: str) -> Storage:
    where = device(place)
    if where.type == "cpu":
        return storage
    try:
        library, where = array_module(where), as_device(where)
    except DeviceUnavailable as error:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but "
            "tracejit.cuda.is_available() is False. If you are running on a CPU-only machine, "
            "please use tracejit.load with map_location=tracejit.device('cpu') to map your "
            "storages to the CPU.") from error
    made = allocate(storage.nbytes, where)
    if where.type == "meta":
        return made
    source = storage.block[: storage.nbytes]
    made.block[: storage.nbytes] = library.asarray(source)
    return made


def _tell_recorder(event: str) -> None:
    if active.tracer is not None:
        active.tracer.break_graph(None, f"the function {event}",
                                  "save and load outside the captured function")

_sealing.seal_all(globals())
