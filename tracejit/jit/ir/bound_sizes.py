"""Sizes that follow from others: symbols get their values from those that inputs show.

In: what symbols are known to equal, the values of some. Out: the values of all that follow, in
place. Called by `ShapeEnv.complete`, once for each shape a program is bound to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Equality = tuple[str, Any]


def complete(
    equal: Iterable[Equality],
    values: dict[str, int],
    symbols_of: Callable[[Any], set[str]],
    evaluate: Callable[[Any, dict[str, int]], int],
) -> None:
    """Bind each symbol that an equality gives; every equality is looked at again only when one of
    its symbols became known."""
    equalities = [(symbol, size, symbols_of(size)) for symbol, size in equal]
    asking: dict[str, list[int]] = {}
    for k, (symbol, _, names) in enumerate(equalities):
        for name in {symbol, *names} - values.keys():
            asking.setdefault(name, []).append(k)
    waiting = list(reversed(range(len(equalities))))
    while waiting:
        symbol, size, names = equalities[waiting.pop()]
        unbound = names - values.keys()
        if symbol not in values and not unbound:
            values[symbol] = evaluate(size, values)
            waiting += asking.get(symbol, ())
        elif symbol in values and len(unbound) == 1:
            (other,) = unbound
            if size.terms == {(other,): 1}:
                values[other] = values[symbol]
                waiting += asking.get(other, ())
