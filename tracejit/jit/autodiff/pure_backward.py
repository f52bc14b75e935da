"""Watch over the user's code in a recorded backward: it may compute only from what it is given.

In: the profile events of the thread while the tape of a call runs backward over deferred tensors.
Out: `RegionRefused` before a hook or the backward of a Function starts that reads or changes
anything else. A recorded one would run once, while the call is recorded. The plain function's runs
at each backward and sees the state of that time. Called by `differentiate.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tracejit.core.eager.function import FunctionCtx
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.reliances import holds
from tracejit.jit.capture.calls import is_harmless
from tracejit.jit.capture.instructions import Step, steps
from tracejit.jit.capture.location import is_installed, is_internal_code
from tracejit.jit.capture.speculation import SpeculationWatcher, is_own_doing

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
# Modules whose functions give tensors; modules that no user code changes.
_OF_OPS = ("tracejit", "tracejit.nn.functional")
_STEADY = ("tracejit", "builtins", "math", "cmath", "operator", "functools", "numpy")


class ClosedWatch(SpeculationWatcher):
    """Context manager around a backward that is recorded for later; it refuses code that is not
    closed."""

    def veto(self, frame: FrameType, event: str, argument: Any) -> str | None:
        code = frame.f_code
        if is_internal_code(code) or is_installed(code):
            return None if event != "call" or is_own_doing(frame) or is_internal_code(code) else (
                _why(code))
        if event == "call" and not _is_closed(frame):
            return _why(code)
        if event == "c_call" and not is_harmless(argument):
            return _why(code)
        return None


def _why(code: CodeType) -> str:
    return f"runs {code.co_qualname}, which may read or change other objects"


def _is_closed(frame: FrameType) -> bool:
    """Return True if code reads only its arguments, constants, and functions and modules that
    nobody changes. Arguments must be plain values. The code may store only locals and elements of
    tensors. False where this Python's bytecode is unknown."""
    code, around, local = frame.f_code, frame.f_globals, frame.f_locals
    if not holds("instructions"):
        return False
    read = [local.get(name) for name in code.co_freevars]
    instructions = steps(code)
    for k, instruction in enumerate(instructions):
        if instruction.opname.startswith(("STORE_", "DELETE_")):
            local_one = instruction.opname in ("STORE_FAST", "DELETE_FAST")
            if not local_one and not _is_of_tensor(instructions, k, frame):
                return False
        elif instruction.opname.startswith(("YIELD", "SEND", "IMPORT")):
            return False
        elif instruction.opname in _GLOBALS:
            name = instruction.argval
            read.append(around.get(name, getattr(builtins, name, None)))
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return all(map(_is_steady, read)) and _are_values(local[name] for name in given)


def _is_of_tensor(code: Sequence[Step], at: int, frame: FrameType) -> bool:
    """Return True if this instruction writes elements of a tensor: `x[i] = y`.

    There x is a tensor or None now, and each store to x is None or comes from a tensor's method or
    an op: `x = grad.clone()`. Writing to None raises by itself.
    """
    key = _start(code, at)
    if code[at].opname != "STORE_SUBSCR" or not key or code[key - 1].opname != "LOAD_FAST":
        return False
    name = code[key - 1].argval
    if not isinstance(frame.f_locals.get(name), (Tensor, type(None))):
        return False
    return all(_is_none(code, k) or _gives_tensor(code, k, frame)
               for k, instruction in enumerate(code)
               if instruction.opname == "STORE_FAST" and instruction.argval == name)


def _is_none(code: Sequence[Step], at: int) -> bool:
    """Return True if the value stored here is None: `x = None`, `x = y = None`."""
    k = at - 1
    while code[k].opname in ("COPY", "STORE_FAST"):
        k -= 1
    return code[k].opname == "LOAD_CONST" and code[k].argval is None


def _gives_tensor(code: Sequence[Step], at: int, frame: FrameType) -> bool:
    """Return True if the value stored here comes from a method of a tensor argument, or from a
    function of tracejit's."""
    first = _start(code, at)
    if not first or at - first < 3 or code[at - 1].opname != "CALL":
        return False
    owner, method = code[first : first + 2]
    if method.opname not in ("LOAD_METHOD", "LOAD_ATTR"):
        return False
    if owner.opname in _GLOBALS:
        module = frame.f_globals.get(owner.argval)
        return isinstance(module, ModuleType) and module.__name__ in _OF_OPS
    given = owner.opname == "LOAD_FAST" and isinstance(frame.f_locals.get(owner.argval), Tensor)
    return given and not any(
        c.opname == "STORE_FAST" and c.argval == owner.argval for c in code)


def _start(code: Sequence[Step], end: int) -> int:
    """Return the index at which the expression starts that ends before an instruction. Return 0 if
    jumps hide it."""
    depth = 0
    for k in reversed(range(end)):
        if code[k].entered or code[k].jumps:
            return 0
        depth += code[k].effect  # values that the expression has pushed, seen from its end
        if depth == 1:
            return k
    return 0


def _is_steady(value: Any) -> bool:
    """Return True for functions, which the watch checks when they start, and for modules and
    classes of libraries that nobody changes."""
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
