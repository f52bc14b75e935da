"""Processes of a program; PyTorch's `torch.multiprocessing`, as far as no tensors are shared.

In: the start method, and how many processors there are. Out: what Python's module says; processes
that would look at the same tensors are refused, for a copy would not show what others write.
"""

from __future__ import annotations

from multiprocessing import (
    cpu_count,
    current_process,
    freeze_support,
    get_all_start_methods,
    get_start_method,
    set_start_method,
)
from typing import Any, NoReturn

__all__ = [
    "Pool", "Process", "Queue", "SimpleQueue", "cpu_count", "current_process", "freeze_support",
    "get_all_start_methods", "get_sharing_strategy", "get_start_method", "set_sharing_strategy",
    "set_start_method", "spawn",
]  # fmt: skip


def Process(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: tensors are not shared between processes."""
    raise NotImplementedError("multiprocessing: tensors are not shared between processes; Python's "
                              "own multiprocessing copies them, and DataLoader has num_workers")


Pool = Queue = SimpleQueue = spawn = Process


def get_sharing_strategy() -> str:
    """By what tensors would be shared."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing to choose: tensors are not shared. AssertionError for no strategy."""
    assert new_strategy in ("file_descriptor", "file_system")
