"""NCCL's functions, through nccl4py or CuPy: collectives between CUDA devices.

In: addresses of device memory, counts, numbers of NCCL's types. Out: work in a stream. Called by
`device_groups`. Functions take what NCCL's C functions take, in their order.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from tracejit import cuda

MISSING = (
    "backend 'nccl' needs NCCL: pip install tracejit[nccl] brings nccl4py, and CuPy finds "
    "the library of pip install nvidia-nccl-cu13"
)
# Numbers of ncclDataType_t and ncclRedOp_t.
TYPES = {
    "int8": 0, "uint8": 1, "bool": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "complex64": 7, "complex128": 8,
}  # fmt: skip
OPERATIONS = {"SUM": 0, "PROD": 1, "MAX": 2, "MIN": 3, "LOR": 2, "LAND": 3}
_SUCCESS, _IN_PROGRESS = 0, 7


class Nccl4py:
    """NCCL by the bindings of nccl4py."""

    def __init__(self) -> None:
        self._library = importlib.import_module("nccl.bindings.nccl")
        self._library.get_version()  # finds libnccl, or raises
        for name in ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "send",
                     "recv"):  # fmt: skip
            setattr(self, name, getattr(self._library, name))

    def unique_id(self) -> bytes:
        """Return what one process makes and gives to the others, who then find it."""
        made = self._library.UniqueId.from_buffer(bytearray(bytes(self._library.get_unique_id())))
        return bytes(made)

    def join(self, size: int, unique_id: bytes, rank: int) -> Any:
        """Return a communicator on the current device, when all processes are there."""
        return self._library.comm_init_rank(size, self._library.UniqueId.from_buffer(
            bytearray(unique_id)), rank)  # fmt: skip

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Start all calls of the block together, at its end."""
        self._library.group_start()
        try:
            yield
        finally:
            self._library.group_end()

    def error(self, communicator: Any) -> str:
        """Return the error that work of a communicator met, or ""."""
        code = int(self._library.comm_get_async_error(communicator))
        healthy = code in (_SUCCESS, _IN_PROGRESS)
        return "" if healthy else str(self._library.get_error_string(code))

    def abort(self, communicator: Any) -> None:
        """End all work of a communicator that is under way, and give it up."""
        self._library.comm_abort(communicator)

    def destroy(self, communicator: Any) -> None:
        self._library.comm_destroy(communicator)


class CupyNccl:
    """NCCL by `cupy.cuda.nccl`."""

    def __init__(self) -> None:
        self._library = importlib.import_module("cupy.cuda.nccl")
        if not self._library.available:
            raise ImportError("CuPy was built without NCCL, or does not find its library")

    def unique_id(self) -> bytes:
        return bytes(self._library.get_unique_id())

    def join(self, size: int, unique_id: bytes, rank: int) -> Any:
        return self._library.NcclCommunicator(size, unique_id, rank)

    def all_reduce(self, sent: int, received: int, count: int, kind: int, op: int,
                   communicator: Any, stream: int) -> None:  # fmt: skip
        communicator.allReduce(sent, received, count, kind, op, stream)

    def reduce(self, sent: int, received: int, count: int, kind: int, op: int, root: int,
               communicator: Any, stream: int) -> None:  # fmt: skip
        communicator.reduce(sent, received, count, kind, op, root, stream)

    def broadcast(self, sent: int, received: int, count: int, kind: int, root: int,
                  communicator: Any, stream: int) -> None:  # fmt: skip
        communicator.broadcast(sent, received, count, kind, root, stream)

    def all_gather(self, sent: int, received: int, count: int, kind: int, communicator: Any,
                   stream: int) -> None:  # fmt: skip
        communicator.allGather(sent, received, count, kind, stream)

    def reduce_scatter(self, sent: int, received: int, count: int, kind: int, op: int,
                       communicator: Any, stream: int) -> None:  # fmt: skip
        communicator.reduceScatter(sent, received, count, kind, op, stream)

    def send(self, address: int, count: int, kind: int, peer: int, communicator: Any,
             stream: int) -> None:  # fmt: skip
        communicator.send(address, count, kind, peer, stream)

    def recv(self, address: int, count: int, kind: int, peer: int, communicator: Any,
             stream: int) -> None:  # fmt: skip
        communicator.recv(address, count, kind, peer, stream)

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        self._library.groupStart()
        try:
            yield
        finally:
            self._library.groupEnd()

    def error(self, communicator: Any) -> str:
        try:
            communicator.check_async_error()
        except self._library.NcclError as error:
            return str(error)
        return ""

    def abort(self, communicator: Any) -> None:
        communicator.abort()

    def destroy(self, communicator: Any) -> None:
        communicator.destroy()


_loaded: list[Any] = []


def load() -> Any:
    """Return NCCL's functions. RuntimeError if neither nccl4py nor CuPy has them."""
    if not _loaded:
        reasons = []
        for one in (Nccl4py, CupyNccl):
            try:
                _loaded.append(one())
                break
            except Exception as error:  # also what a damaged installation raises
                reasons.append(f"{one.__name__}: {error}")
        else:
            raise RuntimeError(f"{MISSING} ({'; '.join(reasons)})")
    return _loaded[0]


def lines() -> list[str]:
    """Return a line of `doctor` where there is a GPU: the library for NCCL, or what misses."""
    if not cuda.is_available():
        return []
    try:
        return [f"NCCL by {type(load()).__name__}"]
    except RuntimeError as error:
        return [str(error)]


def is_installed() -> bool:
    """Return True if NCCL can be loaded."""
    try:
        load()
    except RuntimeError:
        return False
    return True
