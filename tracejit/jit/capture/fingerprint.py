"""Fingerprints of classes: the functions that attributes and operators of instances run.

In: a class. Out: `class_fingerprint(cls)`, which stays equal until a method, property, operator or
base of the class is replaced, added or removed. Called by `guards`, `state` and `epilogue`.

A captured call may run functions through operators, constructors and descriptors, whose names no
code mentions. The fingerprint tells the guards that a replay would run the same. Data in class
attributes is no part of a fingerprint: the state walker finds data by name.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import (
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
)
from typing import Any

from tracejit.jit.capture import memory_words as words
from tracejit.jit.capture.looking import (
    ByClass,
    attribute_of,
    bases_of,
    class_attribute,
    flags_of,
    has_in_class,
    is_a,
    names_in,
)

_FIXED = (GetSetDescriptorType, MemberDescriptorType)  # made with the class
_IMMUTABLE, _HEAP_TYPE = 1 << 8, 1 << 9
Known = ByClass[tuple[int, tuple]]
_alone: Known = ByClass()  # of a class without its bases
_whole: Known = ByClass()
_named: Known = ByClass()
# Parts of tracejit whose objects hold the user's state.
USERS_STATE = tuple(
    f"tracejit.{room}"
    for room in (
        "amp", "config", "cpu", "cuda", "distributed.algorithms", "distributed.optim",
        "distributions", "nn", "optim", "sparse", "utils",
    )
)  # fmt: skip


def is_mutable_class(cls: type) -> bool:
    """Return True if code can set attributes of the class itself."""
    return flags_of(cls) & (_HEAP_TYPE | _IMMUTABLE) == _HEAP_TYPE


def module_name(cls: type) -> str:
    """Return the module of a class; empty if code without a `__name__` made the class.

    >>> module_name(dict)
    'builtins'
    """
    return str(attribute_of(cls, "__module__", ""))


def class_fingerprint(cls: type) -> tuple:
    """Return the functions and descriptors along the bases of a class, none of them kept alive.

    >>> class Vector:
    ...     pass
    >>> before = class_fingerprint(Vector)
    >>> Vector.__add__ = lambda self, other: self
    >>> class_fingerprint(Vector) == before
    False
    """
    return remembered(cls, _with_bases, _whole)


def remembered(cls: type, compute: Callable[[type], tuple], known: Known) -> tuple:
    """Return `compute(cls)`, cached until the class changes; equal results stay one object."""
    version = words.class_version(cls) if words.sees_classes() else 0
    before = known.get(cls)
    if before is not None and version and before[0] == version:
        return before[1]
    found = compute(cls)
    if before is not None and before[1] == found:
        found = before[1]
    known[cls] = version, found
    return found


def _with_bases(cls: type) -> tuple:
    bases = (base for base in bases_of(cls) if is_mutable_class(base))
    return tuple([remembered(base, _own, _alone) for base in bases])


def _own(cls: type) -> tuple:
    """Return the entries that a class adds to its bases."""
    return tuple(_entries(cls))


def _entries(cls: type) -> Iterator[tuple]:
    yield (weakref.ref(cls),)
    own = dict(names_in(cls))
    for name in sorted(own):
        value = own[name]
        if _behaves(name, value):
            yield (name, *map(_reference, _functions(value)))


def _behaves(name: str, value: Any) -> bool:
    special = name.startswith("__") and name.endswith("__")
    if special and (value is None or callable(value)):
        return True
    return has_in_class(value, "__get__") and not is_a(value, _FIXED)


def _functions(value: Any) -> tuple:
    """Return the functions that a class attribute runs, with the type that wraps them."""
    if is_a(value, (staticmethod, classmethod)):
        return (type(value), value.__func__)
    if is_a(value, property):
        return (property, value.fget, value.fset, value.fdel)
    if is_a(value, (functools.cached_property, functools.partialmethod)):
        return (type(value), value, value.func)
    return (value,)


def function_of(x: Any) -> Any:
    """Return the function behind a method, else `x`; run no `__getattr__` of the user's."""
    return x.__func__ if issubclass(type(x), (MethodType, staticmethod, classmethod)) else x


def first_argument(code: CodeType, frame: FrameType) -> Any:
    """Return the first argument of a call that begins, even in `*args`; None if there is none."""
    if code.co_argcount:
        return frame.f_locals.get(code.co_varnames[0])
    if not code.co_flags & inspect.CO_VARARGS:
        return None
    # Missing where an inner function uses the variable: its cell is not made yet.
    given = frame.f_locals.get(code.co_varnames[code.co_kwonlyargcount])
    return given[0] if given else None


def _reference(value: Any) -> Any:
    """Return a value that stands for the object and is equal to itself alone."""
    try:
        return weakref.ref(value)
    except TypeError:
        return id(value)


def code_in_class(cls: type, code: Any) -> tuple[type, str] | None:
    """Return (base, name) where a class has a function with this code; None if it has none."""
    for base in bases_of(cls):
        for name, value in names_in(base).items():
            for function in _functions(value):
                if type(function) is FunctionType and function.__code__ is code:
                    return base, name
    return None


def is_method_named(cls: type, code: Any, names: Iterable[str]) -> bool:
    """Return True if a class has a function with this code under one of the names.

    >>> class Gain:
    ...     def _value(self): return 2.0
    ...     __float__ = _value
    >>> is_method_named(Gain, Gain._value.__code__, ["__float__"])
    True
    """
    methods = (class_attribute(cls, name) for name in names)
    return any(type(m) is FunctionType and m.__code__ is code for m in methods)


def known_names(cls: type) -> frozenset[str]:
    """Return the names that methods of a class mention.

    >>> class Counter:
    ...     def __init__(self):
    ...         self.count = 0
    >>> sorted(known_names(Counter))
    ['count']
    """
    return frozenset(remembered(cls, _names_in_methods, _named))


def _names_in_methods(cls: type) -> tuple[str, ...]:
    bases = [base for base in bases_of(cls) if is_mutable_class(base)]
    methods = [f for base in bases for value in names_in(base).values() for f in _functions(value)]
    return tuple(n for f in methods if type(f) is FunctionType for n in f.__code__.co_names)


def subclasses(pairs: Iterable[tuple[type, type]]) -> list[bool | None]:
    """Return `issubclass(*pair)` for each pair of classes; None where it raises TypeError."""
    return [_is_subclass(*pair) for pair in pairs]


def _is_subclass(cls: type, abstract: type) -> bool | None:
    try:
        return issubclass(cls, abstract)
    except TypeError:  # a protocol with attributes refuses
        return None
