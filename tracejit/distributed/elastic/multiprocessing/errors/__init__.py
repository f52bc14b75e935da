"""Failures of processes; PyTorch's `torch.distributed.elastic.multiprocessing.errors`.

In: how a process ended. Out: an error that names it. Called by `launcher`; scripts decorate their
main function with `record`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

F = TypeVar("F", bound=Callable)


@dataclass
class ProcessFailure:
    """End of a process: its rank on its host, its number, its exit code.

    message  what it said, a traceback if it raised
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    message: str = ""
    timestamp: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        if not self.message and self.exitcode < 0:
            self.message = (f"Signal {-self.exitcode} ({self.signal_name()}) received by PID "
                            f"{self.pid}")  # fmt: skip

    def signal_name(self) -> str:
        """Return the name of the signal that ended it, or "<N/A>"."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<N/A>"

    def timestamp_isoformat(self) -> str:
        """Return the time of its end."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Error: processes of a job failed.

    name      of the function or program
    failures  by global rank
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Return the rank that failed first, and how."""
        rank = min(self.failures, key=lambda one: self.failures[one].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """Return a text with a line for each process."""
        lines = [
            f"rank {rank} (local {one.local_rank}, pid {one.pid}): exit code {one.exitcode} "
            f"{one.message}" for rank, one in self.failures.items()
        ]  # fmt: skip
        return "\n  ".join([f"{self.name} FAILED", *lines])


def record(fn: F, error_handler: object = None) -> F:
    """Return the function itself: the launcher reads a failed process's output."""
    return fn
