"""Functions that another compiler made: their calls are opaque.

In: functions, and code that runs. Out: whether a compiler such as numba runs it, and the break that
says so. Called by `calls`, which gives them plain numbers, and by `watch`, which leaves their work
alone.
"""

from __future__ import annotations

import os
from types import CodeType
from typing import Any

from tracejit.jit.capture.behaviour import module_name
from tracejit.jit.capture.location import COMPILERS, INSTALLED, is_of_compiler
from tracejit.jit.capture.looking import attribute_of, title


def is_compiled(function: Any) -> bool:
    """Return True for what a compiler's decorators make: its type is one of the compiler's.

    >>> is_compiled(len), is_compiled(lambda: 0)
    (False, False)
    """
    return module_name(type(function)).partition(".")[0] in COMPILERS


def unseen_call(function: Any) -> tuple[str, str]:
    """Return the reason and the hint of a break: C code, or code that a compiler made, ran."""
    hint = "move it out of the captured function"
    if type(function) is not CodeType:
        module = attribute_of(function, "__module__")
        known = title(function)
        known = f"{module}.{known}" if module and module != "builtins" else known
    elif is_of_compiler(function):
        known = function.co_filename[len(INSTALLED) :].partition(os.sep)[0]
    else:
        known = f"{function.co_qualname}, compiled elsewhere"
        hint += ", or write it with tensors"
    return f"calls {known}, whose effects and sources cannot be seen", hint
