"""MPI, started once for a process: its library, its world, its functions, types and operations.

In: the process's rank and the number of processes, if a launcher of MPI has not said them. Out: a
`Library`. Called by `groups`, the first time that a group is made.

mpi4py finds and starts the library and makes communicators. Collectives are called by address, from
native code: see `communicator`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from tracejit.core.memory import forks, mpi_forks
from tracejit.core.memory.threads import available_threads
from tracejit.distributed import mpi_settings, shared_memory
from tracejit.distributed.communicator import Communicator
from tracejit.jit.runtime import collective_waits

MISSING = (
    "tracejit.distributed needs mpi4py and an MPI library: pip install 'tracejit[distributed]'"
)
_MOST = 2**31 - 1  # elements that MPI's older functions count
# tracejit's dtype -> mpi4py's type, for what MPI adds or compares itself
_TYPES = {
    "bool": "C_BOOL", "uint8": "UINT8_T", "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T",
    "int64": "INT64_T", "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
# bytes of an element -> mpi4py's type, for what only moves
_WORDS = {
    1: "UINT8_T", 2: "UINT16_T", 4: "UINT32_T", 8: "UINT64_T", 16: "C_DOUBLE_COMPLEX",
}  # fmt: skip


class Library:
    """The MPI library of this process, started.

    world         mpi4py's communicator of all processes
    ring          calls MPI for all groups
    in_place      address that stands for "the result's own memory"
    """

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.world = mpi.COMM_WORLD
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self._functions: dict[str, int] = {}
        self._handles: dict[str, int] = {}
        self.in_place = _word(mpi.IN_PLACE)
        self.any_source = int(mpi.ANY_SOURCE)
        self._c = ctypes.CDLL(mpi.__file__)  # finds the functions of the library behind it
        node = self.world.Split_type(mpi.COMM_TYPE_SHARED, self.rank)
        self.local_rank, self.local_size = node.Get_rank(), node.Get_size()
        if self.local_rank == 0:
            shared_memory.unlink_mapped()  # the split ends when all are out of MPI_Init
        self.ring = Communicator(
            self.function("Test"), self.error_text, self.local_size > available_threads()
        )
        collective_waits.install(self.ring.wait_for_flight, self.ring.abandon)
        self.server_connection = -1  # descriptor of the library's own connection to a PMI server
        self.launched = False  # by a launcher of MPI's own
        self.over = False  # MPI was ended
        self.shrunk = False  # processes died, and MPI_Finalize may wait for them
        self.failed = False  # this process gave up: it must not wait for the others at its end

    def function(self, name: str) -> int:
        """Return the address of `MPI_<name>`; AttributeError where the library has none."""
        if name not in self._functions:
            found = getattr(self._c, f"MPI_{name}")
            self._functions[name] = ctypes.cast(found, ctypes.c_void_p).value or 0
        return self._functions[name]

    def counting(self, name: str, count: int) -> int:
        """Return the address of `MPI_<name>`, or of its form for counts of 64 bits if `count` needs
        them."""
        if count <= _MOST:
            return self.function(name)
        try:
            return self.function(f"{name}_c")
        except AttributeError:
            raise RuntimeError(f"this MPI library moves at most {_MOST} elements at once, got "
                               f"{count}; send the tensor in parts") from None

    def functions_of(self, name: str) -> tuple[int, int]:
        """Return the addresses of `MPI_<name>` and of its form for counts of 64 bits; 0 for one
        that is missing."""
        try:
            return self.function(name), self.function(f"{name}_c")
        except AttributeError:
            return self.function(name), 0

    def element(self, dtype: str) -> int:
        """Return the handle of the type that MPI reduces for a dtype's name."""
        return self._named(_TYPES[dtype])

    def word(self, itemsize: int) -> int:
        """Return the handle of a type of so many bytes, for memory that only moves."""
        return self._named(_WORDS[itemsize])

    def operation(self, name: str) -> int:
        """Return the handle of `MPI_<name>`, such as SUM."""
        return self._named(name)

    def _named(self, name: str) -> int:
        if name not in self._handles:
            self._handles[name] = _word(self.mpi._handleof(getattr(self.mpi, name)))
        return self._handles[name]

    def handle(self, communicator: Any) -> int:
        """Return the handle of one of mpi4py's communicators."""
        return _word(self.mpi._handleof(communicator))

    def end(self) -> None:
        """Call MPI_Finalize, by address for the same reason as MPI_Init_thread."""
        self._c.MPI_Finalize()

    def leave_server(self) -> None:
        """Give the library its server's last answer in advance.

        MPICH says good-bye to its PMI server when the C library ends the process, and crashes if
        nobody answers. By then the server may be gone, with the process that it lives in.
        """
        if self.server_connection < 0:
            return
        ours, theirs = socket.socketpair()
        ours.sendall(b"cmd=finalize_ack rc=0\n")
        os.dup2(theirs.fileno(), self.server_connection)
        theirs.close()
        ours.detach()  # it stays open as long as the process
        self.server_connection = -1

    def source_of(self, status: bytes) -> int:
        """Return the rank that a message came from, of MPI's status of it."""
        made = self.mpi.Status()
        ctypes.memmove(self.mpi._addressof(made), status, self.mpi._sizeof(made))
        return int(made.Get_source())

    def error_text(self, code: int) -> str:
        """Return MPI's text for a code."""
        return str(self.mpi.Get_error_string(code))


def _word(handle: Any) -> int:
    """Return a handle, an int or an address, as the signed word that the ring holds."""
    return ctypes.c_int64(int(handle)).value


_library: Library | None = None
_lock = forks.rlock()


def started() -> Library | None:
    """Return the library if MPI runs in this process."""
    return _library


def is_installed() -> bool:
    """Return True if mpi4py can be imported; MPI is not started."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def start(
    rank: int | None = None, size: int | None = None, server: int = -1,
    told: Mapping[str, str] | None = None,
) -> Library:  # fmt: skip
    """Start MPI, or return what was started before.

    rank, size  of this process, if a server tells them; else the launcher of MPI says them
    server      descriptor of a connection to a job's PMI server, which becomes the library's own:
                it asks there for the other processes
    told        variables by which the library finds the others, if not by that server

    Raises RuntimeError if there is no MPI, or if it sees another rank or another number of
    processes.
    """
    global _library
    with _lock:
        if _library is None:
            if server >= 0:
                names = {"PMI_FD": server, "PMI_RANK": rank, "PMI_SIZE": size}
                told = {name: str(value) for name, value in names.items()}
            _library = _start(server, told)
        found = _library
    if found.over:
        raise RuntimeError("MPI was ended in this process and cannot start again")
    if size is not None and (found.size, found.rank) != (size, rank):
        raise RuntimeError(
            f"MPI sees rank {found.rank} of {found.size} processes, expected rank {rank} of "
            f"{size}: the library ({library_name()}) was started for another job, or not by its "
            "own launcher; start the processes by its mpiexec, or use MPICH (pip install mpich)"
        )
    return found


def _module() -> Any:
    """Return mpi4py's module; MPI is not started. RuntimeError if it or the library is missing."""
    try:
        import mpi4py
    except ImportError as error:
        raise RuntimeError(MISSING) from error
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    mpi4py.rc.thread_level = "serialized"
    try:
        from mpi4py import MPI as mpi
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(f"{MISSING} ({error})") from error
    return mpi


def library_name() -> str:
    """Return the name of the MPI library that mpi4py finds, such as "MPICH" or "Open MPI".

    RuntimeError if there is none.
    """
    return str(_module().get_vendor()[0])


def _start(server: int, told: Mapping[str, str] | None) -> Library:
    mpi_settings.apply()
    launched, told = told is None, told or {}
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        mpi = _module()
        if not mpi.Is_initialized():
            # By address, for mpi4py would hold the interpreter's lock, which a PMI server in this
            # process needs.
            provided = ctypes.c_int(0)
            code = ctypes.CDLL(mpi.__file__).MPI_Init_thread(
                None, None, ctypes.c_int(mpi.THREAD_SERIALIZED), ctypes.byref(provided)
            )
            if code:
                raise RuntimeError(f"MPI cannot start: {mpi.Get_error_string(code)}")
    finally:
        # children of this process are not ranks of the job
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        raise RuntimeError("this MPI library allows calls from one thread only "
                           "(MPI_THREAD_SERIALIZED is needed)")
    mpi.COMM_WORLD.Set_errhandler(mpi.ERRORS_RETURN)
    made = Library(mpi)
    made.launched, made.server_connection = launched, server
    if server >= 0:
        forks.in_child(made.leave_server)
    atexit.register(finish)
    mpi_forks.install()
    return made


def finish(patience: float = 10.0) -> None:
    """End MPI when the process ends, if all processes come to their end within `patience` seconds.

    A process that gave up does not wait for the others: its launcher ends them. A launcher of MPI's
    own takes a process that leaves MPI unended for one that failed: with it there is no limit.
    """
    found = _library
    if found is None or found.over or found.ring.forked:
        return
    found.over = True
    if found.ring.watch is not None and not found.failed:
        from tracejit.distributed import groups

        found.ring.watch.tell_end(groups.posted())
    found.ring.shut_down()
    if _may_end(found, patience) and not found.shrunk:
        found.end()
    found.leave_server()


def _may_end(found: Library, patience: float) -> bool:
    """Return True if MPI_Finalize will not hang: nobody failed, and all are at their end."""
    ring = found.ring
    given_up = found.failed or getattr(sys, "last_value", None) is not None
    if given_up or ring.waiting() or (ring.watch is not None and ring.watch.failed):
        return False
    return _all_here(found, patience)


def _all_here(found: Library, patience: float) -> bool:
    """Return True if all processes are at their end."""
    request = found.world.Ibarrier()
    deadline = time.monotonic() + patience
    watch = found.ring.watch
    while not request.Test():
        late = time.monotonic() > deadline and not found.launched
        if late or (watch is not None and watch.failed):
            return False
        time.sleep(0.0005)
    return True
