"""Products with logarithms, logarithms of sums and of odds, and sinc: xlogy, xlog1py, entr, logit,
logaddexp, logaddexp2.

In: tensors and numbers. Out: a floating tensor of their broadcast shape. At the ends of their
domains these functions have the limits there. Called by users.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_library import BOTH, only
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import cos, exp, exp2, log, log1p, sin
from tracejit.core.ops.pointwise_record import must_be_real, pointwise, promote_float, real_only
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import FLOATING

_ZERO = "{dtype}(0)"


def _product_array(xp: Any, x: Any, logarithm: Any, other: Any) -> Any:
    product = xp.where(xp.asarray(x == 0), logarithm.dtype.type(0), x * logarithm)
    return xp.where(xp.asarray(other != other), other, product).astype(logarithm.dtype, copy=False)


def _log_factor(logarithm: Any, input: Any, none: Any) -> Any:
    """Return the derivative by the first factor, 0 where its 0 made the product 0."""
    return where((input == 0) & none, 0, logarithm)


xlogy = pointwise(
    "xlogy", lambda xp, x, y: _product_array(xp, x, xp.log(xp.asarray(y, _kind(x, y))), y),
    f"({{other}} if {{other}} != {{other}} else "
    f"({_ZERO} if {{input}} == {_ZERO} else {{input}} * log({{other}})))", "float", operands=BOTH,
    check=real_only("\"xlogy_cpu\" not implemented for '{}'"),
    input=lambda grad, input, other: grad * _log_factor(
        log(_floating_as(other, grad)), input, other <= 0),
    other=lambda grad, input, other: grad * input / other)

xlog1py = pointwise(
    "xlog1py", lambda xp, x, y: _product_array(xp, x, xp.log1p(xp.asarray(y, _kind(x, y))), y),
    f"({{other}} if {{other}} != {{other}} else "
    f"({_ZERO} if {{input}} == {_ZERO} else {{input}} * log1p({{other}})))", "float",
    operands=BOTH, methods=(), node_name="SpecialXlog1PyBackward0",
    check=real_only("\"xlog1py_cpu\" not implemented for '{}'"),
    input=lambda grad, input, other: grad * _log_factor(
        log1p(_floating_as(other, grad)), input, other <= -1),
    other=lambda grad, input, other: grad * input / (other + 1))


def _kind(*operands: Any) -> Any:
    return next(x.dtype for x in operands if hasattr(x, "dtype"))


def _floating_as(x: Any, like: Any) -> Any:
    """Return a number as a tensor of a gradient's dtype."""
    return x if hasattr(x, "dtype") else like.new_full((), x)


def _entr_array(xp: Any, x: Any) -> Any:
    kind = x.dtype.type
    inside = -x * xp.log(xp.where(x > 0, x, kind(1)))
    return xp.where(x < 0, kind(-xp.inf), xp.where(x == 0, kind(0), inside))


entr = pointwise(
    "entr", _entr_array,
    f"(-{{input}} * log({{input}}) if {{input}} > {_ZERO} else "
    f"({{input}} if {{input}} != {{input}} else "
    f"({_ZERO} if {{input}} == {_ZERO} else log({_ZERO}))))",
    "float", methods=(), node_name="SpecialEntrBackward0",
    check=real_only("\"entr_cpu\" not implemented for '{}'"),
    input=lambda grad, input: grad * (-log(input) - 1))

_logit = pointwise(
    "logit", lambda xp, x: xp.log(x / (1 - x)), "log({input} / ({dtype}(1) - {input}))", "float",
    methods=(),
    input=lambda grad, input: where(
        (input == 0) | (input == 1), grad * math.inf,
        where((input > 0) & (input < 1), grad / (input * (1 - input)), math.nan)))


@method()
def logit(input: Any, eps: float | None = None) -> Any:
    """Return log(x / (1 - x)) of each element, nan outside of 0 .. 1, in the same shape.

    eps  bounds elements to eps .. 1 - eps first

    Integers compute in the default dtype.

    >>> import tracejit
    >>> tracejit.logit(tracejit.tensor([0.5, 0.75, 1.0]), eps=0.25)
    tensor([0.0000, 1.0986, 1.0986])
    """
    must_be_real("\"logit_cpu\" not implemented for '{}'", (input,))
    if eps is None:
        return _logit(input)
    (x,) = promote_float((input,))
    low, high = float(eps), 1 - float(eps)
    return _logit(where(x < low, low, where(x > high, high, x)))


# -- logarithms of sums ----------------------------------------------------------------------------
def log_of_sum(xp: Any, x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)) of floating or complex arrays; its parts do not overflow."""
    if x.dtype.kind != "c":
        return xp.logaddexp(x, y)
    large, small = xp.where(x.real < y.real, y, x), xp.where(x.real < y.real, x, y)
    # Where both are the same infinity, their difference would be NaN.
    ends = xp.isinf(small.real) & (small.real == large.real)
    found = large + xp.log1p(xp.exp(xp.where(ends, 0, small - large)))
    end = xp.where(small.real < 0, -math.inf, xp.log(xp.exp(small) + xp.exp(large)))
    unknown = xp.isnan(x) | xp.isnan(y)
    return xp.where(unknown, complex(math.nan, math.nan), xp.where(ends, end, found))


def _sum_of_powers(name: str, array: Any, rest: str, power: Op, real: bool) -> Op:
    """Make the record of log(base ** input + base ** other); it computes none of the powers."""
    infinite = "({input} == {other}) & (({input} - {input}) != ({input} - {input}))"
    larger = "({input} if ({input} > {other}) | ({input} != {input}) else {other})"
    return pointwise(
        name, array, f"({{input}} if {infinite} else {larger} + {rest})",
        only(lambda kind: kind.category < FLOATING or real and kind.is_complex, f"{name}_cpu"),
        operands=BOTH, tensors=BOTH,
        input=lambda grad, input, other: grad / (1 + power(other - input)),
        other=lambda grad, input, other: grad / (1 + power(input - other)))


_APART = "abs({input} - {other})"
logaddexp = _sum_of_powers(
    "logaddexp", log_of_sum, f"log1p(exp(-{_APART}))", exp, real=False)
logaddexp2 = _sum_of_powers(
    "logaddexp2", "logaddexp2", f"log1p(exp2(-{_APART})) * {{dtype}}({1 / math.log(2)!r})", exp2,
    real=True)


# -- sinc ------------------------------------------------------------------------------------------
def _sinc_rule(grad: Any, input: Any) -> Any:
    zero = input == 0
    x = where(zero, 1, input) * math.pi
    return grad * where(zero, 0, (x * cos(x) - sin(x)) / x * (math.pi / x))


sinc = pointwise(
    "sinc", "sinc",
    f"({{dtype}}(1) if {{input}} == {_ZERO} else "
    f"sin({{dtype}}({math.pi!r}) * {{input}}) / ({{dtype}}({math.pi!r}) * {{input}}))",
    "float", input=_sinc_rule)
