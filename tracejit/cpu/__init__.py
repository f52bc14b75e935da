"""CPU as a device; PyTorch's `torch.cpu`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from types import MappingProxyType
from typing import Any

from tracejit.cpu import amp

__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count",
    "get_capabilities", "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    # A text, as in PyTorch: CUDA's function returns a number.
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Do nothing: what was called is done."""


def set_device(device: Any) -> None:
    """Do nothing: there is one CPU."""


def is_initialized() -> bool:
    """Return True."""
    return True


@cache
def get_capabilities() -> Mapping[str, Any]:
    """Return what the processor can do, by the system's names, such as "avx2"."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith(("flags", "Features"))]
    except OSError:
        lines = []
    names = lines[0].partition(":")[2].split() if lines else []
    return MappingProxyType(dict.fromkeys(names, True))


class Stream:
    """Order of work on a device: on the CPU, work is done when its call ends."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Do nothing."""

    def record_event(self) -> None:
        """Do nothing."""

    def wait_event(self, event: Any) -> None:
        """Do nothing."""


class Event:
    """Point in the order of work, which is always behind."""

    def query(self) -> bool:
        """Return True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def wait(self, stream: Any = None) -> None:
        """Do nothing."""


_current = [Stream()]


def current_stream(device: Any = None) -> Stream:
    """Return the stream that was chosen."""
    return _current[-1]


class StreamContext(AbstractContextManager):
    """Chooses a stream in a `with` block, none if it is None."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        _current.append(current_stream() if self.stream is None else self.stream)

    def __exit__(self, *error: Any) -> None:
        _current.pop()


def stream(stream: Stream | None) -> AbstractContextManager:
    """Return a context that chooses a stream."""
    return StreamContext(stream)
