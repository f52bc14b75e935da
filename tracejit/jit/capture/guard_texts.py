"""Texts of values: the old and the new one that guards and recompile records name.

In: a value of the caller's. Out: its text, made by no code of the user's. Called by `guards`,
`entry`.
"""

from __future__ import annotations

import enum
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.contents import kind_of_container
from tracejit.jit.capture.dynamic_names import is_user_class
from tracejit.jit.capture.looking import (
    class_attribute,
    is_a,
    is_exactly,
    name_of_class,
    qualname_of_class,
)

_HOLDERS = (list, tuple, dict, set, frozenset)
_SHOWN = 100  # elements


def kind_text(tensor: Tensor) -> str:
    """Describe in words what guards check of a tensor."""
    rank = len(tensor._shape)
    return f"{tensor._dtype.name}, {rank} dimensions, requires_grad={tensor._requires_grad}"


def describe(value: Any) -> str:
    """Describe a value in a recompile record; cut long texts."""
    if is_a(value, Tensor):
        return f"{kind_text(value)}, shape {list(value._shape)}"
    text = shown(value)
    return text if len(text) <= 80 else text[:77] + "..."


def shown(value: Any) -> str:
    """Return the text of a value, or a shorter one where that would run the user's `__repr__`."""
    cls = type(value)
    if is_exactly(value, _HOLDERS) and not tells(value):
        return f"{name_of_class(cls)} of {len(value)}"
    kind = kind_of_container(cls)
    if tells(value) or _repr_of(cls) is _repr_of(kind) and kind is not object:
        return repr(value)
    if is_a(value, enum.Enum):
        return f"{qualname_of_class(cls)}.{value._name_}"
    return f"a {qualname_of_class(cls)}" if kind is object else kind.__repr__(value)


def _repr_of(cls: type) -> Any:
    return class_attribute(cls, "__repr__")


def tells(value: Any) -> bool:
    """Return True if `repr(value)` runs no code of the user's, and shows no long container."""
    cls = type(value)
    if is_exactly(value, _HOLDERS):
        inside = [*value, *value.values()] if cls is dict else value
        return len(value) <= _SHOWN and all(map(tells, inside))
    return not is_user_class(cls)
