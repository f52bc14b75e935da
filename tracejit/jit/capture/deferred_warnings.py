"""`warnings.warn` in a captured function: shown when output is, and again by each replay.

In: calls of it in recorded code. Out: a `HostEffect` on the tracer, which warns as the line of the
user's program would. It asks each time what the filters say and what was shown before. Where the
call changes filters, as `warnings.catch_warnings` does, a replay says so, too. A warning after that
is shown at once. Called by `calls`, by the watcher of a call and by the entry maker.
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
    """`warnings.warn(message, category, stacklevel, source)`, put off until output is."""
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
    """Tell it once more: nothing, as its own call did both."""


def _open_blocks(tracer: Any) -> int:
    told = [effect.function for effect in tracer.output]
    return told.count(_begun) - told.count(_ended)


def _changed(tracer: Any) -> bool:
    """Return True if recorded code has changed the filters, perhaps for a block only."""
    return any(effect.function is _begun for effect in tracer.output)


def changes_filters(tracer: Any, frame: FrameType) -> bool:
    """Return True for what code of `OF_FILTERS` does, if it is over when its block ends.

    False outside of such blocks, for blocks that take what is shown, and where output that waits
    would meet other filters.
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
    """Refuse a call that leaves a block of filters open."""
    if _open_blocks(tracer):
        raise NotCacheable("the function changes the filters of warnings")


def may_be_error(category: type) -> bool:
    """Return True if a filter may make errors of such warnings."""
    return any(
        action == "error" and issubclass(category, kind)
        for action, _, kind, _, _ in warnings.filters
    )


def _warner(frame: FrameType | None, category: Any, level: int) -> Callable[[Any], None] | None:
    """Return a function that warns as the user's frame `level` frames up would. Return None if that
    may be an error, which is raised at once, or if there is no such frame."""
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
