"""Which code of the user's a recorded backward may have run: what only computes from what it got.

In: the profile events of the thread while the tape of a call runs backward over deferred tensors.
Out: `Refused` before a hook or the backward of a Function starts that reads or changes anything
else. It would run once, when the call is recorded; the plain function's runs at each backward that
somebody calls, and sees what is there then. Called by `differentiate.py`.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tracejit.capture.calls import is_harmless
from tracejit.capture.location import is_own
from tracejit.capture.trial_watch import TrialWatch, is_installed, is_own_doing
from tracejit.eager.function import FunctionCtx
from tracejit.eager.tensor import Tensor

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_STEADY = ("tracejit", "builtins", "math", "cmath", "operator", "functools", "numpy")


class ClosedWatch(TrialWatch):
    """Context manager around a backward that is recorded for later."""

    def objection(self, frame: FrameType, event: str, argument: Any) -> str | None:
        code = frame.f_code
        if is_own(code) or is_installed(code):
            return None if event != "call" or is_own_doing(frame) or is_own(code) else _why(code)
        if event == "call" and not _is_closed(frame):
            return _why(code)
        if event == "c_call" and not is_harmless(argument):
            return _why(code)
        return None


def _why(code: CodeType) -> str:
    return f"runs {code.co_qualname}, which may read or change what is there at that time"


def _is_closed(frame: FrameType) -> bool:
    """Whether code reads its arguments and constants alone, and stores nothing."""
    code, around, local = frame.f_code, frame.f_globals, frame.f_locals
    read = [local.get(name) for name in code.co_freevars]
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(("STORE_", "DELETE_")):
            if instruction.opname not in ("STORE_FAST", "DELETE_FAST"):
                return False
        elif instruction.opname.startswith(("YIELD", "SEND", "IMPORT")):
            return False
        elif instruction.opname in _GLOBALS:
            name = instruction.argval
            read.append(around.get(name, getattr(builtins, name, None)))
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return all(map(_is_steady, read)) and _are_values(local[name] for name in given)


def _is_steady(value: Any) -> bool:
    """Functions, which are looked at when they start, and what nobody changes."""
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        return True
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    known = isinstance(value, (ModuleType, type)) and isinstance(name, str)
    return known and name.partition(".")[0] in _STEADY  # type: ignore[union-attr]


def _are_values(given: Iterable[Any]) -> bool:
    return all(
        _are_values(x)
        if isinstance(x, (tuple, list))
        else x is None or isinstance(x, (Tensor, int, float, complex, str, FunctionCtx))
        for x in given
    )
