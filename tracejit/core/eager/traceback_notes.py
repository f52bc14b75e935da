"""Notes on errors: one line under an error's text says what tracejit was doing.

In: an error and the entries of its traceback, of which some will be hidden. Out: a note such as
"tracejit: in matmul, while capturing step (train.py:12)". Where the arguments were wrong it has the
signature. Called by `core/eager/tracebacks.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from tracejit.core.eager.wrong_calls import is_wrong_call, refused, signature_of

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_COMPILER = os.path.join(_ROOT, "jit") + os.sep
_INTRO = "tracejit: "
# Functions on the way from what the user called: wrappers, and the protocol of classes.
_STEPS = frozenset("""call function instead apply dispatch through new method in_place __call__
_call answer ask disabled torch_function __torch_function__ _through_gate __get__ <lambda>
<listcomp> <genexpr>""".split())
# What an error of these kinds says is PyTorch's text or the user's mistake; others may be ours.
_EXPECTED = (ArithmeticError, RuntimeError, TypeError, ValueError, IndexError, NotImplementedError,
             OSError, MemoryError, Warning, ImportError, AssertionError)
_contexts: list[Callable[[TracebackType], str | None]] = []


def add_context(describe: Callable[[TracebackType], str | None]) -> None:
    """Let a room say what was going on, by an entry of a traceback: "while capturing step"."""
    _contexts.append(describe)


def add(error: BaseException, text: str) -> None:
    """Add the note to an exception, or what it did not say yet to the note that is there."""
    notes = getattr(error, "__notes__", None) or []
    known = next((line for line in reversed(notes) if str(line).startswith(_INTRO)), None)
    if known is None:
        error.add_note(_INTRO + text)
    elif text.startswith("while ") and text not in known:
        notes[notes.index(known)] = known + ", " + text


def of(error: BaseException, entries: list[tuple[TracebackType, bool]]) -> str:
    """Return what tracejit was doing: "in matmul, while capturing step (train.py:12)"."""
    said = []
    ours = bool(entries) and entries[-1][1]
    name = ""
    if ours:
        run = []
        for entry, hidden in reversed(entries):
            if not hidden:
                break
            run.append(entry.tb_frame)
        run.reverse()
        name = _name_in(run, error)
    if not name.endswith(")"):
        name = refused(error) or name
    if name:
        said.append(f"in {name}")
    for entry, hidden in reversed(entries):
        if hidden:
            said += [text for describe in _contexts if (text := describe(entry)) is not None]
    found = ", ".join(dict.fromkeys(said))
    if found and ours and not isinstance(error, _EXPECTED):
        if entries[-1][0].tb_frame.f_code.co_filename.startswith(_COMPILER):
            found += " (TRACEJIT_TRACEBACKS=full shows all frames)"
    return found


def _name_in(run: list[FrameType], error: BaseException) -> str:
    """Return the name of what the user called, with its signature if the arguments were wrong."""
    modules: list[str] = []
    wrong = is_wrong_call(error)
    for frame in run:
        code = frame.f_code
        if code.co_filename.startswith(_COMPILER):
            continue
        if code.co_name in _STEPS:
            function = _called(frame)
            if function is not None and not modules:
                return function.__name__ + (signature_of(function) if wrong else "")
        elif code.co_name == "forward" and code.co_qualname.count(".") == 1:
            modules.append(type(frame.f_locals.get("self")).__name__)
        elif not modules:
            return _title(frame) + (signature_of(_running(frame)) if wrong else "")
    return " > ".join(modules)


def _called(frame: FrameType) -> Any:
    """Return the public function that a wrapper's frame stands for."""
    names = frame.f_locals
    if frame.f_code.co_name == "__call__" and hasattr(names.get("self"), "operands"):
        return names["self"]
    if frame.f_code.co_name != "call":
        return None
    for name in ("function", "call", "record"):
        found = names.get(name)
        if callable(found) and getattr(found, "__name__", "call") not in _STEPS:
            return found
    return None


def _running(frame: FrameType) -> Any:
    """Return the function whose frame this is, or the class that it makes; None if unknown."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_varnames else None
    found = frame.f_globals.get(code.co_name)
    if code.co_name == "__init__":
        return type(first)
    if code.co_argcount and inspect.isroutine(method := getattr(first, code.co_name, None)):
        found = method
    inner = getattr(found, "__func__", found)
    return found if getattr(inner, "__code__", None) is code else None


def _title(frame: FrameType) -> str:
    code = frame.f_code
    owner, _, name = code.co_qualname.rpartition(".")
    if owner and "<locals>" not in owner:
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_varnames else None
        if not code.co_argcount and isinstance(first, tuple) and first:  # of `*arguments`
            first = first[0]
        kind = first if isinstance(first, type) else type(first)
        if any(base.__name__ == owner for base in kind.__mro__):
            owner = kind.__name__
        return owner if name == "__init__" else f"{owner}.{name}"
    if name.startswith("__") and name.endswith("__"):
        return f"Tensor.{name}"
    return name.strip("_").removesuffix("_operator")


def is_in_doctest(frame: FrameType | None) -> bool:
    """Return True in an example of doctest: until 3.13 it takes a note for the error's message."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<doctest "):
            return True
        frame = frame.f_back
    return False
