"""Functions that another compiler made: their calls are opaque.

In: functions, and code that runs. Out: True for functions of a compiler such as numba; reasons and
hints of the graph breaks at their calls. Called by `calls`, `plain_arguments` and `wants_numbers`,
which give them plain numbers, and by `state` and `runtime.session`.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

from tracejit.jit.capture.fingerprint import module_name
from tracejit.jit.capture.location import COMPILERS, INSTALLED, is_of_compiler
from tracejit.jit.capture.looking import ABSENT, attribute_of, class_attribute, title

# Until Python 3.11 compiled functions announce their calls to a profiler.
ANNOUNCED = sys.version_info < (3, 12)
_HINT = "call it outside the captured function"
_OR_TENSORS = _HINT + ", or write it with tensors"


def is_compiled(function: Any) -> bool:
    """Return True for a function made by a compiler's decorator: its type is one of the compiler's.

    >>> is_compiled(len), is_compiled(lambda: 0)
    (False, False)
    """
    return module_name(type(function)).partition(".")[0] in COMPILERS


def unseen_call(function: Any) -> tuple[str, str]:
    """Return the reason and the hint of a break: C code, or code that a compiler made, ran."""
    hint = _HINT
    if type(function) is not CodeType:
        module = attribute_of(function, "__module__")
        known = title(function)
        known = f"{module}.{known}" if module and module != "builtins" else known
    elif is_of_compiler(function):
        known = function.co_filename[len(INSTALLED) :].partition(os.sep)[0]
    else:
        known, hint = f"{function.co_qualname} (made by another compiler)", _OR_TENSORS
    return f"the function calls {known}; tracejit cannot see what it reads or changes", hint


def unseen_call_of(function: Any) -> tuple[str, str]:
    """Return the reason and the hint of a break at a call of a compiled function."""
    plain = attribute_of(function, "py_func", function)
    known = f"{attribute_of(plain, '__qualname__', title(function))} (made by another compiler)"
    return f"the function calls {known}; tracejit cannot see what it reads or changes", _OR_TENSORS


def hides_calls(function: Any) -> bool:
    """Return True for a compiled function whose calls no watcher sees, unless code is rewritten."""
    if ANNOUNCED or not is_compiled(function) or issubclass(type(function), type):
        return False
    of_types = ".types" in module_name(type(function))  # numba's types only make signatures
    return not of_types and class_attribute(type(function), "__call__") is not ABSENT


def unseen_read() -> tuple[str, str]:
    """Return the reason and the hint of a break where code reads, and may call, such a function."""
    return ("another compiler made this function, and this version of Python does not show its "
            "calls",
            _OR_TENSORS)
