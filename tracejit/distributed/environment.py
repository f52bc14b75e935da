"""Finds the place of a process among its peers from its launcher's environment variables.

In: environment variables of torchrun and of `tracejit.distributed.run`, Open MPI, PMI (MPICH, Intel
MPI) and Slurm. Out: one `Place`, or None for a process that nobody started as one of several.
Called by `rendezvous`, `groups`, and by programs that want their local rank.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tracejit.distributed import slurm

# Variables that belong to the process which MPI's launcher started, not to its children.
LAUNCHER_PREFIXES = ("OMPI_", "PMI_", "PMIX_", "HYDI_", "PRTE_", "MPI_LOCAL")
# Settings of a library under the same prefixes: children may keep them.
_SETTINGS = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_")


@dataclass(frozen=True)
class Place:
    """The place of a process in its job. Numbers that the launcher did not tell are -1.

    node_rank     number of this host
    master_addr, master_port  where rank 0 serves the job; "" and 0 if nobody said it
    started_by    "torchrun", "openmpi", "pmi" or "slurm"
    by_mpi        MPI's own launcher started the process, so that MPI_Init finds the others
    """

    rank: int
    world_size: int
    local_rank: int = -1
    local_world_size: int = -1
    node_rank: int = -1
    master_addr: str = ""
    master_port: int = 0
    started_by: str = ""
    by_mpi: bool = False


@dataclass(frozen=True)
class _Launcher:
    """The variables of one launcher, by what they tell; the first that is set counts."""

    name: str
    rank: tuple[str, ...]
    world_size: tuple[str, ...]
    local_rank: tuple[str, ...] = ()
    local_world_size: tuple[str, ...] = ()
    node_rank: tuple[str, ...] = ()


_TORCHRUN = _Launcher(
    "torchrun", ("RANK",), ("WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",), ("GROUP_RANK",)
)
_OPENMPI = _Launcher(
    "openmpi", ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",),
    ("OMPI_COMM_WORLD_LOCAL_RANK",), ("OMPI_COMM_WORLD_LOCAL_SIZE",),
)  # fmt: skip
_PMI = _Launcher(
    "pmi", ("PMI_RANK",), ("PMI_SIZE",), ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"),
    ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"),
)  # fmt: skip
# A batch script itself has SLURM_PROCID=0 and SLURM_NTASKS too: only a step's variables count.
_SLURM = _Launcher(
    "slurm", ("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), ("SLURM_LOCALID",),
    node_rank=("SLURM_NODEID",),
)  # fmt: skip


def read(environ: Mapping[str, str] | None = None) -> Place | None:
    """Return this process's place, or None if no launcher's variables are set.

    Variables of torchrun count before those of MPI's launchers, which count before Slurm's.
    Raises ValueError for a variable that is no number, and for a rank outside the world.

    >>> read({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}).rank
    1
    >>> read({"PMI_RANK": "0", "PMI_SIZE": "4", "PMI_FD": "7"}).by_mpi
    True
    >>> read({}) is None
    True
    """
    env = os.environ if environ is None else environ
    torchrun = _place(_TORCHRUN, env)
    if torchrun is not None and "TORCHELASTIC_RUN_ID" in env:
        return torchrun  # its agent may run below mpiexec, whose variables name the agent
    by_mpi = _of_mpi(env)
    if torchrun is None or by_mpi is None:
        return torchrun or by_mpi
    if (by_mpi.rank, by_mpi.world_size) != (torchrun.rank, torchrun.world_size):
        return torchrun
    # a wrapper of the program translated the launcher's variables
    told = {
        name: max(getattr(torchrun, name), getattr(by_mpi, name))
        for name in ("local_rank", "local_world_size", "node_rank")
    }
    return Place(
        by_mpi.rank, by_mpi.world_size, told["local_rank"], told["local_world_size"],
        told["node_rank"], by_mpi.master_addr, by_mpi.master_port, by_mpi.started_by, by_mpi.by_mpi,
    )  # fmt: skip


def without_launcher(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those by which MPI would take a child for a rank of the job.

    >>> without_launcher({"HOME": "/", "PMI_RANK": "0", "OMPI_MCA_smsc": "^cma"})
    {'HOME': '/', 'OMPI_MCA_smsc': '^cma'}
    """
    return {name: value for name, value in environ.items() if not _is_launchers(name)}


def _is_launchers(name: str) -> bool:
    return name.startswith(LAUNCHER_PREFIXES) and not name.startswith(_SETTINGS)


def _of_mpi(env: Mapping[str, str]) -> Place | None:
    """Return the place that a launcher of MPI or Slurm tells."""
    for launcher in (_OPENMPI, _PMI):
        found = _place(launcher, env, by_mpi=True)
        if found is not None:
            return found
    if "SLURM_STEP_ID" in env or "SLURM_STEP_NUM_TASKS" in env:
        # `srun --mpi=pmix` or `=pmi2` serve MPI_Init, `--mpi=none` does not
        served = any(name in env for name in ("PMIX_RANK", "PMI_FD", "PMI_PORT"))
        return _place(_SLURM, env, by_mpi=served)
    return None


def _place(launcher: _Launcher, env: Mapping[str, str], by_mpi: bool = False) -> Place | None:
    rank, size = _number(launcher.rank, env), _number(launcher.world_size, env)
    if rank == -1 or size == -1:
        return None
    if not 0 <= rank < size:
        raise ValueError(
            f"environment variables {launcher.rank[0]}={rank} and {launcher.world_size[0]}={size} "
            "contradict each other"
        )
    node = _number(launcher.node_rank, env)
    local_size = _number(launcher.local_world_size, env)
    address, port = env.get("MASTER_ADDR", ""), max(_number(("MASTER_PORT",), env), 0)
    if launcher is _SLURM:
        local_size = slurm.tasks_of_node(env, node)
        address, port = address or slurm.first_host(env), port or slurm.port(env)
    return Place(
        rank, size, _number(launcher.local_rank, env), local_size, node, address, port,
        launcher.name, by_mpi,
    )  # fmt: skip


def _number(names: tuple[str, ...], env: Mapping[str, str]) -> int:
    """Return the value of the first variable that is set, -1 if none is."""
    for name in names:
        text = env.get(name, "")
        if text:
            try:
                return int(text)
            except ValueError:
                raise ValueError(f"environment variable {name} is {text!r}, expected a number"
                                 ) from None  # fmt: skip
    return -1


@functools.cache
def host() -> str:
    """Return a name of this host that two processes share only if they can share memory.

    Containers and network namespaces of one machine count as hosts of their own.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(os.stat("/dev/shm").st_dev))
    for kind in ("ipc", "net", "pid", "user"):
        with contextlib.suppress(OSError):
            parts.append(os.readlink(f"/proc/self/ns/{kind}"))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]
