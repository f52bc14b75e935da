"""Rows of the elementwise ops."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import (
    ANY,
    BOOL,
    FLOATS,
    HALVES,
    INTEGERS,
    NUMERIC,
    OpInfo,
    Sample,
    array,
)  # fmt: skip
from tracejit.core.ops import types
from tracejit.core.ops.types import dtype

Samples = Callable[[np.random.Generator, dtype], Iterable[Sample]]
TORCH_BINARY = ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((), (2, 3)), ((0, 3), (1, 3)), ((5,), (5,))


def unary(low: float = -2, high: float = 2) -> Samples:
    """One operand: a vector, a matrix, a 0-dim and an empty tensor."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape in ((7,), (3, 5), (), (2, 0)):
            yield Sample((array(rng, d, *shape, low=low, high=high),))

    return samples


def binary(low: float = -2, high: float = 2, numbers: tuple = (2,), other_low: float | None = None,
           other_high: float | None = None, **keywords: Any) -> Samples:
    """Two operands that broadcast, and one with Python numbers."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        second = {"low": low if other_low is None else other_low,
                  "high": high if other_high is None else other_high}
        for a, b in TORCH_BINARY:
            yield Sample((array(rng, d, *a, low=low, high=high), array(rng, d, *b, **second)),
                         keywords)
        for number in numbers:
            yield Sample((array(rng, d, 2, 3, low=low, high=high), number), keywords)

    return samples


def mixed(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    """Operands of different dtypes, 0-dim ones among them."""
    x = array(rng, d, 2, 3)
    for other in (types.int64, types.float64, types.float32, types.bool_, types.int8):
        yield Sample((x, array(rng, other, 3)))
        yield Sample((x, array(rng, other)))
        yield Sample((array(rng, other), x))


def nonzero(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    """Quotients: divisors of both signs, none zero."""
    for a, b in TORCH_BINARY:
        divisor = array(rng, d, *b)
        divisor = np.where(divisor == 0, divisor.dtype.type(1), divisor)
        yield Sample((array(rng, d, *a, low=-9, high=9), divisor))
    for number in (3, -2) if d.is_signed else (3,):
        yield Sample((array(rng, d, 2, 5, low=-9, high=9), number))


def kinks(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    """Two operands far enough apart for finite differences."""
    for a, b in ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((6,), (6,)):
        first, second = array(rng, d, *a), array(rng, d, *b)
        if d.is_floating_point:
            first = (np.round(first * 4) / 4).astype(d.numpy)
            second = (np.round(second * 4) / 4 + 0.125).astype(d.numpy)
        yield Sample((first, second))


def _accumulated(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    operands = array(rng, d, 3, 4), array(rng, d, 4), array(rng, d, 3, 1, low=0.5)
    yield Sample(operands, {"value": 0.5})
    yield Sample(operands)


def row(name: str, samples: Samples | None = None, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples or unary(), **keywords)


ALL_NUMBERS = (*FLOATS, *HALVES, *INTEGERS)
BITS = (*INTEGERS, *BOOL)

ARITHMETIC = [
    row("add", binary(), dtypes=ANY),
    row("add.alpha", binary(alpha=2), dtypes=ALL_NUMBERS,
        function=lambda x, y, alpha: x.add(y, alpha=alpha)),
    row("add.mixed", mixed, function=lambda a, b: a + b, dtypes=ANY, differentiable=False),
    row("sub", binary(), dtypes=ALL_NUMBERS),
    row("rsub", binary(), function=lambda a, b: 2 - a * b, dtypes=ALL_NUMBERS),
    row("mul", binary(), dtypes=ANY),
    row("mul.mixed", mixed, function=lambda a, b: a * b, dtypes=ANY, differentiable=False),
    row("div", binary(other_low=0.5), dtypes=ANY),
    row("div.floor", nonzero, dtypes=NUMERIC, differentiable=False, specials=False,
        function=lambda a, b: a.div(b, rounding_mode="floor")),
    row("div.trunc", nonzero, dtypes=NUMERIC, differentiable=False, specials=False,
        function=lambda a, b: a.div(b, rounding_mode="trunc")),
    row("floor_divide", nonzero, dtypes=NUMERIC, differentiable=False, specials=False),
    row("remainder", nonzero, dtypes=NUMERIC, specials=False, differentiable=False),
    row("fmod", nonzero, dtypes=NUMERIC, specials=False, differentiable=False),
    row("neg", dtypes=NUMERIC),
    row("reciprocal", unary(0.5), dtypes=NUMERIC),
    row("square", dtypes=ANY),
    row("pow", binary(0.5, 2, numbers=(2, 3, 0.5, -1, -2, 1.7)), dtypes=FLOATS, ulp=4),
    row("pow.int", binary(0, 2, numbers=(2, 5), other_low=0), dtypes=INTEGERS),
    row("pow.number", unary(), function=lambda x: 2.0 ** x, torch=lambda x: 2.0 ** x, ulp=4),
    row("lerp", lambda rng, d: [Sample((array(rng, d, 3, 4), array(rng, d, 4), w))
                                for w in (0.3, 0.8, array(rng, d, 3, 1))], cancel=2),
    row("addcmul", _accumulated, cancel=2),
    row("addcdiv", _accumulated, cancel=2),
    row("atan2", binary(0.5, 2, numbers=(), other_low=-2, other_high=-0.5), dtypes=ANY),
    row("hypot", binary(0.5, 2, numbers=()), dtypes=(*FLOATS, *HALVES)),
    row("float_power", binary(0.5, 2, numbers=(2, 3, 0.5)), dtypes=(*FLOATS, types.int64), ulp=4),
]  # fmt: skip

MATH = [
    row("exp"), row("exp2"), row("expm1"), row("tanh"), row("sigmoid", ulp=4), row("erf", ulp=4),
    row("erfc", ulp=8), row("sin"), row("cos"), row("tan", unary(-1.4, 1.4), ulp=4),
    row("log", unary(0.2, 3)), row("log1p", unary(-0.7, 3)), row("log2", unary(0.2, 3)),
    row("log10", unary(0.2, 3)), row("sqrt", unary(0.2, 3)), row("rsqrt", unary(0.2, 3), ulp=4),
    row("asin", unary(-0.9, 0.9), ulp=4), row("acos", unary(-0.9, 0.9), ulp=4),
    row("atan", ulp=4), row("sinh", ulp=4), row("cosh", ulp=4),
    row("exp.int", function=lambda x: x.exp(), dtypes=(types.int64, *BOOL, *HALVES), ulp=2),
    row("abs", dtypes=NUMERIC), row("sign", dtypes=ANY, specials=False),
    row("sgn", dtypes=ANY, specials=False, differentiable=False),
    row("floor", unary(-4, 4), dtypes=NUMERIC, differentiable=False),
    row("ceil", unary(-4, 4), dtypes=NUMERIC, differentiable=False),
    row("trunc", unary(-4, 4), dtypes=NUMERIC, differentiable=False),
    row("round", unary(-4, 4), dtypes=NUMERIC, differentiable=False),
    row("frac", unary(-4, 4)),
]  # fmt: skip

COMPARISONS = [
    row(name, binary(numbers=(1, 0.5)), dtypes=ANY, differentiable=False)
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
]
LOGIC = [
    *(row(name, binary(numbers=()), dtypes=ANY, differentiable=False)
      for name in ("logical_and", "logical_or", "logical_xor")),
    row("logical_not", dtypes=ANY, differentiable=False),
    *(row(name, binary(numbers=()), dtypes=BITS, differentiable=False)
      for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    row("bitwise_not", dtypes=BITS, differentiable=False),
    *(row(name, lambda rng, d: [Sample((array(rng, d, 4, 3), indices_like(rng, d, 3))),
                                Sample((array(rng, d, 4), 2))],
          dtypes=INTEGERS, differentiable=False)
      for name in ("bitwise_left_shift", "bitwise_right_shift")),
    *(row(name, dtypes=ANY, differentiable=False) for name in ("isnan", "isinf", "isfinite")),
]  # fmt: skip


def indices_like(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    """Counts of bits, some out of range."""
    return rng.integers(0, 8 * d.itemsize + 4, shape).astype(d.numpy)


def _where_samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    condition = rng.random((3, 4)) < 0.5
    yield Sample((condition, array(rng, d, 3, 4), array(rng, d, 4)))
    yield Sample((condition, array(rng, d, 3, 1), 0))
    yield Sample((condition, 1, array(rng, d)))
    yield Sample((condition[:0], array(rng, d, 1, 4), array(rng, d, 4)))


def _clamp_samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    x = array(rng, d, 4, 5, low=-3, high=3)
    yield Sample((x, 0, 1))
    yield Sample((x, None, 1))
    yield Sample((x, 0))
    yield Sample((x, 2, 1))
    yield Sample((x, array(rng, d, 5), array(rng, d, 4, 1, low=1, high=2)))


CHOICES = [
    row("where", _where_samples, dtypes=ANY),
    row("maximum", kinks, dtypes=ANY), row("minimum", kinks, dtypes=ANY),
    row("clamp", _clamp_samples, dtypes=ALL_NUMBERS),
    row("clamp_min", kinks, dtypes=ALL_NUMBERS), row("clamp_max", kinks, dtypes=ALL_NUMBERS),
    row("nan_to_num", differentiable=False),
    row("isclose", kinks, dtypes=FLOATS, differentiable=False),
]  # fmt: skip

CASTS = [
    row(f"to.{name}", function=lambda x, name=name: getattr(x, name)(), dtypes=ANY,
        differentiable=name == "double", specials=name in ("float", "double"),
        second_order=False)
    for name in ("float", "double", "half", "bfloat16", "int", "long", "short", "byte", "bool")
]
CASTS.append(row("type_as", mixed, function=lambda a, b: a.type_as(b), specials=False,
                 differentiable=False))

ROWS = ARITHMETIC + MATH + COMPARISONS + LOGIC + CHOICES + CASTS
