"""Gradients of softmax, layer_norm, gelu and their kin, each one op whose body is written in ops.

In: the gradient of the result, and what the rule keeps. Out: the gradient of an operand. Called by
the rules of `softmax.py`, `normalization.py` and `activations.py`. Eager mode runs each as one
program (`Op.fused`); captured graphs open them. They have no rules of their own: where a tape is to
record them, eager dispatch runs their bodies.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops.composite import composite, widened, widened_dtype
from tracejit.core.ops.pointwise_math import erf, exp, rsqrt, sigmoid
from tracejit.core.ops.types import TensorType

SQRT_HALF, DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
SLOPE, CUBIC = math.sqrt(2 / math.pi), 0.044715  # of the usual fit by tanh


# -- softmax ---------------------------------------------------------------------------------------
softmax_backward = composite(
    "softmax_backward", ("grad", "output"),
    lambda grad, output, dim: output * (grad - (grad * output).sum(dim, True)), fused="rows")

log_softmax_backward = composite(
    "log_softmax_backward", ("grad", "output"),
    lambda grad, output, dim: grad - exp(output) * grad.sum(dim, True), fused="rows")


# -- layer_norm ------------------------------------------------------------------------------------
def standardised(input: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """Return (input - mean) / deviation, and 1 / deviation."""
    centered = input - input.mean(dims, True)
    scale = rsqrt((centered * centered).mean(dims, True) + eps)
    return centered * scale, scale


def _slope(grad: Any, x: Any, scale: Any, weight: Any, dims: tuple[int, ...]) -> Any:
    g = grad if weight is None else grad * weight
    return scale * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))


def _input_body(grad: Any, input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> Any:
    x, scale = standardised(widened(input), dims, eps)
    return _slope(widened(grad), x, scale, weight, dims)


def _gradients_body(grad: Any, input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> Any:
    grad, (x, scale) = widened(grad), standardised(widened(input), dims, eps)
    rows = tuple(range(dims[0]))
    return (_slope(grad, x, scale, weight, dims), _summed(grad * x, rows), _summed(grad, rows))


def _summed(x: Any, dims: tuple[int, ...]) -> Any:
    return x.sum(dims) if dims else x


def _input_type(grad: Any, input: Any, *others: Any, **attributes: Any) -> TensorType:
    return TensorType(widened_dtype(input.dtype), tuple(input.shape), input.device)


def _gradient_types(grad: Any, input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> Any:
    d, last = widened_dtype(input.dtype), tuple(input.shape[dims[0]:])
    own = TensorType(d, last, input.device)
    return TensorType(d, tuple(input.shape), input.device), own, own


layer_norm_input = composite(
    "layer_norm_input", ("grad", "input", "weight"), _input_body, infer=_input_type, fused="rows")

# Gradients of input, weight and bias, which read the same rows.
layer_norm_gradients = composite(
    "layer_norm_gradients", ("grad", "input", "weight"), _gradients_body, infer=_gradient_types,
    outputs=("input_grad", "weight_grad", "bias_grad"), fused="rows")


# -- activations -----------------------------------------------------------------------------------
def _gelu_body(grad: Any, input: Any) -> Any:
    below = (erf(input * SQRT_HALF) + 1) * 0.5
    return grad * (below + input * (exp(input * input * -0.5) * DENSITY))


def _gelu_tanh_body(grad: Any, input: Any) -> Any:
    squared = input * input
    s = sigmoid((input + squared * input * CUBIC) * (2 * SLOPE))
    inner = (squared * (3 * CUBIC) + 1) * (2 * SLOPE)
    return grad * (s + input * (s * (1 - s)) * inner)


def _silu_body(grad: Any, input: Any) -> Any:
    s = sigmoid(input)
    return grad * (s * (1 + input * (1 - s)))


gelu_backward = composite("gelu_backward", ("grad", "input"), _gelu_body, fused="flat")
gelu_tanh_backward = composite("gelu_tanh_backward", ("grad", "input"), _gelu_tanh_body,
                               fused="flat")
silu_backward = composite("silu_backward", ("grad", "input"), _silu_body, fused="flat")
