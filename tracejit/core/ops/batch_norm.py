"""batch_norm and instance_norm: each channel brought to mean 0 and variance 1.

In: (N, C, ...), running statistics that training writes and evaluation reads, scale and shift of
each channel. Out: a tensor of the input's shape and dtype. Called by users as
`nn.functional.*_norm`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.composite import composite, must_float, widened
from tracejit.core.ops.pointwise_math import rsqrt
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import apply
from tracejit.core.ops.types import SCALAR_NAMES, TensorType, float32


# -- the records -----------------------------------------------------------------------------------
def _affine(x: Any, weight: Any, bias: Any) -> Any:
    out = x if weight is None else x * widened(weight)
    return out if bias is None else out + widened(bias)


def _of_batch(input: Any, weight: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, ...]:
    """Return (input - mean) / deviation, 1 / deviation, mean and variance.

    Beside a weight in halves, PyTorch keeps the mean and the deviation of halves in halves.
    """
    x = widened(input)
    center = x.mean(dims, True)
    deviation = x - center
    variance = (deviation * deviation).mean(dims, True)
    scale = rsqrt(variance + eps)
    if x is not input and (weight is None or weight.dtype is input.dtype):
        scale = widened(convert(scale, input.dtype))
        deviation = x - widened(convert(center, input.dtype))
    return deviation * scale, scale, center, variance


def _training_body(input: Any, weight: Any, bias: Any, dims: tuple, eps: float) -> tuple[Any, ...]:
    x, _, center, variance = _of_batch(input, weight, dims, eps)
    return convert(_affine(x, weight, bias), input.dtype), center, variance


def _training_types(input: Any, weight: Any, bias: Any, dims: tuple, eps: float) -> tuple:
    wide = float32 if input.dtype.itemsize == 2 else input.dtype
    sizes = tuple(1 if k in dims else n for k, n in enumerate(input.shape))
    of_channels = TensorType(wide, sizes, input.device)
    return TensorType(input.dtype, tuple(input.shape), input.device), of_channels, of_channels


def _training_input(grad: Any, input: Any, weight: Any, dims: tuple, eps: float) -> Any:
    x, scale, _, _ = _of_batch(input, weight, dims, eps)
    g = _affine(widened(grad), weight, None)
    return scale * (g - g.mean(dims, True) - x * (g * x).mean(dims, True))


# The statistics are outputs for the running ones to take in; no gradient goes through them.
batch_norm_record = composite(
    "batch_norm", ("input", "weight", "bias"), _training_body, infer=_training_types,
    outputs=("out", "center", "variance"), node_name="NativeBatchNormBackward0",
    input=_training_input,
    weight=lambda grad, input, weight, dims, eps: (
        widened(grad) * _of_batch(input, weight, dims, eps)[0]
    ),
    bias=lambda grad: widened(grad),
)  # fmt: skip


def _standardised(input: Any, mean: Any, variance: Any, eps: float) -> Any:
    return (widened(input) - widened(mean)) * rsqrt(widened(variance) + eps)


fixed_norm_record = composite(
    "batch_norm_of_statistics", ("input", "mean", "variance", "weight", "bias"),
    lambda input, mean, variance, weight, bias, eps: convert(
        _affine(_standardised(input, mean, variance, eps), weight, bias), input.dtype
    ),
    node_name="NativeBatchNormBackward0",
    input=lambda grad, variance, weight, eps: (
        _affine(widened(grad), weight, None) * rsqrt(widened(variance) + eps)
    ),
    weight=lambda grad, input, mean, variance, eps: (
        widened(grad) * _standardised(input, mean, variance, eps)
    ),
    bias=lambda grad: widened(grad),
)  # fmt: skip


# -- checks ----------------------------------------------------------------------------------------
def check_channel_types(input: Any, *parameters: Any) -> None:
    """Check that parameters have the input's dtype, or float32 beside a half; else RuntimeError."""
    given = [x.dtype for x in parameters if x is not None]
    if not given or all(d is input.dtype for d in given):
        return
    mixes = input.dtype.itemsize == 2
    if given[0] is not input.dtype and not (mixes and given[0] is float32):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    if mixes:
        if any(d is not float32 for d in given):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        return
    found = next(d for d in given if d is not input.dtype)
    wanted = SCALAR_NAMES[input.dtype.name]
    raise RuntimeError(f"expected scalar type {wanted} but found {SCALAR_NAMES[found.name]}")


def _check_both(running_mean: Any, running_var: Any) -> None:
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def _check_vectors(vectors: tuple[Any, ...], channels: Any, count: Any) -> None:
    """Check that running statistics, weight and bias have C elements.

    Errors tell sizes as if the vectors were repeated to `count`.
    """
    for name, x in zip(("running_mean", "running_var", "weight", "bias"), vectors):
        if x is None:
            continue
        if len(x.shape) != 1:
            raise RuntimeError(
                f"TensorAccessor expected 1 dims but tensor has {len(x.shape)}"
            )
        shapes.same(
            x.shape[0], channels,
            f"{name} should contain {shapes.hint(count)} elements not "
            f"{shapes.hint(count) // max(shapes.hint(channels), 1) * shapes.hint(x.shape[0])}",
        )  # fmt: skip


def _size_text(input: Any) -> str:
    return f"torch.Size({shapes.shape_text(tuple(input.shape))})"


def _check_training(input: Any, eps: float) -> None:
    count = shapes.numel(n for k, n in enumerate(input.shape) if k != 1)
    if count == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{_size_text(input)}"
        )
    if eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")


# -- what users call -------------------------------------------------------------------------------
def _per_channel(x: Any, like: Any) -> Any:
    """Reshape a vector of channels so that it broadcasts along the other dimensions of `like`."""
    return None if x is None else x.reshape((-1, *(1,) * (len(like.shape) - 2)))


def _check_constant(mean: Any, variance: Any) -> None:
    """Refuse running statistics that require a gradient: nothing computes one."""
    for name, x in (("running_mean", mean), ("running_var", variance)):
        if x.requires_grad:
            raise RuntimeError(
                "The function 'native_batch_norm' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )


def _take_in(running: tuple[Any, Any], of_batch: tuple[Any, Any], momentum: Any) -> None:
    """Move running statistics towards those of a batch."""
    moved = [new * momentum + old * (1 - momentum) for old, new in zip(running, of_batch)]
    _check_constant(*moved)
    for old, new in zip(running, moved):
        old._assign(new)


def _normalised(input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any,
                dims: tuple, momentum: Any, eps: float) -> Any:  # fmt: skip
    """Normalise `input` by its own statistics over `dims`; move the running ones towards their
    means over the batch."""
    out, center, variance = apply(
        batch_norm_record, (input, _per_channel(weight, input), _per_channel(bias, input)),
        {"dims": dims, "eps": eps},
    )  # fmt: skip
    count = shapes.numel(input.shape[d] for d in dims)
    if running_mean is not None and count > 1:
        others = (0, *range(2, len(input.shape)))
        unbiased = variance.detach() * count / (count - 1)
        of_batch = center.detach().mean(others), unbiased.mean(others)
        _take_in((running_mean, running_var), of_batch, momentum)
    return out


def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = None,
               bias: Any = None, training: bool = False, momentum: Any = 0.1,
               eps: float = 1e-5) -> Any:  # fmt: skip
    """Normalise each channel of (N, C, ...): (x - mean) / sqrt(variance + eps) * weight + bias.

    training  use mean and variance of the batch, and move `running_mean` and `running_var`, where
              given, in place towards them by `momentum`; else use the running ones

    The running variance takes in the variance that is divided by n - 1. Vectors have C elements, of
    the input's dtype (or float32 beside halves).

    >>> import tracejit
    >>> mean, variance = tracejit.zeros(1), tracejit.ones(1)
    >>> x = tracejit.tensor([[1.0], [3.0]])
    >>> tracejit.nn.functional.batch_norm(x, mean, variance, training=True, momentum=0.5)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, variance
    (tensor([1.]), tensor([1.5000]))

    ValueError for one value per channel in training and for one running statistic without the
    other; RuntimeError for vectors of other sizes or dtypes; NotImplementedError for integers.
    """
    eps = float(eps)
    if training:
        _check_both(running_mean, running_var)
        _check_training(input, eps)
    for x, name in ((running_mean, "running_mean"), (running_var, "running_var")):
        if x is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    channels = input.shape[1] if len(input.shape) > 1 else 0
    vectors = (running_mean, running_var, weight, bias)
    _check_vectors(vectors, channels, channels)
    must_float("batch_norm", input.dtype)
    check_channel_types(input, weight, bias, running_mean, running_var)
    dims = (0, *range(2, len(input.shape)))
    if training:
        return _normalised(input, running_mean, running_var, weight, bias, dims, momentum, eps)
    return _by_running(input, vectors, eps)


def _by_running(input: Any, vectors: tuple[Any, ...], eps: float) -> Any:
    of_channels = [_per_channel(x, input) for x in vectors]
    _check_constant(*of_channels[:2])
    return apply(fixed_norm_record, (input, *of_channels), {"eps": eps})


def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None,
                  weight: Any = None, bias: Any = None, use_input_stats: bool = True,
                  momentum: Any = 0.1, eps: float = 1e-5) -> Any:  # fmt: skip
    """Apply `batch_norm` with the statistics of each channel of each element of a batch (N, C,
    ...).

    use_input_stats  True: move the running statistics, where given, by `momentum` towards the mean
                     over the batch; False: normalise by the running ones

    >>> import tracejit
    >>> x = tracejit.tensor([[[1.0, 3.0]], [[4.0, 8.0]]])
    >>> tracejit.nn.functional.instance_norm(x, eps=0.0001).round().tolist()
    [[[-1.0, 1.0]], [[-1.0, 1.0]]]

    ValueError for one element per channel and for one running statistic without the other;
    RuntimeError for vectors of other sizes or dtypes; NotImplementedError for integers.
    """
    _check_both(running_mean, running_var)
    eps = float(eps)
    dims = tuple(range(2, len(input.shape)))
    if use_input_stats:
        if shapes.numel(input.shape[d] for d in dims) == 1:
            raise ValueError(
                "Expected more than 1 spatial element when training, got input size "
                f"{_size_text(input)}"
            )
    elif running_mean is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    vectors = (running_mean, running_var, weight, bias)
    _check_vectors(vectors, input.shape[1], input.shape[0] * input.shape[1])
    must_float("batch_norm", input.dtype)
    check_channel_types(input, weight, bias, running_mean, running_var)
    if use_input_stats:
        return _normalised(input, running_mean, running_var, weight, bias, dims, momentum, eps)
    return _by_running(input, vectors, eps)
