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


def is_current_stream_capturing() -> bool:
    """Whether calls are recorded instead of run: no."""
    return False
