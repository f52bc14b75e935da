"""Notes on errors in captured calls: "while capturing step (train.py:12)".

In: entries of tracebacks. Out: what a call was doing, for the note on an error. Called by
`core/eager/traceback_notes.py`; `compiled_function.py` installs it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import CodeType, TracebackType

from tracejit.core.eager.tracebacks import is_ours

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
        file = re.sub(r"<ipython-input-(\d+)-.*>", r"In[\1]", os.path.basename(code.co_filename))
        return f"while {work} {name} ({file}:{code.co_firstlineno})"

    return at_work
