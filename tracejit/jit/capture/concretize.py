"""Symbolic numbers replaced by plain ones, wherever a recorded call left them.

In: a value, or the runtime numbers of a recording that is over. Out: the same objects with ints and
floats in place of runtime numbers, pending numbers and sizes. Mutable objects change in place,
immutable ones are made anew. Called by `lift_numbers` and `runtime.session` when a recorded call
ends, and where a value enters a spec or a guard.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from types import (
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.referrers import referrers
from tracejit.jit.capture.fingerprint import USERS_STATE, module_name
from tracejit.jit.capture.host_reads import AfterSym
from tracejit.jit.capture.looking import (
    flags_of,
    instance_dict,
    is_a,
    is_exactly,
    names_in,
    slots_of,
)
from tracejit.jit.capture.rolled import StackedList, ordinary
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.sizes import SymInt

Leaf = Callable[[Any], Any]

_FIXED = (tuple, frozenset)
_FILLED = (list, dict, set, deque)


def concretize_tree(value: Any, seen: set[int] | None = None) -> Any:
    """Return `value` with plain numbers, unguarded: containers in place, tuples and the like anew.

    seen   ids of the containers that were looked at already

    >>> concretize_tree({1.5: (2, [3])})
    {1.5: (2, [3])}
    """
    return replaced(value, _number, set() if seen is None else seen)


_MOST = 1000  # objects to look into, at most


def concretize_objects(value: Any, seen: set[int], number: Leaf | None = None) -> Any:
    """Return `value` with plain numbers, also in attributes of objects in it that the call made.

    seen     ids of the objects that were there before the call
    number   returns the plain number for a symbolic one, anything else as it is

    >>> class Cache:
    ...     def __init__(self): self.sizes = [slice(2)]
    >>> concretize_objects((Cache(),), set())[0].sizes
    [slice(None, 2, None)]
    """
    found: list[Any] = []
    number = number or _number

    def look(x: Any) -> Any:
        if id(x) not in seen and (is_object(x) or issubclass(type(x), (*_HOLDERS, type))):
            seen.add(id(x))
            found.append(x)
        return number(x)

    def fresh(x: Any) -> Any:
        return replaced(x, look, seen)

    value = fresh(value)
    for x in found:  # `look` appends to it
        if len(found) > _MOST:
            break
        _fill(x, fresh)
    return value


_OF_LISTS: list[Any] = [iter([]), iter({}.items()), iter({}.values()), reversed([]), iter(deque())]
# Types of objects that hold values and are no containers.
_HOLDERS: tuple[type, ...] = (
    FunctionType, MethodType, CellType, GeneratorType, functools.partial, BaseException,
    SimpleNamespace, MappingProxyType, type({}.values()), type({}.items()), *map(type, _OF_LISTS),
    enumerate, filter, map, zip, itertools.chain, itertools.cycle, itertools.islice,
)  # fmt: skip
# Class attributes made with the class: the call put no numbers there.
_OF_CLASSES = (FunctionType, property, staticmethod, classmethod, MemberDescriptorType)


def is_object(value: Any) -> bool:
    """Return True for an instance of a user's class, or of tracejit's that holds user state."""
    kind = type(value)
    if not flags_of(kind) & _HEAP or is_a(value, type):
        return False
    home = module_name(kind)
    ours = home.startswith("tracejit.")
    return not ours or home.startswith(USERS_STATE) and not is_a(value, Tensor)


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _number(value: Any) -> Any:
    if type(value) is SymInt or issubclass(type(value), (SymNumber, AfterSym)):
        return value.hint
    return value


def concretize(value: Any) -> Any:
    """Return `value`, or the plain number that it stands for: the program then depends on it."""
    if type(value) is SymInt or issubclass(type(value), (SymNumber, AfterSym)):
        return value.concretize()
    return value


def replaced(value: Any, fresh: Leaf, seen: set[int]) -> Any:
    """Return `value` with `fresh(x)` for x that is no container, as `concretize_tree` does it."""
    kind = type(value)
    if kind is slice:
        before = value.start, value.stop, value.step
        parts = [replaced(v, fresh, seen) for v in before]
        return value if all(a is b for a, b in zip(parts, before)) else slice(*parts)
    if not issubclass(kind, (*_FILLED, *_FIXED)):
        return fresh(value)
    if kind is StackedList:
        return replaced(ordinary(value), fresh, seen)
    if id(value) in seen and not issubclass(kind, _FIXED):
        return value
    seen.add(id(value))
    if instance_dict(value):  # attributes of a derived class
        replaced(instance_dict(value), fresh, seen)
    if issubclass(kind, dict):
        _fill_dict(value, fresh, seen)
    elif issubclass(kind, set):
        for x in [x for x in value if replaced(x, fresh, seen) is not x]:
            set.discard(value, x)
            set.add(value, replaced(x, fresh, seen))
    elif issubclass(kind, _FIXED):
        return _made_anew(value, fresh, seen)
    else:
        filled: Any = list if issubclass(kind, list) else deque
        for k, v in enumerate(filled.__iter__(value)):
            if (new := replaced(v, fresh, seen)) is not v:
                filled.__setitem__(value, k, new)
    return value


def _made_anew(value: Any, fresh: Leaf, seen: set[int]) -> Any:
    """Rebuild a tuple or frozenset without its constructor, which may take other arguments."""
    fixed: Any = tuple if is_a(value, tuple) else frozenset
    before = list(fixed.__iter__(value))
    parts = [replaced(v, fresh, seen) for v in before]
    if all(a is b for a, b in zip(parts, before)):
        return value
    made = fixed.__new__(type(value), parts)
    if instance_dict(value):
        instance_dict(made).update(instance_dict(value))
    return made


def _fill_dict(value: dict, fresh: Leaf, seen: set[int]) -> None:
    kind: Any = OrderedDict if is_a(value, OrderedDict) else dict
    # A copy: looking at what a dict holds may run code that fills it, as imports fill sys.modules.
    held = list(kind.items(value))
    items = [(k, v, replaced(k, fresh, seen), replaced(v, fresh, seen)) for k, v in held]
    if any(key is not k for k, _, key, _ in items):
        kind.clear(value)  # and refill: the order of the keys stays
        for _, _, key, new in items:
            kind.__setitem__(value, key, new)
        return
    for k, v, _, new in items:
        if new is not v:
            kind.__setitem__(value, k, new)


def concretize_referrers(numbers: Iterable[weakref.ref]) -> None:
    """Put plain numbers into all objects that still refer to these runtime numbers.

    Serve a call without an entry, or one that made objects: numbers may lie where no source leads.
    """
    alive = [n for n in (r() for r in numbers) if n is not None]
    held: list[Any] = list(alive)
    done = {id(getattr(n, "operands", None)) for n in alive}
    while held:
        done |= {id(held), id(alive), id(numbers)}
        found = [x for x in referrers(held) if id(x) not in done]
        done |= {id(x) for x in found}
        for holder in found:
            _tidy(holder)
        held = [x for x in found if is_exactly(x, (tuple, frozenset, slice))]


def _tidy(holder: Any) -> None:
    """Make plain the numbers that an object itself holds."""
    if issubclass(type(holder), _FILLED):
        concretize_tree(holder)
    elif type(holder) is not slice:
        _fill(holder, concretize_tree)


def _fill(holder: Any, fresh: Leaf) -> None:
    """Replace each x that an object, no container, itself holds by `fresh(x)`."""
    kind = type(holder)
    if kind is CellType:
        with contextlib.suppress(ValueError):  # an empty cell
            _exchange(holder, "cell_contents", fresh)
    elif kind is FunctionType:
        _exchange(holder, "__defaults__", fresh)
        for x in (holder.__kwdefaults__, *(holder.__closure__ or ())):
            fresh(x)
    elif kind is functools.partial:
        refill(holder, args=fresh(holder.args))
        for x in (holder.func, holder.keywords):
            fresh(x)
    elif issubclass(kind, BaseException):
        _exchange(holder, "args", fresh)
    elif issubclass(kind, _HOLDERS) and kind is not SimpleNamespace:
        for x in gc.get_referents(holder):
            fresh(x)
        return
    if type(instance_dict(holder)) is dict:
        fresh(instance_dict(holder))
    if is_object(holder):
        _tidy_slots(holder, fresh)
    if issubclass(kind, type) and flags_of(holder) & _HEAP:
        for name, now in list(names_in(holder).items()):
            if not is_exactly(now, _OF_CLASSES) and (new := fresh(now)) is not now:
                type.__setattr__(holder, name, new)


def _exchange(holder: Any, name: str, fresh: Leaf) -> None:
    now = getattr(holder, name)
    if (new := fresh(now)) is not now:
        setattr(holder, name, new)


def refill(owner: functools.partial, **new: Any) -> None:
    """Replace `func`, `args` or `keywords` of a partial, attributes that code can only read."""
    held = {name: getattr(owner, name) for name in ("func", "args", "keywords")} | new
    owner.__setstate__((*held.values(), owner.__dict__))  # type: ignore[attr-defined]


def _tidy_slots(holder: Any, fresh: Leaf) -> None:
    for slot in slots_of(holder):
        with contextlib.suppress(AttributeError, TypeError):  # an empty or read-only slot
            now = slot.__get__(holder)
            if (new := fresh(now)) is not now:
                slot.__set__(holder, new)
