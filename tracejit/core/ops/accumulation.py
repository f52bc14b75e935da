"""Running results of an array library's binary function along an axis.

In: the name of a ufunc, an array, an axis. Out: `accumulated`. CuPy's ufuncs accumulate sums and
products alone. Called by the array functions of `scan` and `order_statistics`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def accumulated(xp: Any, name: str, x: Any, axis: int) -> Any:
    """Combine the elements up to each along an axis, as `getattr(np, name).accumulate` does.

    Other libraries than NumPy take log2(n) steps. After the k-th, each element has met the 2**k
    elements that end with it (Hillis and Steele, "Data Parallel Algorithms", 1986).

    >>> accumulated(np, "maximum", np.array([3, 1, 4, 1, 5]), 0).tolist()
    [3, 3, 4, 4, 5]
    """
    function = getattr(xp, name)
    if xp is np:
        return function.accumulate(x, axis=axis)
    found, step = xp.moveaxis(x, axis, 0), 1
    while step < len(found):
        found = xp.concatenate([found[:step], function(found[step:], found[:-step])])
        step *= 2
    return xp.moveaxis(found, 0, axis)
