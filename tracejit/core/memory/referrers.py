"""Finds the holders of an object: lists, dicts, slots and cells that refer to it.

In: objects. Out: what refers to one of them, each once. Called where a tensor or a number must be
replaced wherever somebody put it.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from tracejit.core.memory.reliances import holds, relies


def referrers(objects: Sequence[Any]) -> list[Any]:
    """Return what the garbage collector knows to refer to one of the objects.

    One pass over the heap answers for all objects. CPython 3.13 gives the tuple of the call's own
    arguments as a referrer. That tuple ends in a mark that no other has, and is left out. Callers
    must expect their own lists and dicts. What the program froze by `gc.freeze()` is unfrozen, for
    the collector keeps silent about frozen holders.

    >>> x = object()
    >>> held = [x]
    >>> any(one is held for one in referrers([x]))
    True
    """
    if gc.get_freeze_count():
        gc.unfreeze()
    if not holds("referrers"):
        return _searched(objects)
    return [one for one in _asked(objects) if one is not objects]


def _asked(objects: Sequence[Any]) -> list[Any]:
    mark, found = object(), []
    for one in gc.get_referrers(*objects, mark):  # no comprehension, whose cell would hold `mark`
        if not (type(one) is tuple and one and one[-1] is mark):
            found.append(one)
    return found


def _searched(objects: Sequence[Any]) -> list[Any]:
    """Return the same by a search through all containers that there are."""
    found, wanted = [], set(map(id, objects))
    for one in gc.get_objects():  # no generator here, whose cell would hold an object
        if one is objects:
            continue
        for y in gc.get_referents(one):
            if id(y) in wanted:
                found.append(one)
                break
    return found


class _Slotted:
    __slots__ = ("one",)


class _Plain:
    pass


@relies("referrers", "`gc.get_referrers` gives the holders of its arguments and nothing that the "
        "call made but a tuple of them", "all containers of the process are searched")
def _finds_holders() -> bool:
    x = _Plain()
    slotted, plain = _Slotted(), _Plain()
    slotted.one = plain.one = x  # type: ignore[attr-defined]
    inside = {id(plain), id(vars(plain))}  # which of the two depends on the version
    keyed, cell = {"x": x}, (lambda: x).__closure__[0]  # type: ignore[index]
    holders = [[x], (x,), {x}, keyed, slotted, cell]
    given = [x]
    found = {id(one) for one in _asked(given)} - {id(given)}
    wanted = set(map(id, holders))
    return wanted < found and len(found - wanted) == 1 and bool(found & inside)
