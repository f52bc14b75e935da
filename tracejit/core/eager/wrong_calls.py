"""Signatures for calls that Python itself refuses: "got an unexpected keyword argument 'dims'".

In: a TypeError whose innermost frame is the user's, for Python refuses before it enters a function.
Out: the public function or class of that text, found by the names in the frame, and its signature.
Called by `traceback_notes.py`, and for errors that end the program or a thread.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import threading
from collections.abc import Iterator
from types import FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
WRONG_CALL = (r"unexpected keyword argument|missing \d+ required|positional argument"
              r"|multiple values for argument")
_ARGUMENTS = 8  # of a call that are looked at
_CALLED = r"([\w.]+)\(\) "


def is_wrong_call(error: BaseException) -> bool:
    """Return True for an error that says that a function does not take these arguments."""
    return isinstance(error, TypeError) and re.search(WRONG_CALL, str(error)) is not None


def signature_of(function: Any) -> str:
    """Return the parameters of a function, class or record, without annotations.

    Return "" where they are unknown, or say nothing: `(*args, **kwargs)`.
    """
    if hasattr(function, "operands"):  # a record
        return f"({', '.join(function.operands)}, *, out=None)"
    try:
        found = inspect.signature(inspect.unwrap(function))
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=p.empty, default=_shown(p.default))
            for p in found.parameters.values()]
    if bare and all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in bare):
        return ""
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return text.replace("=Ellipsis", "=...")


def _shown(default: Any) -> Any:
    """Return a default as a signature shows it; for an object without a short text the `...`."""
    return ... if repr(default).startswith("<") and default is not inspect._empty else default


def refused(error: BaseException) -> str | None:
    """Return "Linear(in_features, ...)" for a call of ours that Python refused, else None."""
    called = re.match(_CALLED, str(error)) if is_wrong_call(error) else None
    frame = _innermost(error.__traceback__)
    if called is None or frame is None:
        return None
    function = next(_callees(frame, called[1]), None)
    if function is None:
        return None
    if isinstance(function, type):
        return function.__name__ + signature_of(function)
    if inspect.ismethod(function):
        return f"{type(function.__self__).__name__}.{function.__name__}{signature_of(function)}"
    return function.__name__ + signature_of(function)


def _innermost(trace: TracebackType | None) -> FrameType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


def _callees(frame: FrameType, name: str) -> Iterator[Any]:
    """Yield functions and classes of the package that the frame's code can name, and whose own
    name, or that of what makes them, is `name`."""
    used = (*frame.f_code.co_names, name.rpartition(".")[2])
    known = {**{n: frame.f_globals[n] for n in used if n in frame.f_globals}, **frame.f_locals}
    stack, seen = list(known.values()), set()
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if type(x) is tuple:  # arguments that a gate passes on
            stack += x[:_ARGUMENTS]
        elif isinstance(x, ModuleType):
            stack += [vars(x)[n] for n in used if n in vars(x)]
        elif isinstance(x, type):
            makers = [getattr(x, n, None) for n in ("__init__", "__new__")]
            if any(_is(maker, name) for maker in makers):
                yield x
            stack += [getattr(x, n) for n in used if callable(getattr(x, n, None))]
        elif _is(x, name):
            yield x
        elif type(x).__module__.partition(".")[0] == _PACKAGE or _is_layer(x):
            for n in (*used, "forward"):
                found = inspect.getattr_static(type(x), n, None)
                if _is(found, name):
                    yield MethodType(found, x)


def _is_layer(x: Any) -> bool:
    return any(base.__module__.partition(".")[0] == _PACKAGE for base in type(x).__mro__)


def _is(x: Any, name: str) -> bool:
    """Return True for a function of the package with this qualified name."""
    return (type(x) is FunctionType and x.__qualname__ == name
            and x.__code__.co_filename.startswith(_ROOT))


# -- errors that nobody catches --------------------------------------------------------------------
def install() -> None:
    """Add the signature to errors that end the program or a thread, as they are printed.

    A hook of somebody else's stays alone.
    """
    usual, of_thread = sys.excepthook, threading.excepthook

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        explain(error)
        usual(kind, error, trace)

    def thread_ended(given: Any) -> None:
        if given.exc_value is not None:
            explain(given.exc_value)
        of_thread(given)

    if usual is sys.__excepthook__:
        sys.excepthook = ended
    if of_thread is threading.__excepthook__:
        threading.excepthook = thread_ended


def explain(error: BaseException) -> None:
    """Add the signature to an error that has no note of ours."""
    from tracejit.config import flags

    try:
        if flags.tracebacks != "full" and not getattr(error, "__notes__", None):
            text = refused(error)
            if text is not None:
                error.add_note(f"tracejit: in {text}")
    except Exception:  # the user's error goes on in any case
        return
