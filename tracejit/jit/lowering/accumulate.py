"""Sums of floats in kernels: additions whose order the compiler may choose, so that it can use
vectors, and the exact remainders of additions.

In and out: scalars. Called by generated texts. The compiled loop fixes the order: it is the same
for every call and every number of threads. The compiler may reorder these operations only, not the
arithmetic around them.
"""

# mypy: disable-error-code="no-untyped-def,attr-defined"

from __future__ import annotations

import numpy as np

ZERO = np.float64(0.0)


def add_float32(total, x):
    """Return total + x."""
    return total + x


def add_float64(total, x):
    """Return total + x."""
    return total + x


def lost_float64(a, b):
    """Return exactly what a + b lost when it was rounded."""
    total = a + b
    part = total - a
    return (a - (total - part)) + (b - part)


def settled_float64(high, low):
    """Return high + low, or high alone if `low` is not finite, as an infinite or NaN `high` makes
    it."""
    return high + low if low - low == ZERO else high


def largest_float32(a, b):
    """Return the larger one; NaN where either is NaN."""
    return b if b > a or b != b else a


def largest_float64(a, b):
    """Return the larger one; NaN where either is NaN."""
    return b if b > a or b != b else a


def smallest_float32(a, b):
    """Return the smaller one; NaN where either is NaN."""
    return b if b < a or b != b else a


def smallest_float64(a, b):
    """Return the smaller one; NaN where either is NaN."""
    return b if b < a or b != b else a


# What the kernel compiler makes of them, instead of translating the text.
for _function in (add_float32, add_float64):
    _function.reassociated = True
for _function in (largest_float32, largest_float64):
    _function.llvm_intrinsic = "llvm.maximum"
for _function in (smallest_float32, smallest_float64):
    _function.llvm_intrinsic = "llvm.minimum"

# combine expressions of reductions -> function
ACCUMULATORS = {
    "{a} + {b}": "add",
    "({b} if ({b} > {a}) or ({b} != {b}) else {a})": "largest",
    "({b} if ({b} < {a}) or ({b} != {b}) else {a})": "smallest",
}
