"""`warnings.warn` in a captured function: shown with the other output, and again by each replay.

In: calls of it in recorded code. Out: a `HostEffect` on the tracer, which warns for the user's
line, and each time follows the filters and the record of warnings shown. Where the call changes
filters, as `warnings.catch_warnings` does, a replay tells the interpreter so. A warning after that
is shown at once. Called by `calls`, by the session for its watcher, and when an entry is made.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from tracejit.jit.capture.epilogue import NotCacheable
from tracejit.jit.capture.known_reads import BEGINS_FILTERS, ENDS_FILTERS, SETS_FILTERS
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.output import (
    HostEffect,
    NotDeferrable,
    before_native_effect,
    deferring_tracer,
    freeze,
)


def deferred_warn(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any
) -> None:
    """Do `warnings.warn(message, category, stacklevel, source)` with other output, or at once."""
    tracer = deferring_tracer()
    plain = source is None and not more and type(stacklevel) is int
    warn = _warner(sys._getframe(1), category or UserWarning, stacklevel) if plain else None
    try:
        if tracer is not None and warn is not None and not _changed(tracer):
            tracer.output.append(HostEffect(warn, (freeze(tracer, message),)))
            return tracer.asks(may_be_error, category or UserWarning)
    except NotDeferrable:
        pass
    before_native_effect("warnings.warn")
    warnings.warn(message, category, stacklevel + 1, source, **more)
    return None


def _begun() -> None:
    """Tell the interpreter, as the block does, that what was shown once may be shown again."""
    with warnings.catch_warnings():
        pass


def _ended() -> None:
    """Mark the end of a block of filters. Do nothing: `_begun` entered and left a block."""


def _open_blocks(tracer: Any) -> int:
    told = [effect.function for effect in tracer.output]
    return told.count(_begun) - told.count(_ended)


def _changed(tracer: Any) -> bool:
    """Return True if recorded code entered a block that changes the filters."""
    return any(effect.function is _begun for effect in tracer.output)


def changes_filters(tracer: Any, frame: FrameType) -> bool:
    """Return True if the call stays cacheable though it runs this code of `OF_FILTERS`.

    It does if the change ends with its block; record where the block begins and ends. Return False
    outside of such blocks, for blocks with `record=True`, and where waiting output would meet other
    filters.
    """
    code = frame.f_code
    if tracer is not deferring_tracer():
        return False
    if code is BEGINS_FILTERS:
        before = tracer.output or tracer.pending
        if frame.f_locals["self"]._record or before and not _changed(tracer):
            return False
        tracer.output.append(HostEffect(_begun, ()))
    elif code is ENDS_FILTERS:
        tracer.output.append(HostEffect(_ended, ()))
    return code not in SETS_FILTERS or _open_blocks(tracer) > 0


def must_be_over(tracer: Any) -> None:
    """Raise NotCacheable if the call leaves a block of filters open."""
    if _open_blocks(tracer):
        raise NotCacheable("the function changes the filters of warnings")


def may_be_error(category: type) -> bool:
    """Return True if a filter may make errors of warnings of this category."""
    return any(
        action == "error" and issubclass(category, kind)
        for action, _, kind, _, _ in warnings.filters
    )


def _warner(frame: FrameType | None, category: Any, level: int) -> Callable[[Any], None] | None:
    """Return a function that warns for the user's frame `level` frames up. Return None if there is
    no such frame, or if the warning may be an error, which must be raised at once."""
    if not is_a(category, type) or may_be_error(category):
        return None
    while frame is not None and (is_internal_code(frame.f_code) or level > 1):
        level -= not is_internal_code(frame.f_code)
        frame = frame.f_back
    if frame is None or level < 1:
        return None
    names = frame.f_globals
    place = frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<string>")

    def warn(message: Any) -> None:
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, *place, registry)

    return warn
