"""Names: of nodes, unique in their graph, and of functions and types, as code writes them.

In: a wish for a name, functions and types. Out: names. Called by graphs, nodes and their code.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import math
import re
import sys
import types
import typing
from typing import Any

import tracejit
from tracejit.core.ops.inner_names import Overload

# Names that have a meaning in all generated code.
CUSTOM_BUILTINS: dict[str, tuple[str, Any]] = {
    "inf": ("from math import inf", math.inf),
    "nan": ("from math import nan", math.nan),
    "NoneType": ("NoneType = type(None)", type(None)),
    "tracejit": ("import tracejit", tracejit),
    "device": ("from tracejit import device", tracejit.device),
    "pytree": ("import tracejit.utils._pytree as pytree", None),
}
_TAKEN = set(CUSTOM_BUILTINS) | {"torch", "fx_pytree"}
# Where functions are public, the first place first.
_PLACES = ("tracejit.functional", "tracejit", "tracejit.nn.functional", "tracejit.linalg",
           "tracejit.special", "tracejit.fft", "tracejit.nn.init")
_TYPING = {list: typing.List, dict: typing.Dict, set: typing.Set,  # noqa: UP006 - as PyTorch
           frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006


class Namespace:
    """Names that are taken, each perhaps by an object.

    >>> names = Namespace()
    >>> names.create_name("relu", None), names.create_name("relu", None)
    ('relu', 'relu_1')
    >>> names.create_name("print", None)
    'print_1'
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # base -> the last number given to it
        self._of_objects: dict[int, tuple[str, Any]] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name near the candidate: legal, and taken by nothing else."""
        if obj is not None and id(obj) in self._of_objects:
            return self._of_objects[id(obj)][0]
        wish = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if wish[0].isdigit():
            wish = f"_{wish}"
        parts = re.fullmatch(r"(.*)_(\d+)", wish)
        base, number = (parts[1], int(parts[2])) if parts else (wish, 0)
        number = number or self._numbers.get(base, 0)
        while wish in self._taken or _has_other_meaning(wish, obj):
            number += 1
            wish = f"{base}_{number}"
        self._taken.add(wish)
        self._numbers[base] = number
        if obj is not None:
            self.associate_name_with_obj(wish, obj)
        return wish

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Let an object have a name."""
        self._of_objects.setdefault(id(obj), (name, obj))

    def rename(self, obj: Any, name: str) -> None:
        """Let an object have another name."""
        self._of_objects[id(obj)] = (name, obj)
        self._taken.add(name)


def _has_other_meaning(name: str, obj: Any) -> bool:
    if keyword.iskeyword(name):
        return True
    if name in builtins.__dict__:
        return obj is not builtins.__dict__[name]
    if name in CUSTOM_BUILTINS:
        return obj is not CUSTOM_BUILTINS[name][1]
    return name in _TAKEN


def name_of_target(target: Any) -> str:
    """Return the name that a node wishes for, by its target.

    >>> name_of_target("fooBar"), name_of_target(len), name_of_target("__add__")
    ('foo_bar', 'len', 'add')
    """
    found = target if isinstance(target, str) else getattr(target, "__name__", None)
    name = found or type(target).__name__
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()


@functools.cache
def _public_names() -> dict[int, tuple[str, Any]]:
    """Return {id: (name, object)} of the functions and classes of the package."""
    found: dict[int, tuple[str, Any]] = {}
    for place in _PLACES:
        __import__(place)
        for name, obj in vars(sys.modules[place]).items():
            if callable(obj) and is_of_package(obj) and not name.startswith("__") and (
                    not isinstance(obj, type) or place == "tracejit"):
                found.setdefault(id(obj), (f"{place}.{name}", obj))
    return found


def is_of_package(obj: Any) -> bool:
    """Return True if a function or class was made in this package.

    >>> is_of_package(tracejit.relu), is_of_package(len)
    (True, False)
    """
    return str(getattr(obj, "__module__", "")).split(".")[0] == "tracejit"


def public_name(obj: Any) -> str | None:
    """Return the place and name of a function or class of the package; None for others.

    >>> import tracejit
    >>> public_name(tracejit.relu), public_name(tracejit.Tensor), public_name(len)
    ('tracejit.relu', 'tracejit.Tensor', None)
    """
    found = _public_names().get(id(obj))
    return found[0] if found is not None and found[1] is obj else None


def qualified_name(function: Any) -> str:
    """Return a function's module and name.

    >>> import operator
    >>> qualified_name(operator.add), qualified_name(len)
    ('_operator.add', 'len')
    """
    name = getattr(function, "__name__", type(function).__name__)
    if getattr(builtins, name, None) is function:
        return name
    public = public_name(function)
    if public is not None:
        return public
    if isinstance(function, Overload):
        return f"tracejit.ops.aten.{name}"
    owner = tracejit.Tensor
    if getattr(owner, name, None) is function:
        return f"tracejit.Tensor.{name}"
    module = getattr(function, "__module__", None) or "builtins"
    if name == "<lambda>":  # a lambda may be found under a name that it was given
        here = vars(sys.modules[module]) if module in sys.modules else {}
        given = [key for key, value in list(here.items()) if value is function]
        name = given[0] if given else "_lambda"
    return f"{module}.{name}"


def is_ours(obj: Any) -> bool:
    """Return True for what code finds under the name `tracejit` by its qualified name."""
    if obj is tracejit.device:
        return False
    found: Any = tracejit
    first, *atoms = qualified_name(obj).split(".")
    for atom in atoms:
        found = getattr(found, atom, None)
    return first == "tracejit" and found is obj


def type_repr(obj: Any) -> str:
    """Return a type as it is shown.

    >>> type_repr(int), type_repr(list[int])
    ('int', 'list[int]')
    """
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return public_name(obj) or f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace("tracejit.core.eager.tensor.Tensor", "tracejit.Tensor")


def parts_of_type(obj: Any) -> tuple[Any, tuple]:
    """Return the class or form that a generic type is of, and what it is given.

    >>> parts_of_type(list[int])
    (<class 'list'>, (<class 'int'>,))
    """
    origin = getattr(obj, "__origin__", None)
    if origin is None or not hasattr(obj, "__args__"):
        return obj, ()
    if not isinstance(obj, types.GenericAlias):
        origin = _TYPING.get(origin, origin)
    return origin, obj.__args__
