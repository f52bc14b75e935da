"""Streams and events of any device: named, and refused when they are made.

In: nothing. Out: classes that annotations and `isinstance` may name; PyTorch's `torch.Stream` and
`torch.Event`. Called by nobody here: work runs in the order in which it was given.
"""

from __future__ import annotations

from typing import Any


class _Refused:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{type(self).__name__} is not supported: work on a device runs in one "
                           "stream, in the order in which it was given")


class Stream(_Refused):
    """Stream beside the one there is: RuntimeError when it is made."""


class Event(_Refused):
    """Mark in a stream: RuntimeError when it is made."""
