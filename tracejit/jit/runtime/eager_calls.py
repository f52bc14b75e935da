"""Chooses and makes the native function of a small eager op.

In: a record with `fast`. Out: the function; `declines` where this interpreter has none, None within
a recording. Called by `core.ops.direct_calls`, in which `tracejit/__init__.py` installs `made`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.ops.direct_calls import declines
from tracejit.core.ops.record import Op
from tracejit.jit.runtime import eager_elementwise, eager_words

_KINDS: dict[str, Callable[[Op], Callable[..., Any]]] = {
    "elementwise": eager_elementwise.direct,
}


def made(op: Op) -> Callable[..., Any] | None:
    """Make the native function of an op."""
    if active.tracer is not None:
        return None
    if not eager_words.available():
        return declines
    return _KINDS[op.fast](op)
