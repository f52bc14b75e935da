"""Groups as CUDA tensors see them: the same processes, with NCCL in place of MPI.

In: a process group and tensors. Out: the group itself for tensors on the CPU; for those on a CUDA
device an object with the same attributes, whose operations NCCL runs. Called by the collectives.

NCCL works in a stream of its own, behind what the device was given before. So a backward goes on
while its buckets travel. `wait()` waits on the host: a process that dies, or does not come in time,
becomes an error that a program can catch.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tracejit.distributed import nccl_library
from tracejit.distributed.groups import Posted, ProcessGroup

_made: WeakKeyDictionary[ProcessGroup, dict[int, DeviceGroup]] = WeakKeyDictionary()
_IN_PLACE = -1  # no address


def carrier(group: ProcessGroup, *tensors: Any) -> Any:
    """Return the group that moves these tensors.

    Raises RuntimeError for CUDA tensors in a group that has no NCCL, and for tensors of several
    devices.
    """
    if on_cpu(tensors):
        return group
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found: {names}")
    (device,) = devices
    if device.type != "cuda" or "nccl" not in group.backend:
        raise RuntimeError(f"No backend type associated with device type {device.type}")
    known = _made.setdefault(group, {})
    number = device.index or 0
    if number not in known:
        known[number] = DeviceGroup(group, number)
    return known[number]


def on_cpu(tensors: Iterable[Any]) -> bool:
    """Return True if all tensors are on the CPU."""
    return all(tensor.device.type == "cpu" for tensor in tensors)


def forget(group: ProcessGroup) -> None:
    """Give the communicators of a group back, which all its processes do."""
    for one in _made.pop(group, {}).values():
        one.close()


class DeviceGroup:
    """Process group for the tensors of one CUDA device: what collectives read of a ProcessGroup."""

    def __init__(self, group: ProcessGroup, device: int) -> None:
        self.group, self.ranks, self.seconds = group, group.ranks, group.seconds
        self.handle, self.posted = None, Posted()
        self.library = DeviceLibrary()
        self._device = device
        self._ring: DeviceQueue | None = None
        self._pairs: dict[int, DeviceQueue] = {}

    @property
    def ring(self) -> DeviceQueue:
        """The queue of all processes, who meet when it is first asked for."""
        if self._ring is None:
            self._ring = DeviceQueue(self.group, self._device, None)
        return self._ring

    def messages(self, peer: int | None) -> DeviceQueue:
        """Return the queue of messages with a rank: that of both alone, or of an open batch.

        The others need not be there when two processes of a group exchange their first message.
        """
        batching = self._ring is not None and self._ring.batch is not None
        if peer is None or batching or self.group.store is None:
            return self.ring
        if peer not in self._pairs:
            self._pairs[peer] = DeviceQueue(self.group, self._device, peer)
        return self._pairs[peer]

    def close(self) -> None:
        """Give the communicators back."""
        for queue in (self._ring, *self._pairs.values()):
            if queue is not None:
                queue.close()

    def rank(self) -> int:
        return self.group.rank()

    def size(self) -> int:
        return self.group.size()


class DeviceLibrary:
    """NCCL's types and operations, under the names that the collectives ask MPI for."""

    in_place, any_source = _IN_PLACE, None

    def counting(self, function: str, count: int) -> str:
        return function

    def element(self, dtype: str) -> tuple[int, int]:
        """Return NCCL's type for sums of a dtype, and how many of it an element has."""
        if dtype not in nccl_library.TYPES:
            raise RuntimeError(f"Unconvertible NCCL type {dtype}")
        return nccl_library.TYPES[dtype], 2 if dtype.startswith("complex") else 1

    def word(self, itemsize: int) -> tuple[int, int]:
        """Return NCCL's type of a byte, and the bytes of an element, for memory that moves."""
        return nccl_library.TYPES["uint8"], itemsize

    def operation(self, name: str) -> int:
        if name not in nccl_library.OPERATIONS:
            raise RuntimeError(f"Cannot use ReduceOp.{name} with NCCL")
        return nccl_library.OPERATIONS[name]

    def source_of(self, status: Any) -> int:
        return int(status)


class DeviceQueue:
    """NCCL's communicator of one device, and the stream in which it works.

    peer   None: of all processes of the group; a rank: of this process and that one
    batch  marks of the messages that start together, at the end of a block
    watch  None: waits look at the group's own watch
    """

    watch = None

    def __init__(self, group: ProcessGroup, device: int, peer: int | None) -> None:
        self._group, self.device, self._peer = group, device, peer
        self.batch: list[Any] | None = None
        self._nccl = nccl_library.load()
        self._cuda = importlib.import_module("cupy").cuda
        with self._cuda.Device(device):
            if peer is None:
                _check_devices(group, self._identity())
                unique_id = self._id_of_all()
                self._communicator = self._nccl.join(group.size(), unique_id, group.rank())
            else:
                first = group.rank() < peer
                self._communicator = self._nccl.join(2, self._id_of_both(peer), 1 - first)
            self._stream = self._cuda.Stream(non_blocking=True)
        self.failed: str | None = None

    def _identity(self) -> tuple[str, str]:
        device = self._cuda.Device(self.device)
        return socket.gethostname(), str(device.pci_bus_id)

    def _id_of_all(self) -> bytes:
        group = self._group
        with group.ring:
            given = self._nccl.unique_id() if group.rank() == 0 else None
            found: bytes = group.communicator.bcast(given, 0)
        return found

    def _id_of_both(self, peer: int) -> bytes:
        """Return the id that the lower rank of two makes; it travels over the group's store."""
        group, store = self._group, self._group.store
        assert store is not None
        low, high = sorted((group.rank(), peer))
        key = f"nccl/{group.group_name}/{low}-{high}"
        if group.rank() == low:
            made: bytes = self._nccl.unique_id()
            store.set(key, made)
            return made
        found = bytes(store.get(key))
        store.delete_key(key)
        return found

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Start all messages of the block at once, so that none waits for another one's end."""
        self.batch = []
        try:
            with self._cuda.Device(self.device), self._nccl.group():
                yield
        finally:
            marks, self.batch = self.batch, None
        for mark in marks:
            mark.record(self._stream)

    def post(self, name: str, function: str, arguments: Sequence[Any], keep: Any,
             finish: Callable[[], None] | None, wakes: bool) -> DeviceOperation:  # fmt: skip
        """Give NCCL one of MPI's operations, behind all work that the device has now."""
        if self.failed is not None:
            raise RuntimeError(f"{name}: NCCL's communicator was aborted: {self.failed}")
        with self._cuda.Device(self.device):
            before = self._cuda.Event(disable_timing=True)
            before.record(self._cuda.get_current_stream())
            self._stream.wait_event(before)
            getattr(self, "_" + function)(*arguments[:-2])
            after = self._cuda.Event(disable_timing=True)
            if self.batch is None:
                after.record(self._stream)
            else:
                self.batch.append(after)
        source = arguments[3] if function == "Irecv" else None
        return DeviceOperation(self, name, after, keep, finish, source)

    def look(self, name: str, seconds: float, timeout: float | None) -> None:
        """Raise RuntimeError, and abort, where an operation cannot end or takes too long."""
        watch, trouble = self._group.ring.watch, ""
        if watch is not None and watch.failed is not None:
            trouble = f"{name} cannot end: {watch.failed}"
        elif timeout is not None and seconds > timeout:
            trouble = f"{name} did not end within {timeout:g} seconds"
        elif error := self._nccl.error(self._communicator):
            trouble = f"{name} failed: {error}"
        if trouble:
            self.failed = trouble
            self._nccl.abort(self._communicator)
            raise RuntimeError(trouble)

    def close(self) -> None:
        """Give the communicator back."""
        if self.failed is None:
            self.failed = "its group was destroyed"
            self._stream.synchronize()
            self._nccl.destroy(self._communicator)

    # -- MPI's operations ----------------------------------------------------------------------
    def _Iallreduce(self, sent: int, received: int, count: int, kind: tuple, op: int) -> None:
        sent = received if sent == _IN_PLACE else sent
        self._nccl.all_reduce(sent, received, count * kind[1], _real(kind, op), op, *self._where())

    def _Ireduce(self, sent: int, received: int, count: int, kind: tuple, op: int,
                 root: int) -> None:  # fmt: skip
        sent, received = (received, received) if sent == _IN_PLACE else (sent, sent)
        self._nccl.reduce(sent, received, count * kind[1], _real(kind, op), op, root,
                          *self._where())  # fmt: skip

    def _Ibcast(self, address: int, count: int, kind: tuple, root: int) -> None:
        self._nccl.broadcast(address, address, count * kind[1], kind[0], root, *self._where())

    def _Iallgather(self, sent: int, count: int, kind: tuple, received: int, *_: Any) -> None:
        self._nccl.all_gather(sent, received, count * kind[1], kind[0], *self._where())

    def _Ireduce_scatter_block(self, sent: int, received: int, count: int, kind: tuple,
                               op: int) -> None:  # fmt: skip
        self._nccl.reduce_scatter(sent, received, count * kind[1], _real(kind, op), op,
                                  *self._where())  # fmt: skip

    def _Igather(self, sent: int, count: int, kind: tuple, received: int, *rest: Any) -> None:
        root, nbytes = rest[-1], count * kind[1]
        with self._nccl.group():
            self._nccl.send(sent, nbytes, kind[0], root, *self._where())
            for rank in range(self._group.size()) if root == self._group.rank() else ():
                at = received + rank * nbytes
                self._nccl.recv(at, nbytes, kind[0], rank, *self._where())

    def _Iscatter(self, sent: int, count: int, kind: tuple, received: int, *rest: Any) -> None:
        root, nbytes = rest[-1], count * kind[1]
        with self._nccl.group():
            for rank in range(self._group.size()) if root == self._group.rank() else ():
                self._nccl.send(sent + rank * nbytes, nbytes, kind[0], rank, *self._where())
            self._nccl.recv(received, nbytes, kind[0], root, *self._where())

    def _Ialltoallv(self, sent: int, counts: int, starts: int, kind: tuple, received: int,
                    counts_in: int, starts_in: int, _: Any) -> None:  # fmt: skip
        size, width = self._group.size(), kind[1]
        tables = [_table(at, size) for at in (counts, starts, counts_in, starts_in)]
        with self._nccl.group():
            for rank, (out, start, into, begin) in enumerate(zip(*tables)):
                self._nccl.send(sent + start * width, out * width, kind[0], rank, *self._where())
                self._nccl.recv(received + begin * width, into * width, kind[0], rank,
                                *self._where())  # fmt: skip

    def _Isend(self, address: int, count: int, kind: tuple, peer: int, tag: int) -> None:
        self._nccl.send(address, count * kind[1], kind[0], self._place(peer), *self._where())

    def _Irecv(self, address: int, count: int, kind: tuple, peer: int | None, tag: int) -> None:
        if peer is None:
            raise RuntimeError("recv: NCCL takes a message from a named rank only")
        self._nccl.recv(address, count * kind[1], kind[0], self._place(peer), *self._where())

    def _place(self, peer: int) -> int:
        """Return a peer's rank in the communicator."""
        return peer if self._peer is None else int(self._group.rank() < peer)

    def _where(self) -> tuple[Any, int]:
        return self._communicator, self._stream.ptr


class DeviceOperation:
    """NCCL operation that a device was given; an `Operation` for `Work`."""

    def __init__(self, queue: DeviceQueue, name: str, over: Any, keep: Any,
                 finish: Callable[[], None] | None, status: int | None) -> None:  # fmt: skip
        self._queue, self.name, self._over = queue, name, over
        self.keep, self._finish, self.status = keep, finish, status
        self.error: BaseException | None = None
        self.count, self._ended = -1, False

    def done(self) -> bool:
        """Return True if it is over, or failed."""
        if not self._ended and self.error is None and self._over.done:
            self._end()
        return self._ended or self.error is not None

    def wait(self, timeout: float | None) -> None:
        """Wait on the host. RuntimeError if it fails, if a process of the job dies, or after
        `timeout` seconds."""
        begun = time.monotonic()
        while self.error is None and not self._over.done:
            waited = time.monotonic() - begun
            try:
                self._queue.look(self.name, waited, timeout)
            except RuntimeError as error:
                self.error = error
            if waited > 0.001:
                time.sleep(0.0001)
        if self.error is not None:
            raise self.error
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            finish, self._finish, self.keep = self._finish, None, None
            if finish is not None:
                finish()


def _check_devices(group: ProcessGroup, own: tuple[str, str]) -> None:
    """Raise RuntimeError in all processes if two have one GPU."""
    with group.ring:
        every = group.communicator.allgather(own)
    for rank, one in enumerate(every):
        first = every.index(one)
        if first != rank:
            raise RuntimeError(
                f"Duplicate GPU detected: rank {rank} and rank {first} both on CUDA device "
                f"{one[1]} of {one[0]}. Choose one by "
                "tracejit.cuda.set_device(int(os.environ['LOCAL_RANK']))"
            )  # fmt: skip


def _real(kind: tuple[int, int], op: int) -> int:
    """Return NCCL's type of the numbers that an operation combines; complex ones only add up."""
    if kind[1] == 2 and op != nccl_library.OPERATIONS["SUM"]:
        raise RuntimeError("NCCL adds complex numbers up, and does nothing else with them")
    return kind[0]


def _table(address: int, size: int) -> list[int]:
    """Return the numbers of a table of int32 that MPI would read at an address."""
    found = (np.ctypeslib.ctypes.c_int32 * size).from_address(address)
    return [int(one) for one in found]
