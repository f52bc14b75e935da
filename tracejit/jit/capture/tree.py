"""Values made of tensors: taken apart into leaves, compared in structure, and put together again.

In: the value of a variable, or a returned one, where branches or iterations of a captured program
meet. Out: the tensors in it, in order, and a `TreeSpec` of the rest. Called where control flow
becomes part of a graph (`join.py`, `loop_body.py`, `loops.py`, `loop_exit.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.core.eager.subclasses import keeps_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.access_path import PRIMITIVE, TOLD_BY_TEXT, key_of
from tracejit.jit.capture.cells import UNBOUND
from tracejit.jit.capture.looking import ABSENT, class_attribute, has_in_class, is_a, is_exactly
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.sizes import SymInt


@dataclass(frozen=True)
class TreeSpec:
    """Structure of a value apart from its tensors.

    kind   "tensor" (value: a class of them that results keep); "constant" (value: the object);
           "sequence" (value: its type); "mapping" (value: its type and keys); "number" (value: int
           or float): one that the program computes
    """

    kind: str
    value: Any = None
    parts: tuple[TreeSpec, ...] = ()


def tree_flatten(
    value: Any, leaves: list[Any], made: Callable[[Any], bool] = lambda container: False,
    number: Callable[[Any], bool] = lambda value: False,
) -> TreeSpec:
    """Return the structure of a value; append its tensors to `leaves`.

    made    returns True for a new list or dict, which another may stand for; others are constants
    number  returns True for a number that is to go to `leaves` as well
    """
    if is_a(value, Tensor):
        leaves.append(value)
        cls = type(value)
        return TreeSpec("tensor", cls if cls is not Tensor and keeps_class(cls) else None)
    named = is_a(value, tuple) and has_in_class(value, "_make")
    if type(value) is tuple or named or type(value) is list and made(value):
        parts = tuple([tree_flatten(v, leaves, made, number) for v in value])
        return TreeSpec("sequence", type(value), parts)
    if type(value) is dict and made(value) and all(key_of(k) is k for k in value):
        parts = tuple([tree_flatten(v, leaves, made, number) for v in value.values()])
        return TreeSpec("mapping", (dict, tuple(value)), parts)
    if number(value):
        leaves.append(value)
        return TreeSpec("number", number_kind(value))
    return TreeSpec("constant", value)


def number_kind(value: Any) -> type | None:
    """Return int or float for such a number, plain or known only to the program; else None.

    bool for a bool that only the program knows.
    """
    if is_exactly(value, (int, float)):
        return type(value)
    return value.kind if is_a(value, SymNumber) else None


def common_kind(one: Any, other: Any) -> type | None:
    """Return the kind of two numbers from which a value chooses; None if they have none in common.

    A bool of the program may be chosen beside a plain one.
    """
    kind = number_kind(one) or number_kind(other)
    found = [bool if kind is bool and type(x) is bool else number_kind(x) for x in (one, other)]
    return kind if found == [kind, kind] else None


def tree_unflatten(spec: TreeSpec, leaves: Iterator[Any], own: list | None = None) -> Any:
    """Make a value of that structure from these tensors and numbers.

    Containers are fresh, and appended to `own`.
    """
    if spec.kind == "number":
        return next(leaves)
    if spec.kind == "tensor":
        leaf = next(leaves)
        return leaf if spec.value is None else of_class(leaf, spec.value)
    if spec.kind == "constant":
        return spec.value
    parts = [tree_unflatten(part, leaves, own) for part in spec.parts]
    cls = spec.value
    if spec.kind == "mapping":
        made: Any = dict(zip(spec.value[1], parts))
    else:
        made = cls._make(parts) if class_attribute(cls, "_make") is not ABSENT else cls(parts)
    if own is not None:
        own.append(made)
    return made


def difference(one: TreeSpec, other: TreeSpec) -> str | None:
    """Return how two structures differ, in words; None if they agree."""
    if not same_kind(one, other):
        texts = text(one), text(other)
        if texts[0] == texts[1]:
            return f"another {type(other.value).__name__} in each case"
        return f"{texts[0]} in one case and {texts[1]} in the other"
    return next((d for a, b in zip(one.parts, other.parts) if (d := difference(a, b))), None)


def same_kind(one: TreeSpec, other: TreeSpec) -> bool:
    """Return True if two structures agree, apart from their parts."""
    if one.kind != other.kind:
        return False
    if one.kind == "constant":
        return _same_constant(one.value, other.value)
    if one.kind == "tensor" and one.value is not other.value:
        return False
    if len(one.parts) != len(other.parts):
        return False
    if one.kind == "mapping":
        return all(map(_same_constant, one.value[1], other.value[1]))
    return one.value is other.value


def _same_constant(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) is SymInt:
        return bool(one == other)
    if is_a(one, SymNumber):
        return False
    if not is_a(one, np.generic) and not is_exactly(one, PRIMITIVE):
        return False  # equal objects of a subclass may differ in attributes
    return repr(one) == repr(other) if is_a(one, TOLD_BY_TEXT) else bool(one == other)


def plain_constants(spec: TreeSpec) -> bool:
    """Return True if all constants are numbers, texts and the like, which hold no tensors."""
    value = spec.value
    if spec.kind == "constant":
        return is_a(value, (*PRIMITIVE, SymNumber, SymInt)) or value is UNBOUND
    return all(map(plain_constants, spec.parts))


def _named(kind: type) -> str:
    """Return a class's name behind its article.

    >>> _named(int), _named(dict)
    ('an int', 'a dict')
    """
    return f"{'an' if kind.__name__[0] in 'AEIOaeio' else 'a'} {kind.__name__}"


def text(spec: TreeSpec) -> str:
    """Return in words what kind of value a structure has."""
    if spec.kind == "tensor":
        return "a tensor"
    if spec.kind == "number":
        return f"{_named(spec.value)} computed from tensors"
    if spec.kind == "constant":
        value = spec.value
        if is_a(value, SymNumber):
            return f"{_named(value.kind)} computed from tensors"
        known = is_a(value, PRIMITIVE) or value is UNBOUND
        return repr(value) if known else _named(type(value))
    if spec.kind == "mapping":
        return f"a dict with keys {list(spec.value[1])}"
    return f"a {spec.value.__name__} of {len(spec.parts)}"
