"""Tracebacks as users read them: their own frames, and one line that says what tracejit was doing.

In: an exception that leaves a sealed function (`core/ops/sealing.py`) for code of the user's. Out:
the same exception; its traceback has the user's frames only, its chain no exception that began and
ended inside, and a note names the op. Called on the way of errors alone. `TRACEJIT_TRACEBACKS=full`
and debuggers keep every frame.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType

import numpy

from tracejit.config import flags
from tracejit.core.eager import traceback_notes, wrong_calls
from tracejit.core.ops import sealing

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_SITE = os.path.dirname(os.path.dirname(numpy.__file__)) + os.sep
# Code that is hidden where hidden code called it: what we build on, and Python's library.
_BELOW = (*(_SITE + name + os.sep for name in ("numpy", "numba", "llvmlite", "scipy", "ml_dtypes",
                                               "cupy")), "<frozen ", "<__array_function__")
_STDLIB = os.path.dirname(os.__file__) + os.sep
_PACKAGES = ("site-packages", "dist-packages")  # folders in the library's that hold others' code
_FULL_UNDER = ("bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy")
_SIGNALS = (StopIteration, StopAsyncIteration)
_FRESH = 300  # entries that are looked at where an error leaves one function: the outer ones


def leaving() -> None:
    """Hide our frames in the exception being handled, if the function goes back to the user's code.

    A sealed function calls this. It does nothing where another sealed function is on the way out,
    and raises nothing: the user's error goes on in any case.
    """
    error = sys.exc_info()[1]
    if flags.tracebacks == "full" or not isinstance(error, Exception) or isinstance(
            error, _SIGNALS):
        return
    frame = sys._getframe(1)
    caller = frame.f_back
    asks = frame.f_code.co_name == "__getattr__" and isinstance(error, AttributeError)
    if asks and sys.gettrace() is None:  # `hasattr` asks often, and drops the error
        if caller is not None and not is_ours(caller.f_code):
            error.__traceback__ = None
        return
    while caller is not None and is_ours(caller.f_code):
        if sealing.is_sealed(caller.f_code):
            return
        caller = caller.f_back
    with contextlib.suppress(Exception):
        if not is_under_debugger(caller):
            shorten(error, caller)


def hide(error: BaseException) -> bool:
    """Hide our frames in an exception that is about to be written as text; False if they stay."""
    if flags.tracebacks == "full" or is_under_debugger(sys._getframe(1)):
        return False
    shorten(error, sys._getframe(1))
    return True


def shorten(error: BaseException, caller: FrameType | None) -> None:
    """Hide our frames in an exception's traceback and chain, and add the note."""
    entries = list(itertools.islice(_marked(error.__traceback__), _FRESH))
    # The inner functions that the error left before have gone through what lies behind.
    rest = entries[-1][0].tb_next if len(entries) == _FRESH else None
    ours = rest is None and bool(entries) and entries[-1][1]
    text = traceback_notes.of(error, entries if rest is None else [*entries, (rest, False)])
    error.__traceback__ = _visible(entries, rest)
    _unchain(error, ours)
    if text and not traceback_notes.is_in_doctest(caller):
        traceback_notes.add(error, text)


def is_ours(code: CodeType) -> bool:
    """Return True for code of the package."""
    return code.co_filename.startswith((PACKAGE, "<tracejit"))


def is_under_debugger(frame: FrameType | None) -> bool:
    """Return True if a debugger runs the program or traces it."""
    tracing = sys.gettrace()
    if tracing is not None:
        owner = getattr(tracing, "__self__", tracing)
        module = getattr(type(owner), "__module__", "") + " " + getattr(tracing, "__module__", "")
        if any(name in module for name in _FULL_UNDER) or any(
                base.__module__ in _FULL_UNDER for base in type(owner).__mro__):
            return True
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None:
        return True
    while "bdb" in sys.modules and frame is not None:  # pdb that was told to continue
        if frame.f_globals.get("__name__") == "bdb":
            return True
        frame = frame.f_back
    return False


# -- frames ----------------------------------------------------------------------------------------
def _marked(trace: TracebackType | None, hidden: bool = False
            ) -> Iterator[tuple[TracebackType, bool]]:
    """Yield the entries of a traceback, outermost first, and True for those to hide.

    hidden  hidden code called the first one
    """
    while trace is not None:
        code = trace.tb_frame.f_code
        hidden = is_ours(code) or hidden and _is_below(code)
        yield trace, hidden
        trace = trace.tb_next


def _is_below(code: CodeType) -> bool:
    """Return True for code of the libraries that tracejit uses, not of other packages."""
    name = code.co_filename
    if name.startswith(_BELOW):
        return True
    if name == "<string>":
        return code.co_qualname.startswith("__create_fn__.")  # a method of a dataclass
    return name.startswith(_STDLIB) and not name[len(_STDLIB):].startswith(_PACKAGES)


def _visible(entries: list[tuple[TracebackType, bool]], rest: TracebackType | None = None
             ) -> TracebackType | None:
    """Return the entries that are not hidden, and behind them `rest`."""
    if not any(hidden for _, hidden in entries):
        return entries[0][0] if entries else rest
    found = rest
    between = False
    for entry, hidden in reversed(entries):
        if not hidden and not (between and found and _is_around(entry, found)):
            found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        between = hidden
    return found


def _is_around(outer: TracebackType, inner: TracebackType) -> bool:
    """Return True if the inner code is a branch or body of the outer one.

    `script` makes functions of those. They have the name of the function that they are part of.
    """
    one, other = outer.tb_frame.f_code, inner.tb_frame.f_code
    return one is not other and (one.co_qualname, one.co_filename) == (
        other.co_qualname, other.co_filename)


# -- the chain -------------------------------------------------------------------------------------
def _unchain(error: BaseException, ours: bool) -> None:
    """Take exceptions out of the chain that were raised and caught inside."""
    cause, context = error.__cause__, error.__context__
    suppressed = error.__suppress_context__
    if cause is not None and _is_internal(cause, ours):
        context, cause = _outside(cause, ours), None
    elif context is not None and _is_internal(context, ours):
        context = _outside(context, ours)
    if cause is None and ours:  # our `from`: what the user was handling still shows
        suppressed = False
    for found in (cause, context):
        if found is not None:
            _hide_in(found)
    error.__cause__, error.__context__ = cause, context
    error.__suppress_context__ = suppressed


def _is_internal(error: BaseException, ours: bool) -> bool:
    """Return True for an exception that no code of the user's saw.

    ours  the exception that is shown is ours: one that a library of ours handled is, too
    """
    entries = list(_marked(error.__traceback__, ours))
    return bool(entries) and all(hidden for _, hidden in entries)


def _hide_in(error: BaseException) -> None:
    error.__traceback__ = _visible(list(_marked(error.__traceback__)))


def _outside(error: BaseException, ours: bool) -> BaseException | None:
    """Return the first exception before this one that is not internal."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen and _is_internal(found, ours):
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None if found is None or id(found) in seen else found


sealing.install(leaving)
wrong_calls.install()
