"""Values made of tensors: taken apart into leaves, compared in shape, and put together again.

In: what a variable or a returned value holds where branches or iterations of a captured program
meet. Out: the tensors in it, in order, and a `Structure` that says what the rest is. Called where
control flow becomes part of a graph (`branches.py`, `loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.core.eager.subclasses import keeps_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.looking import ABSENT, class_attribute, has_in_class, is_a, is_exactly
from tracejit.jit.capture.place import PRIMITIVE, TOLD_BY_TEXT, key_of
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.variables import UNBOUND
from tracejit.jit.ir.sizes import SymInt


@dataclass(frozen=True)
class Structure:
    """What a value is apart from its tensors.

    kind   "tensor" (value: a class of them that results keep); "constant" (value: the object);
           "sequence" (value: its type); "mapping" (value: its type and keys); "number" (value: int
           or float): one that the program computes
    """

    kind: str
    value: Any = None
    parts: tuple[Structure, ...] = ()


def take_apart(
    value: Any, leaves: list[Any], made: Callable[[Any], bool] = lambda container: False,
    number: Callable[[Any], bool] = lambda value: False,
) -> Structure:
    """The structure of a value; its tensors are appended to `leaves`.

    made    whether a list or dict is new, so that another one may stand for it: else it is itself
    number  whether a value is a number to be appended to `leaves` as well
    """
    if is_a(value, Tensor):
        leaves.append(value)
        cls = type(value)
        return Structure("tensor", cls if cls is not Tensor and keeps_class(cls) else None)
    named = is_a(value, tuple) and has_in_class(value, "_make")
    if type(value) is tuple or named or type(value) is list and made(value):
        parts = tuple([take_apart(v, leaves, made, number) for v in value])
        return Structure("sequence", type(value), parts)
    if type(value) is dict and made(value) and all(key_of(k) is k for k in value):
        parts = tuple([take_apart(v, leaves, made, number) for v in value.values()])
        return Structure("mapping", (dict, tuple(value)), parts)
    if number(value):
        leaves.append(value)
        return Structure("number", number_kind(value))
    return Structure("constant", value)


def number_kind(value: Any) -> type | None:
    """int or float for what is such a number, plain or known only to the program; else None. bool
    for one that only the program knows."""
    if is_exactly(value, (int, float)):
        return type(value)
    return value.kind if is_a(value, SymNumber) else None


def common_kind(one: Any, other: Any) -> type | None:
    """The kind of two numbers that are chosen from; None where there is none. A bool of the
    program may be chosen beside a plain one."""
    kind = number_kind(one) or number_kind(other)
    found = [bool if kind is bool and type(x) is bool else number_kind(x) for x in (one, other)]
    return kind if found == [kind, kind] else None


def put_together(structure: Structure, leaves: Iterator[Any], own: list | None = None) -> Any:
    """A value of that structure with these tensors and numbers in it; containers are fresh, and
    appended to `own`."""
    if structure.kind == "number":
        return next(leaves)
    if structure.kind == "tensor":
        leaf = next(leaves)
        return leaf if structure.value is None else of_class(leaf, structure.value)
    if structure.kind == "constant":
        return structure.value
    parts = [put_together(part, leaves, own) for part in structure.parts]
    cls = structure.value
    if structure.kind == "mapping":
        made: Any = dict(zip(structure.value[1], parts))
    else:
        made = cls._make(parts) if class_attribute(cls, "_make") is not ABSENT else cls(parts)
    if own is not None:
        own.append(made)
    return made


def difference(one: Structure, other: Structure) -> str | None:
    """In words, how two structures differ; None where they agree."""
    if not same_kind(one, other):
        return f"{text(one)} in one case and {text(other)} in the other"
    return next((d for a, b in zip(one.parts, other.parts) if (d := difference(a, b))), None)


def same_kind(one: Structure, other: Structure) -> bool:
    """Whether two structures agree, their parts aside."""
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
        return False  # of a subclass: equal ones may have other attributes
    return repr(one) == repr(other) if is_a(one, TOLD_BY_TEXT) else bool(one == other)


def plain_constants(structure: Structure) -> bool:
    """Whether constants are numbers, texts and the like: nothing that holds tensors."""
    value = structure.value
    if structure.kind == "constant":
        return is_a(value, (*PRIMITIVE, SymNumber, SymInt)) or value is UNBOUND
    return all(map(plain_constants, structure.parts))


def text(structure: Structure) -> str:
    """What a value is, in words."""
    if structure.kind == "tensor":
        return "a tensor"
    if structure.kind == "number":
        return f"a {structure.value.__name__} that only the program knows"
    if structure.kind == "constant":
        value = structure.value
        if is_a(value, SymNumber):
            return f"a {value.kind.__name__} that only the program knows"
        known = is_a(value, PRIMITIVE) or value is UNBOUND
        return repr(value) if known else f"a {type(value).__name__}"
    if structure.kind == "mapping":
        return f"a dict with keys {list(structure.value[1])}"
    return f"a {structure.value.__name__} of {len(structure.parts)}"
