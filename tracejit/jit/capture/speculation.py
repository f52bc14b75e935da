"""Watch on a trial: user code that could have an effect is stopped before it starts.

In: the profile events of the thread while a branch or a loop body is recorded on trial. Out:
`RegionRefused` where Python code starts that was not rewritten: properties, operators of the user's
classes, callbacks of C functions, generators. Rewritten code announces its effects. Code that
visibly changes nothing may run. Called by `subgraph.speculate`.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from tracejit.core.memory import forks
from tracejit.core.memory.reliances import holds
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.instructions import steps
from tracejit.jit.capture.library_effects import changes_objects
from tracejit.jit.capture.location import is_installed, is_internal_code
from tracejit.jit.capture.source import is_converted
from tracejit.jit.capture.unwatched import WATCHING, PutAside

_EFFECTS = (
    "STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "STORE_SLICE",
    "DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL", "DELETE_DEREF", "IMPORT_NAME", "GET_ITER",
    "FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE",
    "DICT_MERGE", "BEFORE_WITH", "SEND", "RAISE_VARARGS",
)  # fmt: skip
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_harmless: dict[CodeType, bool] = {}
_MOST = 4096
_collector_waits: set[int] = set()  # threads on whose trials the collector waits


@forks.in_child
def _collect_again() -> None:
    """Enable the garbage collector in a forked child if it waits for another thread's trial, which
    never ends there."""
    if _collector_waits and threading.get_ident() not in _collector_waits:
        _collector_waits.clear()
        gc.enable()


class SpeculationWatcher:
    """Context manager around a trial; the watcher before it goes on watching.

    The garbage collector waits: the trial did not cause the finalizers that it calls, and could not
    undo them.
    """

    def __init__(self) -> None:
        self.refused: RegionRefused | None = None
        self.aside: PutAside | None = None
        self.made: list[Any] = []  # objects of tracejit's, not seen by the user yet
        self.collects = gc.isenabled()
        before: Any = sys.getprofile()
        outer = getattr(before, "__self__", None)  # inside another trial: pass events past it
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
        """End the watch. `speculate` ends it a second time, since Ctrl-C may have come before the
        first."""
        if self.aside is not None:
            self.aside.back()
        if self.collects:
            gc.enable()
            _collector_waits.discard(threading.get_ident())
        self.made.clear()  # which may hold the watch, as the one of a trial within does

    def __exit__(self, kind: Any, *exc: object) -> None:
        self.end()
        refused = [self.refused] if kind is None and self.refused is not None else []
        # A refusal's traceback holds the watcher, so neither the watcher nor a frame holds it.
        self.refused = None
        if refused:  # a `__del__` swallowed it
            raise refused.pop()

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        why = self.veto(frame, event, argument)
        if why:
            # Python removes a profile function that raises; __exit__ puts one back.
            self.refused = RegionRefused(why)
            raise self.refused
        if self.watching is not None:
            self.watching(frame, event, argument)

    def veto(self, frame: FrameType, event: str, argument: Any) -> str | None:
        """Return the reason why the code that is about to run may not; None if it may."""
        if event != "call":
            return None
        code = frame.f_code
        if not (_may_run(code) or is_own_doing(frame)):
            return f"it runs {code.co_qualname}, which tracejit did not rewrite"
        if is_internal_code(code) and (code.co_name == "__init__" or changes_objects(code)):
            mine = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if code.co_name == "__init__":
                self.made.append(mine)
            elif not any(x is mine for x in self.made):
                return f"it runs {code.co_qualname}, which changes objects"
        return None


WATCHING.add(SpeculationWatcher._event)


def is_own_doing(frame: FrameType) -> bool:
    """Return True if installed library code runs because tracejit, or other such code, called
    it."""
    caller = frame.f_back
    if caller is None or not is_installed(frame.f_code):
        return False
    return is_internal_code(caller.f_code) or is_installed(caller.f_code)


def is_raised_by_user(error: BaseException) -> bool:
    """Return True if the user's own code raised an error: no code of tracejit, Python or packages.

    >>> is_raised_by_user(ValueError())
    False
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    code = None if last is None else last.tb_frame.f_code
    return code is not None and not (is_internal_code(code) or is_installed(code))


def _may_run(code: CodeType) -> bool:
    if is_internal_code(code) or is_converted(code):
        return True
    known = _harmless.get(code)
    if known is None:
        if len(_harmless) >= _MOST:
            _harmless.clear()
        known = _harmless[code] = changes_nothing(code)
    return known


def changes_nothing(code: CodeType) -> bool:
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
