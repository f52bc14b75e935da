"""Processes that work together; PyTorch's `torch.distributed`, where there is only one process.

In: the questions that programs ask before they decide to be one process of several. Out: that they
are alone; what would make a group, or needs one, raises.
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
    """How what processes have becomes one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


class Backend(str):
    """The name of what processes talk by."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


class ProcessGroup:
    """Processes that work together; there are none, for annotations only."""


group = SimpleNamespace(WORLD=None)


def refuse(name: str) -> NoReturn:
    """NotImplementedError for what needs several processes."""
    raise NotImplementedError(f"{name} needs processes that talk to each other; tracejit computes "
                              "in one process")


def is_available() -> bool:
    """Whether there can be groups of processes: no."""
    return False


is_initialized = is_torchelastic_launched = is_available
is_gloo_available = is_mpi_available = is_nccl_available = is_available


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is one process."""
    refuse("init_process_group")


def get_rank(*args: Any, **kwargs: Any) -> NoReturn:
    """ValueError, as without a group in PyTorch."""
    raise ValueError("Default process group has not been initialized, please make sure to call "
                     "init_process_group.")


get_world_size = get_backend = barrier = new_group = destroy_process_group = get_rank
all_gather = all_reduce = broadcast = reduce = get_rank

# Programs annotate with `torch.distributed.device_mesh.DeviceMesh` and import no more than torch.
from tracejit.distributed import device_mesh  # noqa: E402, F401
