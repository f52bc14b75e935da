"""Replacements of functions whose calls may wait until the program has run.

In: a function that rewritten code is about to call. Out: its replacement, or None: for printing,
logging, texts and numbers that may be pending, and constructors of C classes, which get plain
numbers. Called by `calls`.
"""

from __future__ import annotations

import builtins
import logging
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from tracejit.jit.capture.fingerprint import function_of, module_name
from tracejit.jit.capture.host_numbers import (
    deferred_float,
    deferred_int,
    deferred_max,
    deferred_min,
)
from tracejit.jit.capture.host_reads import AFTER_SYMS
from tracejit.jit.capture.host_texts import (
    deferred_format_of,
    deferred_repr,
    deferred_str,
    format_method,
    join_method,
)
from tracejit.jit.capture.looking import attribute_of, class_attribute, is_a, is_exactly
from tracejit.jit.capture.outlets import changes_outlets
from tracejit.jit.capture.output import (
    LEVELS,
    PROGRESS,
    ROOT_LEVELS,
    STREAMS,
    deferred_print,
    log_function,
    log_method,
    outlet_changed,
    progress_method,
    stream_method,
)
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.sizes import SymInt

_BUILTINS: tuple[tuple[Any, Any], ...] = (
    (builtins.print, deferred_print),
    (builtins.str, deferred_str),
    (builtins.repr, deferred_repr),
    (builtins.format, deferred_format_of),
    (builtins.float, deferred_float),
    (builtins.int, deferred_int),
    (builtins.min, deferred_min),
    (builtins.max, deferred_max),
)
_KEEP_SIZES = ("functools", "itertools")  # hand arguments on, or ask them for `__index__`
_TEXTS = {"format": format_method, "join": join_method}


def replacement(function: Any) -> Callable[..., Any] | None:
    """Return what recorded code calls instead of `function`; None: `function` itself.

    >>> replacement(print) is deferred_print, replacement(len) is None
    (True, True)
    """
    kind = type(function)
    if kind is BuiltinFunctionType or kind is type:
        owner = attribute_of(function, "__self__")
        if type(owner) is str:
            made = _TEXTS.get(function.__name__)
            return None if made is None else made(owner)
        if is_exactly(owner, STREAMS) and (owner is sys.stdout or owner is sys.stderr):
            sink = function.__name__ in ("write", "flush")
            return stream_method(owner, function.__name__) if sink else None
        known = next((deferred for plain, deferred in _BUILTINS if plain is function), None)
        return known or (_constructor(function) if kind is type else None)
    if kind is MethodType:
        return _method(function, function.__self__, function.__name__)
    if kind is FunctionType and function.__module__ == "logging":
        level = ROOT_LEVELS.get(function)
        if level is not None:
            return log_function(function, level)
        return outlet_changed(function) if changes_outlets(function) else None
    return None


def _constructor(cls: type) -> Callable[..., Any] | None:
    """Return what calls a class written in C with plain numbers, or None: C looks into
    arguments."""
    own = [function_of(class_attribute(cls, name)) for name in ("__init__", "__new__")]
    if module_name(cls) == "builtins" or any(type(f) is FunctionType for f in own):
        return None

    sizes = module_name(cls) not in _KEEP_SIZES

    def make(*args: Any, **keywords: Any) -> Any:
        named = {k: _number(v, sizes) for k, v in keywords.items()}
        return cls(*[_number(x, sizes) for x in args], **named)

    return make


def _number(x: Any, sizes: bool) -> Any:
    pending = is_exactly(x, AFTER_SYMS) or is_a(x, SymNumber) or sizes and type(x) is SymInt
    return x.concretize() if pending else x


def _method(method: Any, owner: Any, name: str) -> Callable[..., Any] | None:
    if is_a(owner, logging.Logger) and (name in LEVELS or name == "log"):
        return log_method(owner, name)
    if changes_outlets(method):
        return outlet_changed(method)
    if name in PROGRESS and module_name(type(owner)).startswith("tqdm"):
        return progress_method(owner, name)
    return None
