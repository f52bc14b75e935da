"""Calls of code that the tracer cannot see into: it gets plain numbers and texts.

In: functions that recorded code calls, and their arguments. Out: the same calls with ints, floats
and texts in place of runtime numbers, sizes and pending texts, also in containers. Called by
`calls`, and by the session for code that is not rewritten.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, OrderedDict, defaultdict
from types import BuiltinFunctionType, CodeType, MethodDescriptorType, MethodType
from typing import Any

from tracejit.core.eager.size import Size as Shape
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.foreign_compilers import is_compiled
from tracejit.jit.capture.host_reads import AfterSymStr
from tracejit.jit.capture.looking import attribute_of, is_a, is_exactly, name_of_class
from tracejit.jit.capture.rolled import StackedList, materialize_list
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.watcher import USER_CALL_WRAPPERS
from tracejit.jit.ir.sizes import SymInt

_OF_TEXTS = (str, bytes, re.Pattern, re.Match)
_BY_NAME = (getattr, hasattr, setattr, delattr)
_TAKES_TEXTS = (*_BY_NAME, ord, bytes, bytearray, complex)
_DICTS = (dict, OrderedDict, defaultdict, Counter)


def concretizing_call(function: Any) -> Any:
    """Wrap a function that may look at the types of numbers: it gets plain ints and floats."""
    owner = attribute_of(function, "__objclass__", type(attribute_of(function, "__self__")))
    sizes = wants_ints(function) or owner in (int, float)
    sizes = sizes or is_cython(function) or is_compiled(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        keywords = {k: plain_numbers(x, sizes) for k, x in kwargs.items()}
        return function(*[plain_numbers(x, sizes) for x in args], **keywords)

    return call


def wants_ints(function: Any) -> bool:
    """Return True for C code that accepts only plain ints and texts, no stand-ins.

    >>> import struct
    >>> wants_ints(struct.pack), wants_ints(math.sin)
    (True, False)
    """
    home = str(attribute_of(function, "__module__") or "").lstrip("_").partition(".")[0]
    return home in WANT_INTS or function is math.ldexp


USER_CALL_WRAPPERS.update(c for c in concretizing_call.__code__.co_consts if is_a(c, CodeType))


def is_cython(function: Any) -> bool:
    """Return True for a function that Cython compiled: it may accept only plain ints.

    >>> import numpy
    >>> is_cython(numpy.random.permutation), is_cython(numpy.ones)
    (True, False)
    """
    made = function.__func__ if type(function) is MethodType else function
    return name_of_class(type(made)) in ("cython_function_or_method", "fused_cython_function")


def of_arrays(function: Any) -> Any:
    """Wrap a function of NumPy's, which asks numbers for a dtype; with tensors it gets its
    arguments as they are."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(is_a(x, Tensor) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        keywords = {k: plain_numbers(x) for k, x in kwargs.items()}
        return function(*[plain_numbers(x) for x in args], **keywords)

    return call


USER_CALL_WRAPPERS.update(c for c in of_arrays.__code__.co_consts if is_a(c, CodeType))


def wants_texts(function: Any) -> bool:
    """Return True for C code that accepts only plain texts: methods of texts, `getattr` ..."""
    owner: Any = None
    if type(function) is MethodDescriptorType:
        owner = function.__objclass__
    elif issubclass(type(function), BuiltinFunctionType):
        owner = type(function.__self__)
        if issubclass(owner, BaseException):
            return True
    return owner in _OF_TEXTS or any(function is f for f in _TAKES_TEXTS)


def with_plain_texts(function: Any) -> Any:
    """Wrap a function of texts or of names of attributes: pending texts become plain."""
    if any(function is f for f in _BY_NAME):
        return asks_as_plain(function)

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        keywords = {k: plain_text(x) for k, x in kwargs.items()}
        return function(*[plain_text(x) for x in args], **keywords)

    return call


USER_CALL_WRAPPERS.update(c for c in with_plain_texts.__code__.co_consts if is_a(c, CodeType))


def asks_as_plain(function: Any) -> Any:
    """Wrap `getattr`, `hasattr`, `setattr` or `delattr`: a stand-in shows a number's attributes.

    A change of one raises as it does for a plain number.
    """
    changes = function is setattr or function is delattr

    @functools.wraps(function, updated=())
    def call(*args: Any) -> Any:
        args = tuple(map(plain_text, args))
        if args and (is_a(args[0], SymNumber) or type(args[0]) is SymInt):
            kind: Any = args[0].__class__
            if changes or len(args) > 1 and args[1] not in dir(kind):
                args = kind(), *args[1:]
        return function(*args)

    return call


USER_CALL_WRAPPERS.update(c for c in asks_as_plain.__code__.co_consts if is_a(c, CodeType))


def power(base: Any, exp: Any, mod: Any = None) -> Any:
    """Compute `pow(base, exp, mod)`; with `mod`, Python accepts only plain ints.

    >>> power(3, 4), power(3, 4, 5)
    (81, 1)
    """
    if mod is None:
        return pow(base, exp)
    return pow(*[plain_numbers(x, True) for x in (base, exp, mod)])


USER_CALL_WRAPPERS.add(power.__code__)


def plain_text(x: Any) -> Any:
    """Return `x` with pending texts, also in lists and tuples, as plain ones."""
    if is_exactly(x, (list, tuple)):
        parts = [plain_text(y) for y in x]
        return type(x)(parts) if any(a is not b for a, b in zip(parts, x)) else x
    return x.concretize() if type(x) is AfterSymStr else x


def named_plainly(names: Any) -> Any:
    """Return a dict of keywords without pending texts as keys: Python wants names."""
    if type(names) is dict and any(type(k) is AfterSymStr for k in names):
        return {plain_text(k): x for k, x in names.items()}
    return names


# Modules whose C code accepts only plain ints; other C code asks a size for `__index__`.
WANT_INTS = frozenset({"array", "ctypes", "decimal", "fractions", "json", "marshal", "pickle",
                       "plistlib", "random", "sqlite3", "statistics", "struct"})


def plain_numbers(x: Any, sizes: bool = False) -> Any:
    """Return `x` with plain values in place of runtime numbers; `sizes`: of symbolic sizes too.

    Lists and dicts are changed in place, since the code that gets them may change them.
    """
    if is_a(x, SymNumber) or type(x) is AfterSymStr or sizes and type(x) is SymInt:
        return x.concretize()
    if is_a(x, StackedList):
        materialize_list(x)
    if is_exactly(x, (list, tuple, Shape)):
        parts = [plain_numbers(y, sizes) for y in x]
        if any(a is not b for a, b in zip(parts, x)):
            if type(x) is not list:
                return type(x)(parts)
            x[:] = parts
    elif is_exactly(x, _DICTS):
        held = [(plain_numbers(k, sizes), plain_numbers(v, sizes)) for k, v in x.items()]
        if any(k is not known for (k, _), known in zip(held, x)):
            x.clear()
        for k, v in held:
            if k not in x or x[k] is not v:
                x[k] = v
    return x
