"""layer_norm and normalize.

In: a floating tensor, the dimensions to normalise over, scale and shift. Out: a tensor of the
same shape. The gradient rules recompute mean and deviation from the input: a second pass over
data that is at hand is cheaper than keeping more of it, and rules made of ops differentiate
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.ops import shapes
from tracejit.ops.composite import composite, must_float, widened
from tracejit.ops.moments import norm
from tracejit.ops.pointwise_logic import clamp_min
from tracejit.ops.pointwise_math import abs, rsqrt, sqrt
from tracejit.ops.pointwise_record import convert
from tracejit.ops.record import apply


def _standardised(input: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """(input - mean) / deviation, and 1 / deviation."""
    centered = input - input.mean(dims, True)
    scale = rsqrt((centered * centered).mean(dims, True) + eps)
    return centered * scale, scale


def _layer_norm_body(input: Any, weight: Any, bias: Any, dims: tuple[int, ...], eps: float) -> Any:
    out, _ = _standardised(widened(input), dims, eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return convert(out, input.dtype)


def _layer_norm_input(grad: Any, input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> Any:
    x, scale = _standardised(widened(input), dims, eps)
    g = widened(grad) if weight is None else widened(grad) * weight
    return scale * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))


def _layer_norm_weight(grad: Any, input: Any, dims: tuple[int, ...], eps: float) -> Any:
    return widened(grad) * _standardised(widened(input), dims, eps)[0]


layer_norm_record = composite(
    "layer_norm", ("input", "weight", "bias"), _layer_norm_body,
    node_name="NativeLayerNormBackward0",
    input=_layer_norm_input,
    weight=_layer_norm_weight,
    bias=lambda grad: grad)


def layer_norm(input: Any, normalized_shape: Sequence[Any], weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight`, plus `bias`.

    >>> import tracejit
    >>> tracejit.nn.functional.layer_norm(tracejit.tensor([[1., 3.]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])

    RuntimeError if the last sizes of `input` are not `normalized_shape`.
    """
    must_float("LayerNormKernelImpl", input.dtype)
    wanted = tuple(normalized_shape)
    last = tuple(input.shape[len(input.shape) - len(wanted):])
    if len(input.shape) < len(wanted) or not wanted or not shapes.same_shape(last, wanted):
        sizes = ", ".join(str(shapes.hint(s)) for s in wanted)
        raise RuntimeError(f"Given normalized_shape=[{sizes}], expected input with shape "
                           f"[*, {sizes}], but got input of size"
                           f"{shapes.shape_text(tuple(input.shape))}")
    for x, name in ((weight, "weight"), (bias, "bias")):
        if x is not None and not shapes.same_shape(tuple(x.shape), wanted):
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got "
                               f"{name} of shape {shapes.shape_text(tuple(x.shape))} and "
                               f"normalized_shape = {shapes.shape_text(wanted)}")
    dims = tuple(range(len(input.shape) - len(wanted), len(input.shape)))
    return apply(layer_norm_record, (input, weight, bias), {"dims": dims, "eps": float(eps)})


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller.

    >>> import tracejit
    >>> tracejit.nn.functional.normalize(tracejit.tensor([3., 4.]), dim=0)
    tensor([0.6000, 0.8000])
    """
    if p == 2:
        # The root of the bounded sum: the gradient at 0 is finite.
        return input / sqrt(clamp_min((input * input).sum(dim, True), eps * eps))
    if p == 1:
        return input / clamp_min(abs(input).sum(dim, True), eps)
    return input / clamp_min(norm(input, p, dim, True), eps)
