"""Pickles of plain data (`pickle.dumps`) in a captured function: their bytes follow from guarded
values.

In: the function, and the arguments that recorded code gives it. Out: the bytes. The watcher does
not see the call if equal values always give the same bytes. A pickle tells one object that occurs
twice from two equal ones, but guards do not. The watcher sees calls with such data and adds a
break. Called by `calls`.
"""

from __future__ import annotations

import pickle
from types import CodeType
from typing import Any

from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.plain_arguments import plain_numbers
from tracejit.jit.capture.watcher import USER_CALL_WRAPPERS

_NUMBERS = (int, float, bool, complex, type(None))
_TEXTS = (str, bytes)
_MOST = 1000  # parts of the data, at most


def is_dumps(function: Any) -> bool:
    """Return True for `pickle.dumps`."""
    return function is pickle.dumps


def of_plain_data(function: Any) -> Any:
    """Wrap `pickle.dumps`, so that the watcher does not see calls with plain data."""

    def call(value: Any, *arguments: Any, **named: Any) -> Any:
        value, arguments, named = plain_numbers((value, arguments, named), True)
        if gives_equal_bytes([value, *arguments, *named.values()]):
            return _unwatched(function, value, arguments, named)
        return function(value, *arguments, **named)

    return call


USER_CALL_WRAPPERS.update(c for c in of_plain_data.__code__.co_consts if is_a(c, CodeType))


def _unwatched(function: Any, value: Any, arguments: tuple, named: dict[str, Any]) -> Any:
    return function(value, *arguments, **named)


def gives_equal_bytes(values: list[Any]) -> bool:
    """Return True for plain data in which no two equal parts could be one object.

    >>> gives_equal_bytes([{"a": 1, "b": [2, 2]}]), gives_equal_bytes([["a", "a"]])
    (True, False)
    >>> gives_equal_bytes([[], []]), gives_equal_bytes([object()])
    (False, False)
    """
    parts, texts, containers = list(values), [], []
    for part in parts:  # the list grows meanwhile
        if len(parts) > _MOST:
            return False
        if is_exactly(part, _TEXTS):
            texts.append(part)
        elif is_exactly(part, (list, tuple)):
            containers.append(part)
            parts += part
        elif type(part) is dict:
            containers.append(part)
            parts += (*part, *part.values())
        elif not is_exactly(part, _NUMBERS):
            return False
    # A container's bytes depend on what its text shows; equal containers have equal texts.
    return all(len(set(x)) == len(x) for x in (texts, list(map(repr, containers))))
