"""Processes that work together; PyTorch's `torch.distributed`, where there is only one process.

In: questions of programs before they decide to be one process of several. Out: the answer that they
are alone. Functions that would make a group, or need one, raise.
"""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any, NoReturn

__all__ = [
    "Backend", "ProcessGroup", "ReduceOp", "all_gather", "all_reduce", "barrier", "broadcast",
    "destroy_process_group", "get_backend", "get_rank", "get_world_size", "group",
    "init_process_group", "is_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "new_group", "reduce",
    "refuse",
]  # fmt: skip


class ReduceOp(Enum):
    """Operation that combines the values of processes."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


class Backend(str):
    """Name of the library by which processes talk."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


class ProcessGroup:
    """Group of processes, for annotations only: there are none."""


# None is PyTorch's value before init_process_group.
group = SimpleNamespace(WORLD=None)


def refuse(name: str) -> NoReturn:
    """Raise NotImplementedError for a function that needs several processes."""
    raise NotImplementedError(f"{name} needs processes that talk to each other; tracejit computes "
                              "in one process")


def is_available() -> bool:
    """Return False: there are no groups of processes."""
    return False


is_initialized = is_torchelastic_launched = is_available
is_gloo_available = is_mpi_available = is_nccl_available = is_available


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: there is one process."""
    refuse("init_process_group")


def get_rank(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ValueError, as PyTorch does without a group."""
    raise ValueError("Default process group has not been initialized, please make sure to call "
                     "init_process_group.")


# All need a group, and raise the same error without one.
get_world_size = get_backend = barrier = new_group = destroy_process_group = get_rank
all_gather = all_reduce = broadcast = reduce = get_rank

# Programs annotate with `torch.distributed.device_mesh.DeviceMesh` and import no more than torch.
from tracejit.distributed import device_mesh  # noqa: E402, F401
