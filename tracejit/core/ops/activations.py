"""Activation functions, each one elementwise record with its gradient.

In: a floating tensor, and the function's parameters, which may be numbers of the running program.
Out: a tensor of the same shape. In float16 and bfloat16 each computes in float32 and rounds once.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import overriding
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, must_float
from tracejit.core.ops.fitting import fitting, promote_fitting
from tracejit.core.ops.fused_gradients import (
    CUBIC,
    SLOPE,
    SQRT_HALF,
    gelu_backward,
    gelu_tanh_backward,
    silu_backward,
)
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import exp, sigmoid, sigmoid_array, special
from tracejit.core.ops.pointwise_record import pointwise, real_only
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import COMPLEX, INTEGER, bool_, uint8

_UNBOUNDED = "clamp is not supported for complex types"


def _no_bool(op: Op, operands: tuple) -> None:
    if operands[0].dtype is bool_:
        raise RuntimeError(f"Boolean inputs not supported for {op.name}")


def _floats(op: Op, operands: tuple) -> None:
    must_float(op.name, operands[0].dtype)


def _inexact(op: Op, operands: tuple) -> None:
    if operands[0].dtype.category != COMPLEX:
        _floats(op, operands)


relu_backward = composite(
    "relu_backward", ("grad", "output"), lambda grad, output: where(output <= 0, 0, grad),
    fused="exact")


# -- rectifiers ------------------------------------------------------------------------------------
_relu = pointwise(
    "relu", lambda xp, input: xp.maximum(0, input),  # keeps -0.0: of equals the second
    "({input} if ({input} >= {dtype}(0)) | ({input} != {input}) else {dtype}(0))", methods=(),
    fast="elementwise",
    check=real_only(_UNBOUNDED, first=_no_bool),
    input=lambda grad, out: relu_backward(grad, out))


def placed(result: Any, input: Any, inplace: bool) -> Any:
    return input._assign(result) if inplace else result


def relu(input: Any, inplace: bool = False) -> Any:
    """Return the larger of each element and 0, in the same shape and dtype; the gradient at 0 is 0.

    inplace  True writes the result into `input`

    RuntimeError for bools, NotImplementedError for complex numbers.

    >>> import tracejit
    >>> tracejit.relu(tracejit.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    try:
        return placed(_relu(input), input, inplace)
    except Exception:
        return overriding.instead(relu, (input, inplace), {})


def relu_(input: Any) -> Any:
    """Write the larger of each element and 0 into `input`, and return it, in the same shape.

    >>> import tracejit
    >>> tracejit.relu_(tracejit.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return relu(input, True)


_leaky_relu = pointwise(
    "leaky_relu", lambda xp, input, slope: xp.where(input > 0, input, input * slope),
    "({input} if {input} > {dtype}(0) else {input} * {slope})", methods=(),
    operands=("input", "slope"), check=_floats,
    input=lambda grad, input, slope: where(input > 0, grad, grad * slope))


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Return x where positive, else `negative_slope` times x, in the same shape and floating dtype.

    inplace  True writes the result into `input`

    NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.leaky_relu(tracejit.tensor([-1., 2.]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return placed(_leaky_relu(input, negative_slope), input, inplace)


def negative_part(input: Any) -> Any:
    """Return `input` where negative or NaN, else 0, so that its exponential overflows in no
    derivative."""
    return where(input >= 0, 0, input)


def _elu_array(xp: Any, input: Any, alpha: Any, scale: Any) -> Any:
    return scale * xp.where(input > 0, input, alpha * xp.expm1(xp.where(input > 0, 0, input)))


_elu = pointwise(
    "elu", _elu_array,
    "({scale} * ({input} if {input} > {dtype}(0) else {alpha} * expm1({input})))", methods=(),
    operands=("input", "alpha", "scale"), check=_floats,
    input=lambda grad, input, alpha, scale: grad * where(
        input > 0, scale, exp(negative_part(input)) * (scale * alpha)))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Return x where positive, else alpha * (exp(x) - 1), in the same shape and floating dtype.

    inplace  True writes the result into `input`

    NotImplementedError for other dtypes. Clevert, Unterthiner and Hochreiter (2015) introduced it.

    >>> import tracejit
    >>> tracejit.nn.functional.elu(tracejit.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return placed(_elu(input, alpha, 1.0), input, inplace)


def selu(input: Any, inplace: bool = False) -> Any:
    """Return scale * elu(x, alpha) with alpha = 1.6733 and scale = 1.0507, in the same shape and
    floating dtype.

    inplace  True writes the result into `input`

    NotImplementedError for other dtypes. Klambauer et al., "Self-normalizing neural networks"
    (2017), introduced it.

    >>> import tracejit
    >>> tracejit.nn.functional.selu(tracejit.tensor([-1., 2.]))
    tensor([-1.1113,  2.1014])
    """
    return placed(_elu(input, 1.6732632423543772, 1.0507009873554805), input, inplace)


def relu6(input: Any, inplace: bool = False) -> Any:
    """Return each element bounded to [0, 6], in the same shape and dtype.

    inplace  True writes the result into `input`

    RuntimeError for bools.

    >>> import tracejit
    >>> tracejit.nn.functional.relu6(tracejit.tensor([-1., 8.]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


_hardtanh = pointwise(
    "hardtanh", lambda xp, input, low, high: xp.clip(input, low, high),
    "({high} if {input} > {high} else ({low} if {input} < {low} else {input}))",
    promote_fitting, methods=(),
    operands=("input", "low", "high"), check=real_only(_UNBOUNDED),
    input=lambda grad, input, low, high: where((input > low) & (input < high), grad, 0))


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Return each element bounded to [min_val, max_val], in the same shape and dtype; the gradient
    at the bounds is 0.

    inplace  True writes the result into `input`

    ValueError if `min_val` is larger than `max_val`, RuntimeError for bools.

    >>> import tracejit
    >>> tracejit.nn.functional.hardtanh(tracejit.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype is bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.dtype.category == INTEGER:
        if input.dtype is uint8 and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = (int(fitting(x, input.dtype)) for x in (min_val, max_val))
    return placed(_hardtanh(input, min_val, max_val), input, inplace)


# -- smooth ----------------------------------------------------------------------------------------
_silu = pointwise(
    "silu", lambda xp, input: input * sigmoid_array(xp, input), "({input} * sigmoid({input}))",
    methods=(), check=_inexact, fused="flat",
    input=lambda grad, input: silu_backward(grad, input))


def silu(input: Any, inplace: bool = False) -> Any:
    """Return x * sigmoid(x) of each element, in the same shape and floating or complex dtype.

    inplace  True writes the result into `input`

    NotImplementedError for integers.

    >>> import tracejit
    >>> tracejit.nn.functional.silu(tracejit.tensor([0., 1.]))
    tensor([0.0000, 0.7311])
    """
    return placed(_silu(input), input, inplace)


_erf_array = special("erf")


_gelu = pointwise(
    "gelu", lambda xp, input: input * (0.5 * (1 + _erf_array(xp, input * SQRT_HALF))),
    f"({{input}} * ({{dtype}}(0.5) * ({{dtype}}(1) + erf({{input}} * {{dtype}}({SQRT_HALF})))))",
    methods=(), check=_floats, fused="flat",
    input=lambda grad, input: gelu_backward(grad, input))


# 0.5 * (1 + tanh(u)) is sigmoid(2u), which does not cancel where u is far below zero.
def _gelu_tanh_array(xp: Any, input: Any) -> Any:
    return input * sigmoid_array(xp, 2 * SLOPE * (input + CUBIC * (input * input * input)))


_gelu_tanh = pointwise(
    "gelu_tanh", _gelu_tanh_array,
    f"({{input}} * sigmoid({{dtype}}({2 * SLOPE}) * ({{input}} + "
    f"{{dtype}}({CUBIC}) * ({{input}} * {{input}} * {{input}}))))",
    methods=(), check=_floats, fused="flat", node_name="GeluBackward0",
    input=lambda grad, input: gelu_tanh_backward(grad, input))


def gelu(input: Any, approximate: str = "none") -> Any:
    """Multiply each element by the normal distribution function of it; same shape, floating dtype.

    approximate  "none", or "tanh" for the usual fit

    RuntimeError for other texts, NotImplementedError for other dtypes. The source is Hendrycks and
    Gimpel (2016).

    >>> import tracejit
    >>> tracejit.nn.functional.gelu(tracejit.tensor([0., 1.]))
    tensor([0.0000, 0.8413])
    """
    if approximate == "none":
        return _gelu(input)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _gelu_tanh(input)


def _softplus_array(xp: Any, input: Any, beta: Any, threshold: Any) -> Any:
    scaled = input * beta
    return xp.where(scaled > threshold, input, xp.log1p(xp.exp(scaled)) / beta)


_softplus = pointwise(
    "softplus", _softplus_array,
    "({input} if {input} * {beta} > {threshold} else log1p(exp({input} * {beta})) / {beta})",
    methods=(), operands=("input", "beta", "threshold"), check=_floats,
    input=lambda grad, input, beta, threshold: where(
        input * beta > threshold, grad, grad * sigmoid(input * beta)))


@autocasts(cuda="float32")
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold; same shape,
    floating dtype.

    NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.softplus(tracejit.tensor([0., 30.]))
    tensor([ 0.6931, 30.0000])
    """
    return _softplus(input, beta, threshold)


logsigmoid = pointwise(
    "log_sigmoid", lambda xp, input: xp.minimum(input, 0) - xp.log1p(xp.exp(-abs(input))),
    "(({input} if {input} < {dtype}(0) else {dtype}(0)) - log1p(exp(-abs({input}))))", methods=(),
    operands=("input",), check=lambda op, given: must_float("log_sigmoid_cpu", given[0].dtype),
    node_name="LogSigmoidBackward0",
    input=lambda grad, input: grad * sigmoid(-input))


method()(relu_)
