"""Activation functions in pieces, and those that gate one half with the other.

In: a floating tensor, and the function's parameters, which may be numbers of the running program.
Out: a tensor of the same shape (`glu`: half of it). In float16 and bfloat16 each computes in
float32 and rounds once.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.activations import negative_part, placed, softplus
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, must_float
from tracejit.core.ops.fitting import fitting, promote_computed
from tracejit.core.ops.joining import cat
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_math import exp, sigmoid, tanh
from tracejit.core.ops.pointwise_record import must_be_real, must_be_tensors, pointwise
from tracejit.core.ops.random import rand_like
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import SCALAR_NAMES, TensorType


def _floats(op: Op, operands: tuple) -> None:
    must_float(op.name, operands[0].dtype)


# -- in pieces -------------------------------------------------------------------------------------
_hardsigmoid = pointwise(
    "hardsigmoid", lambda xp, input: xp.clip(input + 3, 0, 6) / 6,
    "(({input} if {input} != {input} else ({dtype}(0) if {input} < {dtype}(-3) else ({dtype}(6) "
    "if {input} > {dtype}(3) else {input} + {dtype}(3)))) / {dtype}(6))",
    methods=(), check=_floats,
    input=lambda grad, input: where((input > -3) & (input < 3), grad / 6, 0),
)  # fmt: skip


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Return (x + 3) / 6, bounded to [0, 1], in the same shape and floating dtype.

    NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.hardsigmoid(tracejit.tensor([-4., 0., 3.]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return placed(_hardsigmoid(input), input, inplace)


_hardswish = pointwise(
    "hardswish", lambda xp, input: input * xp.clip(input + 3, 0, 6) / 6,
    "({input} * ({dtype}(0) if {input} < {dtype}(-3) else ({dtype}(6) if {input} > {dtype}(3) else "
    "{input} + {dtype}(3))) / {dtype}(6))",
    methods=(), check=_floats,
    input=lambda grad, input: where(
        input <= -3, 0, where(input >= 3, grad, grad * (input / 3 + 0.5))
    ),
)  # fmt: skip


def hardswish(input: Any, inplace: bool = False) -> Any:
    """Return x * hardsigmoid(x), in the same shape and floating dtype. Howard et al. (2019)
    introduced it.

    >>> import tracejit
    >>> tracejit.nn.functional.hardswish(tracejit.tensor([-4., 0., 3.]))
    tensor([-0., 0., 3.])
    """
    return placed(_hardswish(input), input, inplace)


def _shrunk(grad: Any, input: Any, lambd: Any) -> Any:
    return where((input < -lambd) | (input > lambd), grad, 0)


hardshrink_record = pointwise(
    "hardshrink",
    lambda xp, input, lambd: xp.where((input >= -lambd) & (input <= lambd), 0, input),
    "({dtype}(0) if ({input} >= -{lambd}) & ({input} <= {lambd}) else {input})",
    methods=(), operands=("input", "lambd"), check=_floats, input=_shrunk,
)  # fmt: skip


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Return each element, but 0 in [-lambd, lambd], in the same shape and floating dtype.

    NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.hardshrink(tracejit.tensor([-1., 0.3]))
    tensor([-1.,  0.])
    """
    return hardshrink_record(input, lambd)


softshrink_record = pointwise(
    "softshrink",
    lambda xp, input, lambd: xp.where(
        input > lambd, input - lambd, xp.where(input < -lambd, input + lambd, input * 0)
    ),
    "({input} - {lambd} if {input} > {lambd} else ({input} + {lambd} if {input} < -{lambd} else "
    "{input} * {dtype}(0)))",
    methods=(), operands=("input", "lambd"), check=_floats, input=_shrunk,
)  # fmt: skip


def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Move each element towards 0 by `lambd`, in the same shape and floating dtype.

    RuntimeError for a negative `lambd`, NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.softshrink(tracejit.tensor([-1., 0.3]))
    tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        raise RuntimeError(
            f"lambda must be in range [0, 3.40282e+38] for input dtype "
            f"{SCALAR_NAMES[input.dtype.name]}, but found {lambd}"
        )
    return softshrink_record(input, lambd)


_threshold = pointwise(
    "threshold", lambda xp, input, limit, value: xp.where(input <= limit, value, input),
    "({value} if {input} <= {limit} else {input})", promote_computed,
    methods=(), operands=("input", "limit", "value"),
    input=lambda grad, input, limit: where(input <= limit, 0, grad),
)  # fmt: skip


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Return x where it is larger than `threshold`, else `value`, in the same shape and dtype.

    NotImplementedError for bools and complex numbers.

    >>> import tracejit
    >>> tracejit.nn.functional.threshold(tracejit.tensor([0.2, 0.7]), 0.5, -1.0)
    tensor([-1.0000,  0.7000])
    """
    must_be_real("\"threshold_cpu\" not implemented for '{}'", (input,))
    if input.dtype.name == "bool":
        raise NotImplementedError("\"threshold_cpu\" not implemented for 'Bool'")
    if not input.dtype.is_floating_point:  # as the kernel sees them: without a fraction
        threshold, value = (int(fitting(x, input.dtype)) for x in (threshold, value))
    value = fitting(value, input.dtype)
    return placed(_threshold(input, threshold, value), input, inplace)


_celu = pointwise(
    "celu",
    lambda xp, input, alpha: xp.where(
        input > 0, input, alpha * xp.expm1(xp.where(input > 0, 0, input) / alpha)
    ),
    "({input} if {input} > {dtype}(0) else {alpha} * expm1({input} / {alpha}))",
    methods=(), operands=("input", "alpha"), check=_floats,
    input=lambda grad, input, alpha: where(
        input > 0, grad, grad * exp(negative_part(input) / alpha)),
)  # fmt: skip


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Return x where positive, else alpha * (exp(x / alpha) - 1), in the same shape and floating
    dtype.

    RuntimeError for alpha 0, NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.functional.celu(tracejit.tensor([-1., 2.]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return placed(_celu(input, alpha), input, inplace)


# -- smooth ----------------------------------------------------------------------------------------
def _mish_rule(grad: Any, input: Any) -> Any:
    t = tanh(softplus(input))
    return grad * (t + input * sigmoid(input) * (1 - t * t))


_mish = pointwise(
    "mish", lambda xp, input: input * xp.tanh(xp.logaddexp(input, 0)),
    "({input} * tanh({input} if {input} > {dtype}(20) else log1p(exp({input}))))",
    methods=(), check=_floats, input=_mish_rule,
)  # fmt: skip


def mish(input: Any, inplace: bool = False) -> Any:
    """Return x * tanh(log(1 + exp(x))), in the same shape and floating dtype. Misra (2019)
    introduced it.

    >>> import tracejit
    >>> tracejit.nn.functional.mish(tracejit.tensor([-1., 1.]))
    tensor([-0.3034,  0.8651])
    """
    return placed(_mish(input), input, inplace)


def softsign(input: Any) -> Any:
    """Return x / (1 + |x|) of each element, in the same shape; integers give the default dtype.

    >>> import tracejit
    >>> tracejit.nn.functional.softsign(tracejit.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Any) -> Any:
    """Return x - tanh(x) of each element, in the same shape; integers give the default dtype.

    >>> import tracejit
    >>> tracejit.nn.functional.tanhshrink(tracejit.tensor([-2., 0.]))
    tensor([-1.0360,  0.0000])
    """
    return input - tanh(input)


# -- with a weight, or gated -----------------------------------------------------------------------
@autocasts(cpu="lower", cuda="lower")
def prelu(input: Any, weight: Any) -> Any:
    """Return x where positive, else `weight` times it, in the same shape and floating dtype.

    There is one weight, (1,) or (), or one for each channel, (C,), the size of dimension 1.
    RuntimeError where the numbers of weights and channels differ.

    >>> import tracejit
    >>> tracejit.nn.functional.prelu(tracejit.tensor([-1., 2.]), tracejit.tensor([0.5]))
    tensor([-0.5000,  2.0000])
    """
    must_be_tensors("prelu", ("weight",), (weight,))
    count, ndim = shapes.numel(weight.shape), len(input.shape)
    if len(weight.shape) > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{len(weight.shape)}")
    if not shapes.equal(count, 1):
        channels = input.shape[1] if ndim > 1 else 1
        shapes.same(
            count, channels,
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{shapes.hint(count)} and channel size = {shapes.hint(channels)}.",
        )  # fmt: skip
    slope = weight.reshape((1, -1, *(1,) * (ndim - 2)) if ndim > 1 else (1,) * ndim)
    return prelu_record(input, slope)


prelu_record = pointwise(
    "prelu_kernel", lambda xp, input, slope: xp.where(input > 0, input, input * slope),
    "({input} if {input} > {dtype}(0) else {input} * {slope})",
    methods=(), operands=("input", "slope"), check=_floats,
    input=lambda grad, input, slope: where(input > 0, grad, grad * slope),
    slope=lambda grad, input: where(input > 0, 0, grad * input),
)  # fmt: skip


def _glu_body(input: Any, dim: int) -> Any:
    half = input.shape[dim] // 2
    return input.narrow(dim, 0, half) * sigmoid(input.narrow(dim, half, half))


def _glu_type(input: Any, dim: int) -> TensorType:
    shape = list(input.shape)
    shape[dim] = shape[dim] // 2
    return TensorType(input.dtype, tuple(shape), input.device)


def _glu_rule(grad: Any, input: Any, dim: int) -> Any:
    half = input.shape[dim] // 2
    gate = sigmoid(input.narrow(dim, half, half))
    passed = grad * gate
    return cat((passed, passed * (1 - gate) * input.narrow(dim, 0, half)), dim)


glu_record = composite("glu", ("input",), _glu_body, infer=_glu_type, input=_glu_rule)


def glu(input: Any, dim: int = -1) -> Any:
    """Multiply the first half along `dim` by the sigmoid of the second: (*, 2n, *) gives (*, n, *).

    RuntimeError for an odd size. The source is Dauphin et al. (2016).

    >>> import tracejit
    >>> tracejit.nn.functional.glu(tracejit.tensor([2., 0.]))
    tensor([1.])
    """
    must_be_real("\"glu_cpu\" not implemented for '{}'", (input,))
    if not input.shape:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    k = shapes.normalize_dim(dim, len(input.shape))
    if input.shape[k] % 2 != 0:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {k} is size "
            f"{shapes.hint(input.shape[k])}"
        )
    return glu_record(input, dim=k)


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Any:  # fmt: skip
    """Return x where positive, else a slope times it, in the same shape and floating dtype.

    While training, each element draws its slope from [lower, upper); else the slope is their mean.
    RuntimeError where `lower` exceeds `upper`.

    >>> import tracejit
    >>> tracejit.nn.functional.rrelu(tracejit.tensor([-1., 2.]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    slope = (lower + upper) / 2
    if training:
        slope = rand_like(input) * (upper - lower) + lower
    return placed(where(input > 0, input, input * slope), input, inplace)


for _function in (hardshrink, prelu):
    method()(_function)
