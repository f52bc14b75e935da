"""Who holds an object: lists, dicts, slots and cells that refer to it.

In: objects. Out: what refers to one of them, each once. Called where a tensor or a number must be
replaced wherever somebody put it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

from tracejit.memory.reliances import holds, relies


def referrers(objects: Iterable[Any]) -> list[Any]:
    """What the garbage collector knows to refer to one of the objects.

    Each is asked for alone: a call with several makes tuples of its arguments, and CPython 3.13
    gives one of them as a referrer. Callers must expect their own lists and dicts.

    >>> x = object()
    >>> held = [x]
    >>> any(one is held for one in referrers([x]))
    True
    """
    found: dict[int, Any] = {}
    ask = gc.get_referrers if holds("referrers") else _searched
    for x in objects:
        for one in ask(x):
            if one is not objects:
                found[id(one)] = one
    return list(found.values())


def _searched(x: Any) -> list[Any]:
    """The same by a search through all containers that there are."""
    found = []
    for one in gc.get_objects():  # no generator here, whose cell would hold `x`
        for y in gc.get_referents(one):
            if y is x:
                found.append(one)
                break
    return found


class _Slotted:
    __slots__ = ("one",)


class _Plain:
    pass


@relies("referrers", "`gc.get_referrers` of one object gives its holders and nothing that the call "
        "made", "all containers of the process are searched")
def _finds_holders() -> bool:
    x = _Plain()
    slotted, plain = _Slotted(), _Plain()
    slotted.one = plain.one = x  # type: ignore[attr-defined]
    inside = {id(plain), id(vars(plain))}  # which of the two depends on the version
    keyed, cell = {"x": x}, (lambda: x).__closure__[0]  # type: ignore[index]
    holders = [[x], (x,), {x}, keyed, slotted, cell]
    found = {id(one) for one in gc.get_referrers(x)}
    wanted = set(map(id, holders))
    return wanted < found and len(found - wanted) == 1 and bool(found & inside)
