"""Trial watch: user code that could have an effect is stopped before it starts.

In: the profile events of the thread while a branch or a loop body is recorded on trial. Out:
`RegionRefused` where Python code starts that was not rewritten (rewritten code announces its
effects): properties, operators of the user's classes, callbacks of C functions, generators. Code
that visibly changes nothing may run. Called by `subgraph.speculate`.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tracejit.core.memory import forks
from tracejit.core.memory.reliances import holds
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.instructions import steps
from tracejit.jit.capture.library_effects import changes_objects
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.source import is_converted
from tracejit.jit.capture.unwatched import WATCHING, PutAside

_EFFECTS = (
    "STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "STORE_SLICE",
    "DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL", "DELETE_DEREF", "IMPORT_NAME", "GET_ITER",
    "FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE",
    "DICT_MERGE", "BEFORE_WITH", "SEND", "RAISE_VARARGS",
)  # fmt: skip
_INSTALLED = tuple({os.path.dirname(os.path.dirname(str(np.__file__))) + os.sep,
                    os.path.dirname(os.__file__) + os.sep, "<frozen "})
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_harmless: dict[CodeType, bool] = {}
_MOST = 4096
_collector_waits: set[int] = set()  # for the trials of these threads


@forks.in_child
def _collect_again() -> None:
    """Enable the garbage collector if it waits for another thread's trial, which never ends
    here."""
    if _collector_waits and threading.get_ident() not in _collector_waits:
        _collector_waits.clear()
        gc.enable()


class SpeculationWatcher:
    """Context manager around a trial; what watched before goes on watching.

    The garbage collector waits: what it calls is no doing of the trial, and could not be undone.
    """

    def __init__(self) -> None:
        self.refused: RegionRefused | None = None
        self.aside: PutAside | None = None
        self.made: list[Any] = []  # objects of our classes, which nobody else has yet
        self.collects = gc.isenabled()
        before: Any = sys.getprofile()
        outer = getattr(before, "__self__", None)  # a trial around sees the same
        self.watching: Any = outer.watching if type(outer) is SpeculationWatcher else before

    def __enter__(self) -> None:
        if self.collects:
            _collector_waits.add(threading.get_ident())
        gc.disable()
        self.aside = PutAside()
        if not self.aside.ours:
            self.watching = None
        sys.setprofile(self._event)

    def end(self) -> None:
        """End the watch; once more where Ctrl-C may have come before that."""
        if self.aside is not None:
            self.aside.back()
        if self.collects:
            gc.enable()
            _collector_waits.discard(threading.get_ident())
        self.made.clear()  # which may hold the watch, as the one of a trial within does

    def __exit__(self, kind: Any, *exc: object) -> None:
        self.end()
        refused = [self.refused] if kind is None and self.refused is not None else []
        self.refused = None  # its traceback holds the watch, and may hold no frame with it in turn
        if refused:  # raised in a `__del__`, which swallowed it
            raise refused.pop()

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        why = self.veto(frame, event, argument)
        if why:
            # Python takes the profile function away then; __exit__ puts one back.
            self.refused = RegionRefused(why)
            raise self.refused
        if self.watching is not None:
            self.watching(frame, event, argument)

    def veto(self, frame: FrameType, event: str, argument: Any) -> str | None:
        """Say why what is about to run may not."""
        if event != "call":
            return None
        code = frame.f_code
        if not (_may_run(code) or is_own_doing(frame)):
            return f"runs {code.co_qualname}, which was not rewritten"
        if is_internal_code(code) and (code.co_name == "__init__" or changes_objects(code)):
            mine = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if code.co_name == "__init__":
                self.made.append(mine)
            elif not any(x is mine for x in self.made):
                return f"runs {code.co_qualname}, which changes objects"
        return None


WATCHING.add(SpeculationWatcher._event)


def is_own_doing(frame: FrameType) -> bool:
    """Return True if installed library code runs because tracejit, or such code, called it."""
    caller = frame.f_back
    if caller is None or not is_installed(frame.f_code):
        return False
    return is_internal_code(caller.f_code) or is_installed(caller.f_code)


def is_installed(code: CodeType) -> bool:
    """Return True if code belongs to Python's library or an installed package."""
    return code.co_filename.startswith(_INSTALLED)


def _may_run(code: CodeType) -> bool:
    if is_internal_code(code) or is_converted(code):
        return True
    known = _harmless.get(code)
    if known is None:
        if len(_harmless) >= _MOST:
            _harmless.clear()
        known = _harmless[code] = _changes_nothing(code)
    return known


def _changes_nothing(code: CodeType) -> bool:
    """Return True if a code object only computes: reads, operators, no calls, nothing stored."""
    if code.co_flags & _GENERATORS or not holds("instructions"):
        return False
    for instruction in steps(code):
        name = instruction.opname
        if name in _EFFECTS or name.startswith(("CALL", "YIELD")):
            return False
        if name == "BINARY_OP" and instruction.argrepr.endswith("="):
            return False
    return True
