"""Code that hands numbers to C code which accepts only plain ones.

In: code of a traced function that is not rewritten, when it begins. Out: True if it names such C
code, so that the code itself must get plain numbers. Called by `runtime.session`.

Plain numbers cost nothing where the recording breaks anyway. Most C functions that only compute
accept stand-ins: they ask their arguments for `__index__` or `__float__`.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import deque
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

from tracejit.jit.capture.fingerprint import function_of, is_mutable_class, module_name
from tracejit.jit.capture.foreign_compilers import is_compiled
from tracejit.jit.capture.looking import ABSENT, class_attribute, instance_dict, is_a, is_exactly
from tracejit.jit.capture.plain_arguments import is_cython, wants_ints
from tracejit.jit.capture.pure import is_pure
from tracejit.jit.capture.watcher import CodeNames

_STAR = re.compile(r"%(\(\w*\))?[-+ #0]*(\*|\d*\.\*)")  # `%*d`: width as an argument
_EXACT: tuple[Any, ...] = (deque,)
# Modules whose C classes accept stand-ins for numbers.
_ASK = ("builtins", "collections", "functools", "itertools", "numpy", "operator", "types", "_io")


def wants_numbers(names: CodeNames, frame: FrameType) -> bool:
    """Return True if code may hand numbers to C code that accepts only plain ones.

    It names such C code, or has a format with a width or precision that is an argument (`*`).
    """
    return _has_star(frame.f_code) or any(map(_is_exact, _named(names, frame)))


@functools.cache
def _has_star(code: CodeType) -> bool:
    texts = [c for c in code.co_consts if is_a(c, str)]
    texts += [c.decode("latin-1") for c in code.co_consts if is_a(c, bytes)]
    if any(map(_STAR.search, texts)):
        return True
    return any(_has_star(c) for c in code.co_consts if type(c) is CodeType)


def _named(names: CodeNames, frame: FrameType) -> Iterator[Any]:
    """Yield the values that code names: globals, closure variables, and attributes of modules among
    these."""
    todo = [frame.f_globals.get(name) for name in names.globals]
    todo += [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    todo += [sys.modules.get(name) for level, name in names.imported if not level]
    seen: set[int] = set()
    while todo:
        found = todo.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if issubclass(type(found), ModuleType):
            own = instance_dict(found)
            todo += [own.get(name) for name in names.attributes if name in own]
        else:
            yield found


def _is_exact(found: Any) -> bool:
    if any(found is x for x in _EXACT) or is_cython(found) or is_compiled(found):
        return True
    if issubclass(type(found), BuiltinFunctionType):
        return wants_ints(found) or not is_pure(found)
    if not issubclass(type(found), type) or is_mutable_class(found):
        return False
    made = [function_of(class_attribute(found, name)) for name in ("__init__", "__new__")]
    if any(is_exactly(x, (FunctionType, MethodType, type(ABSENT))) for x in made):
        return False
    return module_name(found).partition(".")[0] not in _ASK
