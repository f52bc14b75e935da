"""How instances of a class behave: the functions that its attributes and operators run.

In: a class. Out: `behaviour(cls)`, a value that is equal as long as no method, property, operator
or base of the class was replaced, added or taken away. Read by `guards`, so that what a captured
call ran through operators, constructors and descriptors, whose names no code mentions, is what it
would run again. Data in class attributes is no part of it: the state walker finds that by name.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from tracejit.capture import memory_words as words

_FIXED = (GetSetDescriptorType, MemberDescriptorType)  # made with the class
_IMMUTABLE, _HEAP_TYPE = 1 << 8, 1 << 9
_known: weakref.WeakKeyDictionary[type, tuple[int, tuple]] = weakref.WeakKeyDictionary()


def may_change(cls: type) -> bool:
    """Whether attributes of the class itself can be set."""
    return cls.__flags__ & (_HEAP_TYPE | _IMMUTABLE) == _HEAP_TYPE


def behaviour(cls: type) -> tuple:
    """The functions and descriptors along the bases of a class, none of them kept alive.

    >>> class Vector:
    ...     pass
    >>> before = behaviour(Vector)
    >>> Vector.__add__ = lambda self, other: self
    >>> behaviour(Vector) == before
    False
    """
    return tuple([_own(base) for base in cls.__mro__ if may_change(base)])


def _own(cls: type) -> tuple:
    """What one class adds to its bases; the same object as long as it is equal."""
    version = words.class_version(cls) if words.supported() else 0
    known = _known.get(cls)
    if known is not None and version and known[0] == version:
        return known[1]
    found = tuple(_entries(cls))
    if known is not None and known[1] == found:
        found = known[1]
    _known[cls] = version, found
    return found


def _entries(cls: type) -> Iterator[tuple]:
    yield (weakref.ref(cls),)
    own = dict(vars(cls))
    for name in sorted(own):
        value = own[name]
        if _behaves(name, value):
            yield (name, *map(_reference, _functions(value)))


def _behaves(name: str, value: Any) -> bool:
    special = name.startswith("__") and name.endswith("__")
    if special and (value is None or callable(value)):
        return True
    return hasattr(type(value), "__get__") and not isinstance(value, _FIXED)


def _functions(value: Any) -> tuple:
    """What a class attribute runs."""
    if isinstance(value, (staticmethod, classmethod)):
        return (type(value), value.__func__)
    if isinstance(value, property):
        return (property, value.fget, value.fset, value.fdel)
    return (value,)


def _reference(value: Any) -> Any:
    """A value that is equal to itself alone."""
    try:
        return weakref.ref(value)
    except TypeError:
        return id(value)


def code_in_class(cls: type, code: Any) -> tuple[type, str] | None:
    """The base of a class and the name under which a function with this code is found there."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            for function in _functions(value):
                if type(function) is FunctionType and function.__code__ is code:
                    return base, name
    return None
