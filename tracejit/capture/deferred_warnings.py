"""`warnings.warn` in a captured function: shown when output is, and again by each replay.

In: calls of it in recorded code. Out: an `Output` on the recorder, which warns as the line of the
user's program would: what the filters say and what was shown before is asked each time. Called by
`calls`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from tracejit.capture.host_effects import NotDeferrable, Output, deferring, frozen, instead
from tracejit.capture.location import is_own
from tracejit.capture.looking import is_a


def deferred_warn(
    message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any
) -> None:
    """`warnings.warn(message, category, stacklevel, source)`, put off until output is."""
    recorder = deferring()
    plain = source is None and not more and type(stacklevel) is int
    warn = _warner(sys._getframe(1), category or UserWarning, stacklevel) if plain else None
    try:
        if recorder is not None and warn is not None:
            recorder.output.append(Output(warn, (frozen(recorder, message),)))
            return recorder.asks(may_be_error, category or UserWarning)
    except NotDeferrable:
        pass
    instead("warnings.warn")
    warnings.warn(message, category, stacklevel + 1, source, **more)
    return None


def may_be_error(category: type) -> bool:
    """Whether a filter may make errors of such warnings."""
    return any(
        action == "error" and issubclass(category, kind)
        for action, _, kind, _, _ in warnings.filters
    )


def _warner(frame: FrameType | None, category: Any, level: int) -> Callable[[Any], None] | None:
    """What warns as the user's frame `level` frames up would; None where that may be an error,
    which is raised at once, or where there is no such frame."""
    if not is_a(category, type) or may_be_error(category):
        return None
    while frame is not None and (is_own(frame.f_code) or level > 1):
        level -= not is_own(frame.f_code)
        frame = frame.f_back
    if frame is None or level < 1:
        return None
    names = frame.f_globals
    place = frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<string>")

    def warn(message: Any) -> None:
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, *place, registry)

    return warn
