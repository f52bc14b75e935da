"""Runtime scalars, pending numbers and sizes, made plain wherever a call left them.

In: a value, or the numbers of a recording that is over. Out: the same objects with ints and floats
in them: what can be written is changed in place, what cannot is made anew. Called when a recorded
call ends, by `number_places` and the jit.
"""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable
from types import CellType, MemberDescriptorType
from typing import Any

from tracejit.capture.host_reads import Pending
from tracejit.capture.rolled import FollowedList
from tracejit.capture.scalars import RuntimeNumber
from tracejit.ir.sizes import Size

_FIXED = (tuple, frozenset)
_FILLED = (list, dict, set, deque)


def plain(value: Any, seen: set[int] | None = None) -> Any:
    """`value` with plain numbers: containers in place, tuples and the like anew.

    seen   the containers that were looked at already

    >>> plain({1.5: (2, [3])})
    {1.5: (2, [3])}
    """
    kind = type(value)
    if kind is Size or isinstance(value, (RuntimeNumber, Pending)):
        return value.hint
    if kind is slice:
        before = value.start, value.stop, value.step
        parts = [plain(v) for v in before]
        return value if all(a is b for a, b in zip(parts, before)) else slice(*parts)
    if not issubclass(kind, (*_FILLED, *_FIXED)):
        return value
    seen = set() if seen is None else seen
    if id(value) in seen and kind is not FollowedList and not issubclass(kind, _FIXED):
        return value
    seen.add(id(value))
    if kind is FollowedList:
        return [plain(v, seen) for v in value]
    if issubclass(kind, dict):
        _fill_dict(value, seen)
    elif issubclass(kind, set):
        for x in [x for x in value if plain(x, seen) is not x]:
            value.discard(x)
            value.add(plain(x, seen))
    elif issubclass(kind, _FIXED):
        return _made_anew(value, seen)
    else:
        for k, v in enumerate(value):
            if (fresh := plain(v, seen)) is not v:
                value[k] = fresh
    return value


def _made_anew(value: Any, seen: set[int]) -> Any:
    before = list(value)
    parts = [plain(v, seen) for v in before]
    if all(a is b for a, b in zip(parts, before)):
        return value
    kind = type(value)
    return kind._make(parts) if hasattr(kind, "_make") else kind(parts)


def _fill_dict(value: dict, seen: set[int]) -> None:
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    items = [(k, v, plain(k, seen), plain(v, seen)) for k, v in value.items()]
    if any(key is not k for k, _, key, _ in items):
        kind.clear(value)  # the order of the keys stays
        for _, _, key, fresh in items:
            kind.__setitem__(value, key, fresh)
        return
    for k, v, _, fresh in items:
        if fresh is not v:
            kind.__setitem__(value, k, fresh)


def sweep(numbers: Iterable[weakref.ref]) -> None:
    """Runtime scalars that a call without an entry left in objects nobody listed, made plain."""
    alive = [n for n in (r() for r in numbers) if n is not None]
    held: list[Any] = list(alive)
    done = {id(getattr(n, "operands", None)) for n in alive}
    while held:
        done |= {id(held), id(alive), id(numbers)}
        found = [x for x in gc.get_referrers(*held) if id(x) not in done]
        done |= {id(x) for x in found}
        for holder in found:
            _tidy(holder)
        held = [x for x in found if type(x) in (tuple, frozenset, slice)]


def _tidy(holder: Any) -> None:
    """Make plain what an object holds itself."""
    kind = type(holder)
    if issubclass(kind, _FILLED):
        plain(holder)
    elif kind is CellType:
        holder.cell_contents = plain(holder.cell_contents)
    elif type(getattr(holder, "__dict__", None)) is dict:
        plain(holder.__dict__)
    elif kind is not slice and not kind.__module__.startswith("tracejit."):
        slots = (d for c in kind.__mro__ for d in vars(c).values())
        for slot in slots:
            if type(slot) is MemberDescriptorType and hasattr(holder, slot.__name__):
                now = slot.__get__(holder)
                if (fresh := plain(now)) is not now:
                    slot.__set__(holder, fresh)
