"""Notes on errors: "while capturing step (train.py:12)", and forward lines of failed backwards.

In: entries of tracebacks. Out: what a call or a backward was doing, for the note on an error.
Called by `core/eager/traceback_notes.py`; `compiled_function.py` installs it.
"""

from __future__ import annotations

import itertools
import linecache
import os
import re
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

from tracejit.core.eager import anomaly
from tracejit.core.eager.engine import Task
from tracejit.core.eager.saved import Saved, SavedOutput
from tracejit.core.eager.tracebacks import is_ours
from tracejit.jit.capture.location import forward_lines
from tracejit.jit.ir.graph import Location
from tracejit.jit.runtime.call_nodes import CompiledBackward
from tracejit.jit.runtime.later_backward import SavedCall

# Methods of a captured function that work for a call.
_WORK = {"_capture": "capturing", "_instead": "replaying"}


def notes_of(call: CodeType) -> Callable[[TracebackType], str | None]:
    """Return a function that reads what was going on off an entry of a captured function's call."""

    def at_work(entry: TracebackType) -> str | None:
        inner = entry.tb_next
        if entry.tb_frame.f_code is not call or inner is None:
            return None
        work = _WORK.get(inner.tb_frame.f_code.co_name)
        if work is None:
            return None
        called = entry.tb_frame.f_locals["self"]
        function = getattr(called.function, "__func__", called.function)
        code = getattr(function, "__code__", None)
        name = called.__name__
        if name == "forward" and hasattr(called.function, "__self__"):
            name = type(called.function.__self__).__name__
        if code is None or is_ours(code):
            return f"while {work} {name}"
        return f"while {work} {name} ({_short(code.co_filename)}:{code.co_firstlineno})"

    return at_work


def backward_line(entry: TracebackType) -> str | None:
    """Return the forward line of the node that a backward ran, off an entry of the engine.

    Captured calls and custom Functions know theirs. Other nodes know it in anomaly mode.
    """
    if entry.tb_frame.f_code is not _VISIT:
        return None
    place = _forward_place(entry.tb_frame.f_locals["node"])
    inner = entry.tb_next
    while inner is not None:
        frame = inner.tb_frame
        if frame.f_code is _VISIT:
            return None  # a backward within this one says it
        if frame.f_code is _CHECK:
            place = frame.f_locals["check"].line or place
        inner = inner.tb_next
    if place is None or not place.text:
        return None
    return f"while running the backward of `{place.text}` ({_short(place.file)}:{place.line})"


def _forward_place(node: Any) -> Location | None:
    """Return the user's line that made a node."""
    if isinstance(node, CompiledBackward):
        return node.common.line
    if node.extras is not None and node.extras.traceback is not None:
        line = anomaly.users_lines(node)[-1]
        found = re.match(r'\s*File "(.*)", line (\d+)', line)
        return None if found is None else _location(found[1], int(found[2]))
    called = getattr(node, "_called_from", None)
    if called is not None:
        code, at = called
        number = next(itertools.islice(code.co_positions(), at // 2, None))[0]
        return None if is_ours(code) or number is None else _location(code.co_filename, number)
    kept = [x for name in ("operands", "outputs", "_kept") for x in getattr(node, name, None) or ()]
    places = (forward_lines.get(x) for x in kept if type(x) in (Saved, SavedOutput))
    return next((place for place in places if place is not None), None)


def _location(file: str, line: int) -> Location:
    return Location(file, line, linecache.getline(file, line).strip())


def _short(file: str) -> str:
    return re.sub(r"<ipython-input-(\d+)-.*>", r"In[\1]", os.path.basename(file))


_VISIT, _CHECK = Task._visit.__code__, SavedCall.check.__code__
