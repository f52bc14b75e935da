"""Normalisation: layer_norm, group_norm, rms_norm, local_response_norm and normalize.

In: a floating tensor, the dimensions to normalise over, scale and shift. Out: a tensor of the same
shape.

The gradient rules recompute mean and deviation from the input: a second pass over data at hand is
cheaper than to keep more of it. Rules made of ops differentiate again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.batch_norm import check_channel_types
from tracejit.core.ops.composite import composite, must_float, widened
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.fused_gradients import (
    layer_norm_gradients,
    layer_norm_input,
    standardised,
)
from tracejit.core.ops.moments import norm
from tracejit.core.ops.padding import pad
from tracejit.core.ops.pointwise_logic import clamp_min
from tracejit.core.ops.pointwise_math import abs, rsqrt, sqrt
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import apply
from tracejit.core.ops.types import COMPLEX, FLOATING


def _layer_norm_body(input: Any, weight: Any, bias: Any, dims: tuple[int, ...], eps: float) -> Any:
    out, _ = standardised(widened(input), dims, eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return convert(out, input.dtype)


def _layer_norm_weight(grad: Any, input: Any, dims: tuple[int, ...], eps: float) -> Any:
    return widened(grad) * standardised(widened(input), dims, eps)[0]


def _layer_norm_rules(grad: Any, input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> Any:
    found = layer_norm_gradients(grad, input, weight, dims=dims, eps=eps)
    return dict(zip(("input", "weight", "bias"), found))


layer_norm_record = composite(
    "layer_norm", ("input", "weight", "bias"), _layer_norm_body,
    node_name="NativeLayerNormBackward0",
    fused="rows", joint=_layer_norm_rules,
    input=lambda grad, input, weight, dims, eps: layer_norm_input(
        grad, input, weight, dims=dims, eps=eps),
    weight=_layer_norm_weight,
    bias=lambda grad: grad)


_layer_norm_direct = Direct("fused", "layer_norm")


@autocasts(cuda="float32")
def layer_norm(input: Any, normalized_shape: Sequence[Any], weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    """Normalise over the last dimensions to mean 0 and variance 1, times `weight`, plus `bias`.

    >>> import tracejit
    >>> tracejit.nn.functional.layer_norm(tracejit.tensor([[1., 3.]]), (2,), eps=0.0)
    tensor([[-1.,  1.]])

    RuntimeError if the last sizes of `input` are not `normalized_shape`.
    """
    found = _layer_norm_direct.direct((input, weight, bias), normalized_shape, eps)
    if found is not NotImplemented:
        return found
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


# -- groups of channels ----------------------------------------------------------------------------
def _grouped(x: Any, groups: int) -> Any:
    """Return (N, C, ...) as (N, groups, elements of a group)."""
    each = shapes.numel(x.shape[1:]) // groups
    return x.reshape((x.shape[0], groups, each))


def _per_channel(x: Any, like: Any) -> Any:
    return widened(x).reshape((-1, *(1,) * (len(like.shape) - 2)))


def _group_norm_body(input: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    out, _ = standardised(_grouped(widened(input), groups), (2,), eps)
    out = out.reshape(input.shape)
    if weight is not None:
        out = out * _per_channel(weight, input)
    if bias is not None:
        out = out + _per_channel(bias, input)
    return convert(out, input.dtype)


def _group_norm_input(grad: Any, input: Any, weight: Any, groups: int, eps: float) -> Any:
    x, scale = standardised(_grouped(widened(input), groups), (2,), eps)
    g = widened(grad) if weight is None else widened(grad) * _per_channel(weight, input)
    g = _grouped(g, groups)
    slope = scale * (g - g.mean((2,), True) - x * (g * x).mean((2,), True))
    return slope.reshape(input.shape)


def _over_channels(x: Any) -> Any:
    """Sum (N, C, ...) for each channel."""
    return x.sum((0, *range(2, len(x.shape))))


def _group_norm_weight(grad: Any, input: Any, groups: int, eps: float) -> Any:
    x, _ = standardised(_grouped(widened(input), groups), (2,), eps)
    return _over_channels(widened(grad) * x.reshape(input.shape))


group_norm_record = composite(
    "group_norm", ("input", "weight", "bias"), _group_norm_body,
    node_name="NativeGroupNormBackward0",
    input=_group_norm_input,
    weight=_group_norm_weight,
    bias=lambda grad: _over_channels(widened(grad)))


@autocasts(cuda="float32")
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    """Normalise each of `num_groups` groups of channels of (N, C, ...) to mean 0 and variance 1.

    The result is multiplied by `weight`; `bias` is added. Both have C elements.

    >>> import tracejit
    >>> x = tracejit.tensor([[1.0, 3.0, 5.0, 9.0]])
    >>> tracejit.nn.functional.group_norm(x, 2, eps=0.0001).round().tolist()
    [[-1.0, 1.0, -1.0, 1.0]]

    RuntimeError if the channels do not divide into the groups or a vector has another size,
    ValueError for a single value per group, NotImplementedError for integers.
    """
    ndim = len(input.shape)
    if ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {ndim}")
    _check_group_size(input, num_groups)
    for x, name in ((weight, "weight"), (bias, "bias")):
        if x is not None and not shapes.same_shape(tuple(x.shape), (input.shape[1],)):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of "
                               f"channels in input, but got {name} of shape "
                               f"{shapes.shape_text(tuple(x.shape))} and input of shape "
                               f"{shapes.shape_text(tuple(input.shape))}")
    must_float("GroupNormKernelImpl", input.dtype)
    check_channel_types(input, weight, bias)
    return apply(group_norm_record, (input, weight, bias),
                 {"groups": int(num_groups), "eps": float(eps)})


def _check_group_size(input: Any, groups: int) -> None:
    size = shapes.shape_text(tuple(input.shape))
    if groups == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if groups < 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if shapes.numel(input.shape) // groups == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}")
    if input.shape[1] % groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, "
                           f"but got input of shape {size} and num_groups={groups}")


# -- by size alone ---------------------------------------------------------------------------------
def rms_norm(input: Any, normalized_shape: Sequence[Any], weight: Any = None,
             eps: float | None = None) -> Any:
    """Divide `input` by the root of its mean square over its last dimensions; multiply by `weight`.

    eps  added to the mean square; None: the smallest step from 1 in the dtype that computes

    >>> import tracejit
    >>> tracejit.nn.functional.rms_norm(tracejit.tensor([[1.0, 7.0]]), (2,))
    tensor([[0.2000, 1.4000]])

    RuntimeError if the last sizes of `input` are not `normalized_shape`.
    """
    if isinstance(normalized_shape, int):
        raise TypeError("rms_norm(): argument 'normalized_shape' (position 2) must be tuple of "
                        "ints, not int")
    wanted = tuple(normalized_shape)
    if not wanted:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., "
                           "containing at least one element, but got normalized_shape = []")
    if weight is not None and not shapes.same_shape(tuple(weight.shape), wanted):
        raise RuntimeError("Expected weight to be of same shape as normalized_shape, but got "
                           f"weight of shape {shapes.shape_text(tuple(weight.shape))} and "
                           f"normalized_shape = {shapes.shape_text(wanted)}")
    last = tuple(input.shape[len(input.shape) - len(wanted):])
    if len(input.shape) < len(wanted) or not shapes.same_shape(last, wanted):
        sizes = ", ".join(str(shapes.hint(s)) for s in wanted)
        raise RuntimeError(f"Given normalized_shape=[{sizes}], expected input with shape "
                           f"[*{sizes}], but got input of size"
                           f"{shapes.shape_text(tuple(input.shape))}")
    if input.dtype.category != COMPLEX:
        must_float("rms_norm", input.dtype)
    x = widened(input)
    if eps is None:
        eps = float(np.finfo(x.dtype.numpy).eps)
    dims = tuple(range(len(input.shape) - len(wanted), len(input.shape)))
    out = x * rsqrt((x * x).mean(dims, True) + eps)
    return convert(out if weight is None else out * weight, input.dtype)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Any:
    """Divide `input` (N, C, ...) by (k + alpha * mean of squares) ** beta.

    The mean is that of `size` channels around each. Channels past the ends count as zeros.

    >>> import tracejit
    >>> x = tracejit.tensor([[[1.0], [2.0], [3.0]]])
    >>> tracejit.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=1.0, k=0.0).tolist()
    [[[1.0], [0.4000000059604645], [0.23076923191547394]]]

    ValueError for inputs of fewer than three dimensions.
    """
    ndim = len(input.shape)
    if ndim < 3:
        raise ValueError("Expected 3D or higher dimensionality "
                         f"                         input (got {ndim} dimensions)")
    if size < 1:
        kernel = f"kH: {size} kW: 1" if ndim == 3 else f"kT: {size} kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {kernel}")
    floating = input.dtype.category == FLOATING
    if not floating and not shapes.numel(input.shape):
        return input  # PyTorch keeps the dtype where it is empty
    squares = pad(input * input, (*(0, 0) * (ndim - 2), size // 2, (size - 1) // 2))
    windows = [squares.narrow(1, start, input.shape[1]) for start in range(size)]
    total = windows[0]
    for window in windows[1:]:
        total = total + window
    mean = total / size if floating else total // size
    return input / (mean * alpha + k) ** beta


@autocasts(cuda="float32")
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """Divide `input` by its p-norm along `dim`, or by `eps` where the norm is smaller; same shape
    and dtype.

    >>> import tracejit
    >>> tracejit.nn.functional.normalize(tracejit.tensor([3., 4.]), dim=0)
    tensor([0.6000, 0.8000])
    """
    if p == 2 and input.dtype.category == FLOATING:
        # Bound the sum before its root is taken, so that the gradient at 0 is finite.
        return input / sqrt(clamp_min((input * input).sum(dim, True), eps * eps))
    if p == 1:
        return input / clamp_min(abs(input).sum(dim, True), eps)
    return input / clamp_min(norm(input, p, dim, True), eps)
