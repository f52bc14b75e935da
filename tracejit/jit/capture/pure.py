"""Pure C functions: they depend on their arguments and change nothing else.

In: a C function that recorded code calls. Out: True if a replay may use the recorded result again.
Called by `watcher` for every C function, by `calls` and `wants_numbers`.
"""

from __future__ import annotations

import builtins
import collections
import math
import operator
import re
from contextvars import ContextVar
from types import MappingProxyType, MethodDescriptorType, ModuleType
from typing import Any

import numpy

from tracejit.jit.capture.contents import kind_of_container
from tracejit.jit.capture.looking import attribute_of, bases_of, is_a, names_in

_PURE_TYPES: tuple[Any, ...] = (
    list,
    dict,
    tuple,
    set,
    frozenset,
    str,
    bytes,
    int,
    float,
    bool,
    complex,
    range,
    slice,
    type(None),
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type,
    property,
    MappingProxyType,
    re.Pattern,
    re.Match,
    bytearray,
    ContextVar,
)
_PURE_BUILTINS = {
    getattr(builtins, n)
    for n in (
        "abs all any callable chr divmod format hasattr getattr hash id isinstance issubclass iter "
        "len max min next ord "
        "pow repr round sorted sum bin hex oct ascii setattr delattr vars dir locals"
    ).split()
}
_PURE_MODULES = {
    math.__name__,
    operator.__name__,
    "_operator",
    "itertools",
    "_functools",
    "functools",
    "_collections",
    "_abc",
    "_struct",
    "cmath",
    "_weakref",
    "_typing",
    "_json",
    "_sre",
    "_bisect",
    "numpy.lib.array_utils",
}
# Functions of NumPy's that make arrays of their arguments. The watcher sees reads of arrays made
# outside, and no other code has the new arrays.
_OF_ARRAYS = {
    getattr(numpy, n)
    for n in "arange array asanyarray asarray ascontiguousarray empty promote_types zeros".split()
}
_INTERNAL: Any = vars(numpy)["_core"]
# How NumPy treats errors in a block (`errstate`); a context variable holds it.
_MAKES_SWITCHES: Any = getattr(_INTERNAL._multiarray_umath, "_make_extobj", None)
_ARRAYS = (
    numpy.ndarray,
    numpy.ufunc,
    numpy.nditer,
    getattr(_INTERNAL._multiarray_umath, "_array_converter", numpy.ufunc),  # NumPy's own helper
)
_LEAVES_ARRAYS = {"dump", "tofile", "setflags"}  # these reach beyond the array
_OF_NUMBERS = {"astype", "item", "round", "tolist"}


def is_of_arrays(function: Any) -> bool:
    """Return True for a function or method of NumPy's that only makes, reads or changes arrays."""
    if is_a(attribute_of(function, "__self__"), _ARRAYS):
        return function.__name__ not in _LEAVES_ARRAYS
    return function in _OF_ARRAYS or function is _MAKES_SWITCHES


def is_pure(function: Any) -> bool:
    """Return True if a C function reads and changes nothing but its arguments."""
    if is_of_arrays(function) or function in _PURE_BUILTINS:
        return True
    owner = attribute_of(function, "__self__")
    if is_a(owner, type):
        home = _home(owner, function.__name__)
        pure = home is object or home in _PURE_TYPES or issubclass(home, BaseException)
        return pure and function.__name__ != "__subclasses__" or home.__module__ in _PURE_MODULES
    if owner is not None and not is_a(owner, ModuleType):
        if is_a(owner, numpy.generic):  # a number of NumPy's, which no code can change
            return function.__name__ in _OF_NUMBERS
        kind = kind_of_container(type(owner))  # `super()` may call a C method of a base class
        return kind in _PURE_TYPES or is_a(owner, BaseException)
    if is_a(function, MethodDescriptorType):
        known = function.__objclass__ in _PURE_TYPES or function.__objclass__ is object
        return known and function.__name__ != "__subclasses__"
    if function is builtins.__build_class__:  # the watcher sees the class body as code
        return True
    module = attribute_of(function, "__module__") or attribute_of(owner, "__name__")
    return module in _PURE_MODULES


def _home(cls: type, name: str) -> type:
    """Return the class that has a method found in `cls`: one of its bases, or of its
    metaclass's."""
    metaclass: type = type(cls)
    return next((c for c in (*bases_of(cls), *bases_of(metaclass)) if name in names_in(c)), cls)
