"""A stand-in for NCCL and CuPy's streams, for processes without a GPU: MPI moves what NCCL would.

In: nothing. Out: `install()` puts a CUDA device of host memory in place, with streams whose work
runs when somebody waits for an event behind it. It is strict: calls must be the same in all
processes and in one order, come from a stream that waits for the device's own work, and be whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np

NUMPY = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
         np.float64, ml_dtypes.bfloat16]  # fmt: skip
COMBINE = [np.add, np.multiply, np.maximum, np.minimum]
calls: list[str] = []  # names of NCCL's functions, in the order of their calls
fault: list[str] = []  # what the next wait finds: an error of NCCL, or "never" for no end


class Stream:
    """A stream; the null stream runs its work at once."""

    def __init__(self, null=False, non_blocking=False):
        self.ptr = 0 if null else 4096 + id(self) % 4096
        self.work, self.follows, self.null = [], False, null
        STREAMS[self.ptr] = self

    def wait_event(self, event):
        assert event.stream is not None, "the event was never recorded"
        self.follows = True

    def run(self, until):
        if fault:
            return
        while self.work and (until is None or self.work[0] is not until):
            one = self.work.pop(0)
            if callable(one):
                one()

    def synchronize(self):
        self.run(None)


class Event:
    """A mark in a stream."""

    def __init__(self, block=False, disable_timing=False):
        self.stream = None

    def record(self, stream):
        self.stream = stream
        stream.work.append(self)

    @property
    def done(self):
        self.stream.run(self)
        return not fault

    def synchronize(self):
        assert self.done


STREAMS: dict[int, Stream] = {}


class Nccl:
    """What `nccl_library` has, over MPI and host memory."""

    def __init__(self):
        self.communicators, self.open = 0, None

    @property
    def mpi(self):
        from mpi4py import MPI  # which `init_process_group` has started

        return MPI

    def unique_id(self):
        return os.urandom(128)

    def join(self, size, unique_id, rank):
        assert type(unique_id) is bytes and len(unique_id) == 128
        joined = self._of(unique_id, size, rank)
        assert (joined.Get_size(), joined.Get_rank()) == (size, rank)
        self.communicators += 1
        return joined

    def _of(self, unique_id, size, rank):
        """Make a communicator of those who have an id: they meet in the job's store."""
        from tracejit.distributed.distributed_c10d import _get_default_store

        store, world = _get_default_store(), self.mpi.COMM_WORLD
        store.set(f"{unique_id.hex()}/{rank}", str(world.Get_rank()))
        ranks = [int(store.get(f"{unique_id.hex()}/{k}")) for k in range(size)]
        assert len(set(ranks)) == size
        return world.Create_group(world.Get_group().Incl(ranks), unique_id[0])

    def error(self, communicator):
        return "" if fault in ([], ["never"]) else fault[0]

    def abort(self, communicator):
        calls.append("abort")

    def destroy(self, communicator):
        assert self.open is None
        self.communicators -= 1

    @contextlib.contextmanager
    def group(self):
        assert self.open is None, "groups do not nest here"
        self.open = []
        yield
        steps, self.open = self.open, None
        assert len({stream for stream, _ in steps}) <= 1
        if steps:
            steps[0][0].work.append(lambda: self._together([step for _, step in steps]))

    def _together(self, steps):
        """Receive and send at once: receives are posted first."""
        waits = [step() for step in sorted(steps, key=lambda step: step.sends)]
        self.mpi.Request.Waitall([one for one in waits if one is not None])

    def _add(self, name, where, step, told=None):
        communicator, address = where
        calls.append(name)
        stream = STREAMS[address]
        assert stream.follows and not stream.null, "NCCL must wait for the device's work"

        def run():
            if told is not None:
                every = communicator.allgather((name, *told))
                assert len(set(every)) == 1, every
            step()

        stream.work.append(run)

    def all_reduce(self, sent, received, count, kind, op, *where):
        a, b = at(sent, count, kind), at(received, count, kind)

        def step():
            b[...] = COMBINE[op].reduce(np.stack(where[0].allgather(a.copy())))

        self._add("all_reduce", where, step, (count, kind, op))

    def reduce(self, sent, received, count, kind, op, root, *where):
        a, b = at(sent, count, kind), at(received, count, kind)

        def step():
            every = where[0].gather(a.copy(), root)
            if every is not None:
                b[...] = COMBINE[op].reduce(np.stack(every))

        self._add("reduce", where, step, (count, kind, op, root))

    def broadcast(self, sent, received, count, kind, root, *where):
        a, b = at(sent, count, kind), at(received, count, kind)

        def step():
            b[...] = where[0].bcast(a.copy(), root)

        self._add("broadcast", where, step, (count, kind, root))

    def all_gather(self, sent, received, count, kind, *where):
        a, b = at(sent, count, kind), at(received, count * where[0].Get_size(), kind)

        def step():
            b[...] = np.concatenate(where[0].allgather(a.copy()))

        self._add("all_gather", where, step, (count, kind))

    def reduce_scatter(self, sent, received, count, kind, op, *where):
        size, rank = where[0].Get_size(), where[0].Get_rank()
        a, b = at(sent, count * size, kind), at(received, count, kind)

        def step():
            whole = COMBINE[op].reduce(np.stack(where[0].allgather(a.copy())))
            b[...] = whole[rank * count : (rank + 1) * count]

        self._add("reduce_scatter", where, step, (count, kind, op))

    def send(self, address, count, kind, peer, *where):
        self._message("send", address, count, kind, peer, where)

    def recv(self, address, count, kind, peer, *where):
        self._message("recv", address, count, kind, peer, where)

    def _message(self, name, address, count, kind, peer, where):
        assert 0 <= peer < where[0].Get_size()
        words, sends = at(address, count, kind).view(np.uint8), name == "send"

        def step():
            begin = where[0].Isend if sends else where[0].Irecv
            return begin([words, self.mpi.BYTE], peer)

        step.sends = sends
        if self.open is None:
            self._add(name, where, lambda: step().Wait())
        else:
            calls.append(name)
            self.open.append((STREAMS[where[1]], step))


def at(address, count, kind):
    """The numbers at an address."""
    assert kind in range(len(NUMPY)) and count >= 0 and (address > 0 or not count)
    nbytes = count * np.dtype(NUMPY[kind]).itemsize
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address or 1), NUMPY[kind], count) \
        if nbytes else np.empty(0, NUMPY[kind])


def install():
    """Put a device, its streams and NCCL in place; call it before tracejit is imported."""
    import numpy

    source = Path(__file__).parent / "numpy_as_cupy.py"
    place = Path(numpy.__file__).parent.parent / "cupy" / source.name
    stand_in = sys.modules["numpy_as_cupy"] = ModuleType("numpy_as_cupy")
    exec(compile(source.read_text(), str(place), "exec"), stand_in.__dict__)
    cupy = stand_in.install()
    cupy.__spec__, cuda = ModuleSpec("cupy", None), cupy.cuda
    null = Stream(null=True)
    cuda.Stream, cuda.Event, cuda.get_current_stream = Stream, Event, lambda: null
    cuda.Device.pci_bus_id = os.environ.get("GPU_OF_RANK") or os.environ["RANK"]

    from tracejit.distributed import nccl_library

    nccl_library._loaded[:] = [Nccl()]
    return nccl_library._loaded[0]
