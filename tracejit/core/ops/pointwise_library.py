"""Elementwise functions without a kernel expression: atan2, hypot, the inverse hyperbolic functions
and float_power; and the helper that makes their records.

In: tensors and numbers, promoted and broadcast like those of other elementwise functions. Out: a
tensor. Records are of kind "extern": programs call the array library here. Called by users, and by
the files of special functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tracejit.core.ops.autocast import WIDEST_ON_CUDA
from tracejit.core.ops.numpy_names import names_among, renamed
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_arithmetic import pow
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import rsqrt
from tracejit.core.ops.pointwise_record import (
    convert,
    dtype_among,
    elementwise_type,
    in_float32,
    is_tensor,
    must_be_real,
    must_be_tensors,
    promote,
    promote_float,
)
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    complex128,
    dtype,
    float64,
)

Prepare = Callable[[Sequence[Any]], tuple]


def library(name: str, function: str | Callable[..., Any], prepare: Prepare = promote_float,
            operands: Sequence[str] = ("input",), *, methods: Sequence[str] | None = None,
            result: dtype | None = None, node_name: str | None = None, halves: bool = False,
            real: bool = True, tensors: Sequence[str] = (),
            **rules: Callable[..., Any]) -> Op:
    """Make the record of an elementwise function of arrays, and the methods that call it.

    function  name of a NumPy function, or (xp, *arrays) -> array
    prepare   promotes the operands, or refuses them
    methods   names of methods; None: the op's own name
    result    dtype of the result, where it is not the operands'
    halves    True: `function` takes halves as they are; False: they come as float32
    real      True: complex numbers are refused
    tensors   operands that may not be numbers, from the first on
    rules     operand name -> gradient rule
    """
    def front(given: tuple, attributes: dict) -> tuple[tuple, dict]:
        if attributes:
            attributes = renamed(attributes, names_among(operands))
            given = (*given, *(attributes.pop(n) for n in operands[len(given):] if n in attributes))
        if attributes or len(given) != len(operands):
            raise TypeError(f"{name}() takes {len(operands)} argument"
                            f"{'s' * (len(operands) > 1)} ({', '.join(operands)})")
        if tensors:
            must_be_tensors(name, tensors, given)
        if real:
            must_be_real(f"\"{name}_cpu\" not implemented for '{{}}'", given)
        return prepare(given), {}

    op = Op(name, "extern", tuple(operands), infer=elementwise_type(result),
            eager=_as_they_are(function) if halves else in_float32(function, result), rules=rules,
            node_name=node_name, front=front)
    for spelling in (name,) if methods is None else methods:
        method(spelling)(op)
    return op


def _as_they_are(function: str | Callable[..., Any]) -> Callable[..., Any]:
    return lambda xp, *arrays: (
        getattr(xp, function) if isinstance(function, str) else partial(function, xp))(*arrays)


def only(refuse: Callable[[dtype], bool], text: str, prepare: Prepare = promote) -> Prepare:
    """Make `prepare` raise NotImplementedError for dtypes that PyTorch's `text` is not for."""
    def prepared(operands: Sequence[Any]) -> tuple:
        operands = prepare(operands)
        kind = dtype_among(*operands)
        if refuse(kind):
            raise NotImplementedError(
                f"\"{text}\" not implemented for '{SCALAR_NAMES[kind.name]}'")
        return tuple(operands)

    return prepared


def floating(text: str) -> Prepare:
    """Promote operands, which must be floating."""
    return only(lambda kind: kind.category != FLOATING, text)


def undifferentiable(what: str) -> Callable[..., Any]:
    """Make the rule of an operand for which PyTorch has no derivative."""
    def rule(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


BOTH = ("input", "other")

def _over_square(x: Any, input: Any, other: Any) -> Any:
    """Return x / (input ** 2 + other ** 2); 0 where both are 0."""
    square = input * input + other * other
    return x * where(square == 0, 0, 1 / where(square == 0, 1, square))


atan2 = library(
    "atan2", "arctan2", promote_float, BOTH, methods=("atan2", "arctan2"), tensors=BOTH,
    input=lambda grad, input, other: grad * _over_square(other, input, other),
    other=lambda grad, input, other: grad * -_over_square(input, input, other))
atan2.casts = WIDEST_ON_CUDA

hypot = library(
    "hypot", "hypot", floating("hypot_cpu"), BOTH, tensors=BOTH,
    input=lambda grad, input, out: grad * (input / out),
    other=lambda grad, other, out: grad * (other / out))

asinh = library(
    "asinh", "arcsinh", methods=("asinh", "arcsinh"), real=False,
    input=lambda grad, input: grad * rsqrt(input * input + 1))

acosh = library(
    "acosh", "arccosh", methods=("acosh", "arccosh"), real=False,
    input=lambda grad, input: grad * rsqrt(input * input - 1))

atanh = library(
    "atanh", "arctanh", methods=("atanh", "arctanh"), real=False,
    input=lambda grad, input: grad / (1 - input * input))


@method()
def float_power(input: Any, exponent: Any) -> Any:
    """Return input ** exponent, which broadcast, computed in float64 (complex numbers: in
    complex128).

    >>> import tracejit
    >>> tracejit.float_power(tracejit.tensor([2, 3]), -1).dtype
    tracejit.float64
    """
    return pow(_wide(input), _wide(exponent))


def _wide(x: Any) -> Any:
    if is_tensor(x):
        return convert(x, complex128 if x.dtype.category == COMPLEX else float64)
    return x if isinstance(x, complex) else float(x)
