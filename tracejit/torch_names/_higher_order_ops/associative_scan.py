"""Running results of an associative function along a dimension, in a logarithm of steps.

In: a function of two trees of tensors, a tree. Out: the tree of running results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tracejit
from tracejit.utils._pytree import tree_flatten, tree_unflatten


def associative_scan(combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:
    """Compute combine_fn(...combine_fn(combine_fn(x0, x1), x2)...) at each place along `dim`.

    combine_fn    of two trees like `xs`, without `dim`
    reverse       from the last to the first
    combine_mode  "pointwise" or "generic"; both take every function here

    >>> import tracejit
    >>> associative_scan(lambda a, b: a + b, tracejit.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"combine_mode must be either 'pointwise' or 'generic', but got {combine_mode}")
    given, spec = tree_flatten(xs)
    if not given:
        raise ValueError("Expected at least 1 xs leaf")
    if reverse:
        given = [x.flip(dim) for x in given]
    # All pairs of a step are combined by one call.
    over_places = tracejit.vmap(
        lambda a, b: tuple(tree_flatten(combine_fn(*(tree_unflatten(t, spec) for t in (a, b))))[0]))
    found = _scan(over_places, [x.movedim(dim, 0) for x in given])
    found = [x.movedim(0, dim) for x in found]
    return tree_unflatten([x.flip(dim) for x in found] if reverse else found, spec)


def _scan(combine: Callable[..., Any], xs: list) -> list:
    """Combine pairs and scan them; elements at even places follow from their neighbours."""
    size = xs[0].size(0)
    if size < 2:
        return xs
    pairs = combine(tuple(x[:-1:2] for x in xs), tuple(x[1::2] for x in xs))
    odd = _scan(combine, list(pairs))
    even = [x[:1] for x in xs]
    # Even place 2k is the scan up to 2k - 1, combined with the element itself.
    if size > 2:
        later = combine(tuple(x[: (size - 1) // 2] for x in odd), tuple(x[2::2] for x in xs))
        even = [tracejit.cat([first, rest]) for first, rest in zip(even, later)]
    found = []
    for a, b in zip(even, odd):
        both = tracejit.stack([a[: b.size(0)], b], 1).flatten(0, 1)
        found.append(both if size % 2 == 0 else tracejit.cat([both, a[-1:]]))
    return found
