"""Signs, exponents, neighbours and steps of numbers: copysign, signbit, heaviside, frexp, ldexp,
nextafter, fmax, fmin, and the common divisors of integers.

In: tensors, promoted and broadcast like those of other elementwise functions. Out: a tensor; of
frexp two. Where kernels have no expression programs call the array library. Called by users.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_arithmetic import pow
from tracejit.core.ops.pointwise_library import BOTH, library, only
from tracejit.core.ops.pointwise_logic import lt, where
from tracejit.core.ops.pointwise_math import _zeros
from tracejit.core.ops.pointwise_record import (
    device_of,
    is_tensor,
    must_be_real,
    must_be_tensors,
    pointwise,
    promote,
    real_only,
)
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import broadcast
from tracejit.core.ops.types import FLOATING, INTEGER, TensorType, bool_, int32

FrexpResult = namedtuple("frexp", ["mantissa", "exponent"])  # type: ignore[name-match]


# -- signs -----------------------------------------------------------------------------------------
copysign = library(
    "copysign", "copysign", operands=BOTH, tensors=("input",),
    input=lambda grad, input, out: where(input == 0, 0, grad * (out / input)),
    other=_zeros)

_signbit = library("signbit", "signbit", promote, methods=(), result=bool_)


@method()
def signbit(input: Any) -> Any:
    """Return True where the sign is minus, that of -0.0 and of nan too; bools in the same shape.

    >>> import tracejit
    >>> tracejit.signbit(tracejit.tensor([-0.0, 0.0, -2.0]))
    tensor([ True, False,  True])
    """
    return _signbit(input) if input.dtype.category >= FLOATING else lt(input, 0)


@method()
def isposinf(input: Any) -> Any:
    """Return True where an element is plus infinity; bools in the same shape.

    >>> import tracejit
    >>> tracejit.isposinf(tracejit.tensor([1.0, tracejit.inf]))
    tensor([False,  True])
    """
    must_be_real("isposinf does not support complex inputs.", (input,), RuntimeError)
    return input == float("inf")


@method()
def isneginf(input: Any) -> Any:
    """Return True where an element is minus infinity; bools in the same shape.

    >>> import tracejit
    >>> tracejit.isneginf(tracejit.tensor([1.0, -tracejit.inf]))
    tensor([False,  True])
    """
    must_be_real("isneginf does not support complex inputs.", (input,), RuntimeError)
    return input == -float("inf")


def _one_dtype(op: Op, operands: tuple) -> None:
    must_be_real("heaviside is not yet implemented for complex tensors.", operands, RuntimeError)
    kinds = [x.dtype for x in operands if is_tensor(x)]
    if len(kinds) < len(operands) or kinds[0] is not kinds[1]:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


heaviside = pointwise(
    "heaviside",
    lambda xp, input, values: xp.where(input == 0, values, (input > 0).astype(input.dtype)),
    "({values} if {input} == {dtype}(0) else ({dtype}(1) if {input} > {dtype}(0) else {dtype}(0)))",
    operands=("input", "values"), tensors=("input", "values"), check=_one_dtype)


# -- exponents and neighbours ----------------------------------------------------------------------
def _parts(xp: Any, x: Any) -> tuple[Any, Any]:
    wide = x if x.dtype.kind == "f" and x.dtype.itemsize > 2 else x.astype(np.float32)
    mantissa, exponent = xp.frexp(wide)
    return mantissa.astype(x.dtype), exponent.astype(np.int32)


frexp_record = Op(
    "frexp", "extern", ("input",), outputs=("mantissa", "exponent"), eager=_parts,
    infer=lambda input: (TensorType(input.dtype, tuple(input.shape), input.device),
                         TensorType(int32, tuple(input.shape), input.device)),
    rules={"input": lambda grad, exponent: grad / pow(2.0, exponent)},
)  # fmt: skip


@method()
def frexp(input: Any) -> Any:
    """Return (mantissa, exponent): input = mantissa * 2 ** exponent, 0.5 <= |mantissa| < 1.

    >>> import tracejit
    >>> mantissa, exponent = tracejit.frexp(tracejit.tensor([8.0, -3.0]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.5, -0.75], [4, 2])

    RuntimeError for integers.
    """
    if input.dtype.category != FLOATING:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return FrexpResult(*frexp_record(input))


def _scaled(xp: Any, input: Any, exponent: Any) -> Any:
    wide = input if input.dtype.itemsize > 2 else input.astype(np.float32)
    # beyond these every float is 0 or infinite
    exponent = xp.clip(exponent, -5000, 5000).astype(np.int32)
    return xp.ldexp(wide, exponent).astype(input.dtype)


def _scaled_type(input: TensorType, exponent: TensorType) -> TensorType:
    return TensorType(input.dtype, broadcast(input.shape, exponent.shape),
                      device_of((input, exponent)))


def _scaled_gradient(grad: Any, exponent: Any) -> Any:
    return ldexp(grad, exponent)


ldexp_record = Op("ldexp", "extern", ("input", "exponent"), infer=_scaled_type, eager=_scaled,
                  rules={"input": _scaled_gradient})


@method()
def ldexp(input: Any, other: Any) -> Any:
    """Return input * 2 ** other; both broadcast, and integers give the default dtype.

    Floats keep their dtype where `other` holds integers. The result is then the exact product,
    rounded once. NotImplementedError for floats if `other` holds booleans.

    >>> import tracejit
    >>> tracejit.ldexp(tracejit.tensor([1.0, 3.0]), tracejit.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    must_be_tensors("ldexp", BOTH, (input, other))
    if input.dtype.category == FLOATING and other.dtype.category == INTEGER:
        return ldexp_record(input, other)
    if input.dtype.category == FLOATING and other.dtype is bool_:
        raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    return input * pow(2.0, other)


nextafter = library(
    "nextafter", "nextafter",
    only(lambda kind: kind.category < FLOATING, "nextafter_cpu"), BOTH, halves=True, tensors=BOTH,
    input=lambda grad, input, other: where(input == other, 0, grad), other=_zeros)


# -- extremes that skip nan ------------------------------------------------------------------------
def _skipping(name: str, comparison: str) -> Op:
    """Make the record of an extreme of two; of nan and a number it takes the number."""
    first = "({input} != {input})", "({other} != {other})"
    scalar = (f"({{other}} if {first[0]} else ({{input}} if {first[1]} else "
              f"({{input}} if {{input}} {comparison} {{other}} else {{other}})))")
    return pointwise(
        name, name, scalar, operands=BOTH, tensors=BOTH,
        check=real_only(f"{name} not implemented for complex tensors.", RuntimeError),
        input=lambda grad, input, other: where(_takes(comparison, input, other), grad, 0),
        other=lambda grad, input, other: where(_takes(comparison, input, other), 0, grad))


def _takes(comparison: str, input: Any, other: Any) -> Any:
    """Return True where `_skipping` takes the first of two."""
    ordered = input >= other if comparison == ">=" else input <= other
    return ordered | (other != other)


fmax, fmin = _skipping("fmax", ">="), _skipping("fmin", "<=")


# -- integers --------------------------------------------------------------------------------------
gcd = library("gcd", "gcd", only(lambda kind: kind.category != INTEGER, "gcd_cpu"), BOTH,
              tensors=BOTH)
lcm = library("lcm", "lcm", only(lambda kind: kind.category != INTEGER, "lcm_cpu"), BOTH,
              tensors=BOTH)
