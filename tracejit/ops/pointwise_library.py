"""Elementwise functions of two variables that kernels have no expression for: atan2, hypot,
float_power.

In: tensors and numbers, promoted and broadcast like those of other elementwise functions. Out: a
tensor. Records of kind "extern": programs call the array library here. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.ops.operators import method
from tracejit.ops.pointwise_arithmetic import pow
from tracejit.ops.pointwise_record import (
    convert,
    elementwise_type,
    in_float32,
    is_tensor,
    promote,
    promote_float,
)
from tracejit.ops.record import Op
from tracejit.ops.types import COMPLEX, FLOATING, float64


def _library(name: str, function: str, prepare: Callable[[Sequence[Any]], tuple],
             **rules: Callable[..., Any]) -> Op:
    """The record of a NumPy function of two arrays, and the method of its name."""
    def front(operands: tuple, attributes: dict) -> tuple[tuple, dict]:
        if attributes:
            operands = (*operands, *(attributes.pop(n) for n in ("other",) if n in attributes))
        if attributes or len(operands) != 2:
            raise TypeError(f"{name}() takes 2 arguments (input, other)")
        return prepare(operands), attributes

    op = Op(name, "extern", ("input", "other"), infer=elementwise_type(None),
            eager=in_float32(function, None), rules=rules, front=front)
    method()(op)
    return op


def _floating(operands: Sequence[Any]) -> tuple:
    operands = promote(operands)
    kind = next(x.dtype for x in operands if is_tensor(x))
    if kind.category < FLOATING:
        raise NotImplementedError(f"\"hypot_cpu\" not implemented for '{kind.name}'")
    return operands


atan2 = _library(
    "atan2", "arctan2", promote_float,
    input=lambda grad, input, other: grad * (other / (input * input + other * other)),
    other=lambda grad, input, other: grad * -(input / (input * input + other * other)))

hypot = _library(
    "hypot", "hypot", _floating,
    input=lambda grad, input, out: grad * (input / out),
    other=lambda grad, other, out: grad * (other / out))


@method()
def float_power(input: Any, exponent: Any) -> Any:
    """input ** exponent, computed and returned in float64.

    >>> import tracejit
    >>> tracejit.float_power(tracejit.tensor([2, 3]), -1).dtype
    tracejit.float64
    """
    return pow(_wide(input), _wide(exponent))


def _wide(x: Any) -> Any:
    if is_tensor(x):
        return x if x.dtype.category == COMPLEX else convert(x, float64)
    return x if isinstance(x, complex) else float(x)
