"""Streams, events and recorded graphs of CUDA devices: they have names, and refuse to be made.

In: nothing. Out: classes that annotations and `isinstance` may name. Work on a device runs in one
stream, in the order in which it was given. Compiled programs are replayed without a graph of
CUDA's.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import sealing as _sealing


class _Refused:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} is not supported: work on a device runs in one stream, in the "
            "order in which it was given"
        )


class Stream(_Refused):
    """Stream beside the one there is: RuntimeError when it is made."""


class ExternalStream(Stream):
    """Stream of another library: RuntimeError when it is made."""


class Event(_Refused):
    """Mark in a stream: RuntimeError when it is made."""


class CUDAGraph(_Refused):
    """Recording of CUDA's own: RuntimeError when it is made."""


class graph(_Refused):
    """Context in which a CUDAGraph records: RuntimeError when it is made."""


class StreamContext:
    """Context in which a stream is the current one; None is no stream, and changes nothing.

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
    """Return the context in which a stream is the current one."""
    return StreamContext(stream)


class _OnlyStream:
    """Only stream of a device, in which all work runs."""

    cuda_stream = 0

    def __init__(self, where: Any) -> None:
        self.device = where

    def synchronize(self) -> None:
        """Wait until all work given so far is done."""
        from tracejit.cuda import synchronize

        synchronize(self.device)

    def query(self) -> bool:
        """Wait until all work is done, and return True."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: work runs in order."""

    wait_event = wait_stream


def current_stream(device: Any = None) -> _OnlyStream:
    """Return the stream of a device: the one in which all its work runs.

    AssertionError where there is no such device.
    """
    from tracejit.cuda import device_count

    if not device_count():
        raise AssertionError("Torch not compiled with CUDA enabled")
    return _OnlyStream(device)


default_stream = current_stream


def is_current_stream_capturing() -> bool:
    """Return False: calls are never recorded instead of run."""
    return False


_sealing.seal_all(globals())
