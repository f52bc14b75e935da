"""Reasons why the source of a function could not be read, so that its control flow is not in sight.

In: the frame of a user's function in which a value is needed. Out: the reason, in words. Called by
the tracer when a value ends a segment.
"""

from __future__ import annotations

import linecache
import os
from types import CodeType, FrameType

from tracejit.jit.capture.hints import DEFINED
from tracejit.jit.capture.location import user_frame
from tracejit.jit.capture.source import candidates, is_left_unread


def with_unread(reason: str, hint: str) -> tuple[str, str]:
    """Return a reason and a hint; if the source of the running user's code was not read, they say
    so.

    >>> with_unread("it is asked", "do not")
    ('it is asked', 'do not')
    """
    unread = why_unread(user_frame())
    return (reason, hint) if unread is None else (f"{unread}; {reason}", hint or DEFINED)


def why_unread(frame: FrameType | None) -> str | None:
    """Return why the code that a frame runs could not be rewritten; None if it could.

    >>> why_unread(None) is None
    True
    """
    if frame is None or not is_left_unread(frame.f_code):
        return None
    return f"the source of {frame.f_code.co_name} cannot be read: {_cause(frame)}"


def _cause(frame: FrameType) -> str:
    code = frame.f_code
    name, lines = code.co_filename, linecache.getlines(code.co_filename, frame.f_globals)
    if lines == ["\n"]:  # from Python 3.13 on, those of an empty file
        lines = []
    if name.startswith("<") and not lines:
        return f"it comes from {name}, which is no file (exec, -c, a prompt)"
    if not lines:
        there = os.path.exists(name)
        return f"{name} {'is empty or no text file' if there else 'is not there'}"
    return _of_lines(code, candidates(code, frame.f_globals))


def _of_lines(code: CodeType, number: int) -> str:
    at = f"line {code.co_firstlineno} of {code.co_filename}"
    if not number:
        return f"it does not begin at {at}: the file has changed"
    if number > 1 and code.co_name == "<lambda>":
        return f"{number} lambdas begin at {at}, and tracejit cannot tell which it is"
    return f"the code at {at} is not the code that runs: the file has changed"
