"""Elementwise functions of a variable: exponentials, logarithms, trigonometry, rounding.

In: a tensor. Out: a tensor of the same shape, floating where the function's values are. Called by
users and by gradient rules. The functions of rounding and sign have a gradient of zeros, as in
PyTorch.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from tracejit.core.ops.autocast import FLOAT32_ON_CUDA
from tracejit.core.ops.composite import composite
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import magnitude, unit
from tracejit.core.ops.pointwise_record import convert, copy, must_be_real, pointwise, real_only
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import COMPLEX, FLOATING, SCALAR_NAMES, bool_

_LN2, _LN10, _ERF = math.log(2), math.log(10), 2 / math.sqrt(math.pi)


def special(name: str) -> Any:
    """Return a function of scipy.special, or of CuPy's copy of it; imported when first used."""
    def call(xp: Any, *inputs: Any) -> Any:
        module = "scipy.special" if xp is np else "cupyx.scipy.special"
        result = getattr(import_module(module), name)(*inputs)
        return result.astype(next(x.dtype for x in inputs if hasattr(x, "dtype")), copy=False)

    return call


def sigmoid_array(xp: Any, x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), without overflow and without losing the bits of small results."""
    if x.dtype.kind == "c":
        return 1 / (1 + xp.exp(-x))
    e = xp.exp(-xp.abs(x))
    return xp.where(x < 0, e, e.dtype.type(1)) / (1 + e)


def _zeros(grad: Any) -> Any:
    from tracejit.core.ops.creation import zeros_like
    return zeros_like(grad)


# Gradients that eager mode runs as one program, as it does the functions.
tanh_backward = composite(
    "tanh_backward", ("grad", "output"),
    lambda grad, output: grad * (1 - output * output), fused="exact")
sigmoid_backward = composite(
    "sigmoid_backward", ("grad", "output"),
    lambda grad, output: grad * (1 - output) * output, fused="exact")
erf_backward = composite(
    "erf_backward", ("grad", "input"),
    lambda grad, input: grad * (exp(-(input * input)) * _ERF), fused="flat")
erfc_backward = composite(
    "erfc_backward", ("grad", "input"),
    lambda grad, input: grad * (exp(-(input * input)) * -_ERF), fused="flat")


# -- exponentials and logarithms -------------------------------------------------------------------
exp: Op = pointwise("exp", "exp", "exp({input})", "float", fast="elementwise",
                input=lambda grad, out: grad * out)
exp2 = pointwise("exp2", "exp2", "exp2({input})", "float",
                 input=lambda grad, out: grad * out * _LN2)
expm1 = pointwise("expm1", "expm1", "expm1({input})", "float", fast="elementwise",
                  input=lambda grad, out: grad * (out + 1))
log = pointwise("log", "log", "log({input})", "float", fast="elementwise",
                input=lambda grad, input: grad / input)
log1p = pointwise("log1p", "log1p", "log1p({input})", "float", fast="elementwise",
                  node_name="Log1PBackward0",
                  input=lambda grad, input: grad / (input + 1))
log2 = pointwise("log2", "log2", "log2({input})", "float", fast="elementwise",
                 input=lambda grad, input: grad / (input * _LN2))
log10 = pointwise("log10", "log10", "log10({input})", "float",
                  input=lambda grad, input: grad / (input * _LN10))
sqrt = pointwise("sqrt", "sqrt", "sqrt({input})", "float", fast="elementwise",
                 input=lambda grad, out: grad / (2 * out))
rsqrt = pointwise("rsqrt", lambda xp, input: 1 / xp.sqrt(input), "rsqrt({input})", "float",
                  input=lambda grad, out: grad * -0.5 * (out * out * out))
tanh = pointwise("tanh", "tanh", "tanh({input})", "float", fast="elementwise",
                 input=lambda grad, out: tanh_backward(grad, out))
sigmoid = pointwise("sigmoid", sigmoid_array, "sigmoid({input})", "float", fused="flat",
                    fast="fused", input=lambda grad, out: sigmoid_backward(grad, out))
erf = pointwise("erf", special("erf"), "erf({input})", "float", fused="flat",
                check=real_only("\"erf_vml_cpu\" not implemented for '{}'"),
                input=lambda grad, input: erf_backward(grad, input))
erfc = pointwise("erfc", special("erfc"), "erfc({input})", "float", fused="flat",
                 check=real_only("\"erfc_vml_cpu\" not implemented for '{}'"),
                 input=lambda grad, input: erfc_backward(grad, input))

# -- trigonometry ----------------------------------------------------------------------------------
sin: Op = pointwise("sin", "sin", "sin({input})", "float", fast="elementwise",
                input=lambda grad, input: grad * cos(input))
cos: Op = pointwise("cos", "cos", "cos({input})", "float", fast="elementwise",
                input=lambda grad, input: grad * -sin(input))
tan = pointwise("tan", "tan", "tan({input})", "float",
                input=lambda grad, out: grad * (1 + out * out))
asin = pointwise("asin", "arcsin", "asin({input})", "float", methods=("asin", "arcsin"),
                 input=lambda grad, input: grad * rsqrt(1 - input * input))
acos = pointwise("acos", "arccos", "acos({input})", "float", methods=("acos", "arccos"),
                 input=lambda grad, input: grad * -rsqrt(1 - input * input))
atan = pointwise("atan", "arctan", "atan({input})", "float", methods=("atan", "arctan"),
                 input=lambda grad, input: grad / (input * input + 1))
sinh: Op = pointwise("sinh", "sinh", "sinh({input})", "float",
                 input=lambda grad, input: grad * cosh(input))
cosh: Op = pointwise("cosh", "cosh", "cosh({input})", "float",
                 input=lambda grad, input: grad * sinh(input))


# -- sign and rounding -----------------------------------------------------------------------------
def _no_bool(op: Op, operands: tuple) -> None:
    if operands[0].dtype is bool_:
        raise NotImplementedError(f"\"{op.name}_cpu\" not implemented for 'Bool'")


_abs = pointwise("abs", "absolute", "abs({input})", methods=(), check=_no_bool, fast="elementwise",
                 input=lambda grad, input: grad * sign(input))
_sign = pointwise(
    "sign", lambda xp, input: xp.sign(xp.where(input == input, input, 0)),
    "({dtype}(1) if {input} > {dtype}(0) else "
    "({dtype}(-1) if {input} < {dtype}(0) else {dtype}(0)))",
    methods=(), input=_zeros)
_floor = pointwise("floor", "floor", "floor({input})", methods=(), input=_zeros)
_ceil = pointwise("ceil", "ceil", "ceil({input})", methods=(), input=_zeros)
_round = pointwise("round", "rint", "rint({input})", methods=(), input=_zeros)
_trunc = pointwise("trunc", "trunc", "trunc({input})", methods=(), input=_zeros)


def abs(input: Any) -> Any:
    """Return the magnitude of each element, a real number, in the same shape; the gradient at 0 is
    0.

    >>> import tracejit
    >>> tracejit.abs(tracejit.tensor([-1, 2]))
    tensor([1, 2])

    NotImplementedError for booleans.
    """
    if input.dtype.category == COMPLEX:
        return magnitude(input)
    _no_bool(_abs, (input,))
    return _abs(input) if input.dtype.is_signed else copy(input)


absolute = abs


def sign(input: Any) -> Any:
    """Return -1, 0 or 1, in the same shape and dtype; 0 for NaN. NotImplementedError for complex
    numbers: see `sgn`.

    >>> import tracejit
    >>> tracejit.sign(tracejit.tensor([-3., 0., 2.]))
    tensor([-1.,  0.,  1.])
    """
    must_be_real("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                 "torch.sgn instead.", (input,))
    return _sign(input) if input.dtype.is_signed else convert(input != 0, input.dtype)


def sgn(input: Any) -> Any:
    """Return `sign`, in the same shape and dtype; of a complex number z / |z|, of 0 0.

    >>> import tracejit
    >>> tracejit.sgn(tracejit.tensor([3 + 4j]))
    tensor([0.6000+0.8000j])
    """
    return unit(input) if input.dtype.category == COMPLEX else sign(input)


def _whole(op: Op, input: Any) -> Any:
    """Round: integers are their own rounding; complex numbers have none."""
    _no_bool(op, (input,))
    must_be_real(f"{op.name} is not supported for complex inputs" if op is not _round else
                 "\"round_vml_cpu\" not implemented for '{}'", (input,))
    return op(input) if input.dtype.category >= FLOATING else copy(input)


def floor(input: Any) -> Any:
    """Return the largest integer not above each element, in the same shape and dtype.

    >>> import tracejit
    >>> tracejit.floor(tracejit.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return _whole(_floor, input)


def ceil(input: Any) -> Any:
    """Return the smallest integer not below each element, in the same shape and dtype.

    >>> import tracejit
    >>> tracejit.ceil(tracejit.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return _whole(_ceil, input)


def trunc(input: Any) -> Any:
    """Cut off the fraction of each element, in the same shape and dtype.

    >>> import tracejit
    >>> tracejit.trunc(tracejit.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return _whole(_trunc, input)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Return the nearest integer, ties to even, in the same shape and dtype; with `decimals`, the
    nearest multiple of 10**-decimals.

    >>> import tracejit
    >>> tracejit.round(tracejit.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    if decimals != 0:
        must_be_real("\"round_cpu\" not implemented for '{}'", (input,))
    if decimals == 0 or input.dtype.category < FLOATING:
        return _whole(_round, input)
    factor = 10.0 ** decimals
    return _round(input * factor) / factor


def frac(input: Any) -> Any:
    """Return the fraction of each element, with its sign, in the same shape. NotImplementedError
    for integers.

    >>> import tracejit
    >>> tracejit.frac(tracejit.tensor([-1.5, 1.25]))
    tensor([-0.5000,  0.2500])
    """
    if input.dtype.category != FLOATING:
        raise NotImplementedError("\"frac_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[input.dtype.name]}'")
    return input - trunc(input)


fix = trunc


def positive(input: Any) -> Any:
    """Return `input` itself, of any shape. RuntimeError for a bool tensor.

    >>> import tracejit
    >>> tracejit.positive(tracejit.tensor([-1.0]))
    tensor([-1.])
    """
    if input.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


method("__pos__")(positive)


def deg2rad(input: Any) -> Any:
    """Convert degrees to radians, in the same shape; integers give the default dtype.

    >>> import tracejit
    >>> tracejit.deg2rad(tracejit.tensor([180.0]))
    tensor([3.1416])
    """
    must_be_real("deg2rad is not supported for complex tensors.", (input,), RuntimeError)
    return input * (math.pi / 180)


def rad2deg(input: Any) -> Any:
    """Convert radians to degrees, in the same shape; integers give the default dtype.

    >>> import tracejit
    >>> tracejit.rad2deg(tracejit.tensor([tracejit.pi]))
    tensor([180.])
    """
    must_be_real("rad2deg is not supported for complex tensors.", (input,), RuntimeError)
    return input * (180 / math.pi)


for _function in (
    abs, absolute, sign, sgn, floor, ceil, trunc, round, frac, positive, deg2rad, rad2deg,
):  # fmt: skip
    method()(_function)
method("fix")(trunc)
method("absolute", "__abs__")(abs)
for _record in (exp, expm1, log, log1p, log2, log10, rsqrt, tan, asin, acos, sinh, cosh):
    _record.casts = FLOAT32_ON_CUDA
