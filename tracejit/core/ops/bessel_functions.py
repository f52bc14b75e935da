"""Bessel functions, and the Airy function: i0, i0e, i1, i1e with gradients, the others without.

In: a tensor, integers as floating numbers. Out: a tensor of its shape. Programs call SciPy here.
Called by users, under the names of `tracejit.special`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.pointwise_library import library, only
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import sign, special
from tracejit.core.ops.pointwise_record import promote_float
from tracejit.core.ops.record import Op


def _over(grad: Any, input: Any, quotient: Callable[[Any], Any], at_zero: float) -> Any:
    """Multiply grad by a quotient by `input`, which has the limit `at_zero` at 0."""
    zero = input == 0
    return grad * where(zero, at_zero, quotient(where(zero, 1, input)))


i0: Op = library("i0", special("i0"), input=lambda grad, input: grad * i1(input))

i0e: Op = library(
    "i0e", special("i0e"), methods=(), node_name="SpecialI0EBackward0",
    input=lambda grad, input, out: grad * (i1e(input) - sign(input) * out))

i1: Op = library(
    "i1", special("i1"), methods=(), node_name="SpecialI1Backward0",
    input=lambda grad, input: _over(grad, input, lambda x: i0(x) - i1(x) / x, 0.5))

i1e: Op = library(
    "i1e", special("i1e"), methods=(), node_name="SpecialI1EBackward0",
    input=lambda grad, input: _over(
        grad, input, lambda x: i0e(x) - i1e(x) * (sign(x) + 1 / x), 0.5))


def _of_whole_floats(name: str, function: str | Callable[..., Any]) -> Op:
    """Make a record for float32 and float64 alone, without a gradient, as in PyTorch."""
    array = special(function) if isinstance(function, str) else function
    refused = only(lambda kind: kind.itemsize < 4, f"{name}_cpu", promote_float)
    return library(name, array, refused, methods=())


bessel_j0 = _of_whole_floats("bessel_j0", "j0")
bessel_j1 = _of_whole_floats("bessel_j1", "j1")
bessel_y0 = _of_whole_floats("bessel_y0", "y0")
bessel_y1 = _of_whole_floats("bessel_y1", "y1")
modified_bessel_i0 = _of_whole_floats("modified_bessel_i0", "i0")
modified_bessel_i1 = _of_whole_floats("modified_bessel_i1", "i1")
modified_bessel_k0 = _of_whole_floats("modified_bessel_k0", "k0")
modified_bessel_k1 = _of_whole_floats("modified_bessel_k1", "k1")
scaled_modified_bessel_k0 = _of_whole_floats("scaled_modified_bessel_k0", "k0e")
scaled_modified_bessel_k1 = _of_whole_floats("scaled_modified_bessel_k1", "k1e")
spherical_bessel_j0 = _of_whole_floats(
    "spherical_bessel_j0",
    lambda xp, x: xp.where(xp.isinf(x), x.dtype.type(0), xp.sinc(x / x.dtype.type(xp.pi))))
def _airy(xp: Any, x: Any) -> Any:
    from scipy.special import airy

    host = x if xp is np else xp.asnumpy(x)  # CuPy has no airy
    return xp.asarray(airy(host)[0].astype(x.dtype, copy=False))


airy_ai = _of_whole_floats("airy_ai", _airy)
