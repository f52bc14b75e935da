"""Streams, events and recorded graphs of CUDA devices: named, and refused when they are made.

In: nothing. Out: classes that annotations and `isinstance` may name. Work on a device runs in the
order in which it was given, in one stream; what is compiled is replayed without a graph of CUDA's.
"""

from __future__ import annotations

from typing import Any


class _Refused:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} is not supported: work on a device runs in one stream, in the "
            "order in which it was given"
        )


class Stream(_Refused):
    """A stream beside the one there is: RuntimeError when it is made."""


class ExternalStream(Stream):
    """A stream of another library: RuntimeError when it is made."""


class Event(_Refused):
    """A mark in a stream: RuntimeError when it is made."""


class CUDAGraph(_Refused):
    """A recording of CUDA's own: RuntimeError when it is made."""


class graph(_Refused):
    """The context in which a CUDAGraph records: RuntimeError when it is made."""


class StreamContext:
    """The context in which a stream is the current one; None is no stream, and changes nothing.

    >>> with StreamContext(None):
    ...     pass
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """The context in which a stream is the current one."""
    return StreamContext(stream)


class _OnlyStream:
    """The one stream of a device, in which all work runs."""

    cuda_stream = 0

    def __init__(self, where: Any) -> None:
        self.device = where

    def synchronize(self) -> None:
        """Wait until all work given so far is done."""
        from tracejit.cuda import synchronize

        synchronize(self.device)

    def query(self) -> bool:
        """Return True, once all work is done."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Nothing: work runs in order."""

    wait_event = wait_stream


def current_stream(device: Any = None) -> _OnlyStream:
    """The stream of a device: the one in which all its work runs.

    AssertionError where there is no such device.
    """
    from tracejit.cuda import device_count

    if not device_count():
        raise AssertionError("Torch not compiled with CUDA enabled")
    return _OnlyStream(device)


default_stream = current_stream


def is_current_stream_capturing() -> bool:
    """Whether calls are recorded instead of run: no."""
    return False
