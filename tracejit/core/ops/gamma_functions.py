"""Gamma function: its logarithm, derivatives and incomplete integrals.

These are lgamma, digamma, polygamma, mvlgamma, igamma, igammac and zeta.

In: tensors, integers as floating numbers. Out: a tensor of their broadcast shape. Programs call
SciPy here. Called by users, under PyTorch's names here and those of `tracejit.special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_library import BOTH, floating, library, undifferentiable
from tracejit.core.ops.pointwise_math import exp, log, special
from tracejit.core.ops.pointwise_record import (
    convert,
    elementwise_type,
    in_float32,
    must_be_real,
    promote_float,
)
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.types import FLOATING, bool_, get_default_dtype


def _lgamma_array(xp: Any, x: Any) -> Any:
    return special("gammaln")(xp, xp.where(xp.isinf(x), xp.abs(x), x))  # at -inf as at inf


def _polygamma_array(xp: Any, input: Any, n: int) -> Any:
    if n == 0:
        return special("psi")(xp, input)
    factor = (-1.0 if n % 2 == 0 else 1.0) * math.gamma(n + 1.0)
    wide = input.astype(np.float64)
    return (factor * special("zeta")(xp, xp.full_like(wide, n + 1.0), wide)).astype(input.dtype)


digamma: Op = library(
    "digamma", special("psi"), input=lambda grad, input: grad * polygamma(1, input))

lgamma = library("lgamma", _lgamma_array, input=lambda grad, input: grad * digamma(input))

polygamma_record: Op = Op(
    "polygamma", "extern", ("input",),
    infer=lambda input, n: elementwise_type(None)(input),
    eager=in_float32(_polygamma_array, None),
    rules={"input": lambda grad, input, n: grad * polygamma(n + 1, input)},
)  # fmt: skip


def polygamma(n: int, input: Any) -> Any:
    """Return derivative number `n` of the digamma function of each element, in the same shape.

    n  order of the derivative, an int from 0 on

    Integers compute in the default dtype. RuntimeError for a negative `n`.

    >>> import tracejit
    >>> tracejit.polygamma(1, tracejit.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    order = as_size(n)
    if order < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if order == 0:
        return digamma(input)
    kernel = "trigamma" if order == 1 else "polygamma"
    must_be_real(f"\"{kernel}\" not implemented for '{{}}'", (input,))
    return polygamma_record(*promote_float((input,)), n=order)


@method("polygamma")
def polygamma_method(self: Any, n: int) -> Any:
    """Return derivative number `n` of the digamma function of each element, in the same shape.

    >>> import tracejit
    >>> tracejit.tensor([1.0, 0.5]).polygamma(1)
    tensor([1.6449, 4.9348])
    """
    return polygamma(n, self)


polygamma_method.__name__ = "polygamma"


@method()
def mvlgamma(input: Any, p: int) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    >>> import tracejit
    >>> tracejit.mvlgamma(tracejit.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])

    RuntimeError for p < 1 and for a bool tensor.
    """
    dimension = as_size(p)
    if input.dtype is bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if dimension < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype.category < FLOATING:
        input = convert(input, get_default_dtype())
    total = lgamma(input)
    for k in range(1, dimension):
        total = total + lgamma(input - 0.5 * k)
    return total + dimension * (dimension - 1) * 0.25 * math.log(math.pi)


def _density_rule(grad: Any, input: Any, other: Any) -> Any:
    return grad * exp((input - 1) * log(other) - other - lgamma(input))


def _incomplete(name: str, at_zero: float) -> Callable[..., Any]:
    """Make SciPy's function, mended where one operand is NaN and the other decides alone."""
    function = special(name)

    def array(xp: Any, input: Any, other: Any) -> Any:
        found = function(xp, input, other)
        lowest = xp.isnan(input) & (other == 0) | xp.isinf(input) & (input > 0) & xp.isnan(other)
        highest = xp.isnan(input) & xp.isinf(other) & (other > 0)
        found = xp.where(lowest, found.dtype.type(at_zero), found)
        return xp.where(highest, found.dtype.type(1 - at_zero), found)

    return array


igamma = library(
    "igamma", _incomplete("gammainc", 0), floating("igamma_cpu"), BOTH, tensors=BOTH,
    input=undifferentiable("igamma: input"), other=_density_rule)

igammac = library(
    "igammac", _incomplete("gammaincc", 1), floating("igammac_cpu"), BOTH, tensors=BOTH,
    input=undifferentiable("igammac: input"),
    other=lambda grad, input, other: -_density_rule(grad, input, other))

zeta: Op = library(
    "zeta", special("zeta"), promote_float, BOTH, methods=(),
    input=undifferentiable("zeta"),
    other=lambda grad, input, other: grad * -input * zeta(input + 1, other))
