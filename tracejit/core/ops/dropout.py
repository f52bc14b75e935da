"""Dropout: zeros for random elements, or whole channels, in a training step.

In: a tensor, a probability. Out: the tensor with zeros, the rest scaled so that the mean stays.
Called by users, by layers and by attention. One draw of the default generator per call.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from tracejit.core.ops import shapes
from tracejit.core.ops.random import coin
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import COMPLEX, FLOATING, SCALAR_NAMES, TensorType


def _kept_array(xp: Any, input: Any, mask: Any, scale: float) -> Any:
    if input.dtype.itemsize == 2:
        return (input.astype(np.float32) * xp.where(mask, np.float32(scale), 0)).astype(input.dtype)
    return input * xp.where(mask, input.dtype.type(scale), input.dtype.type(0))


masked_scale: Op = Op(
    "masked_scale", "pointwise", ("input", "mask", "scale"), eager=_kept_array,
    infer=lambda input, mask, scale: TensorType(
        input.dtype, shapes.broadcast(input.shape, mask.shape), input.device),
    scalar="({input} * ({scale} if {mask} else {dtype}(0)))", node_name="NativeDropoutBackward0",
    rules={"input": lambda grad, mask, scale: masked_scale(grad, mask, scale)})


def _checked(input: Any, p: float, applies: bool) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if applies and p > 0 and input.dtype.category not in (FLOATING, COMPLEX):
        raise RuntimeError("result type Float can't be cast to the desired output type "
                           f"{SCALAR_NAMES[input.dtype.name]}")


def _masked(input: Any, shape: tuple, p: float) -> tuple[Any, Any]:
    """Return the input times a mask of `shape`, which broadcasts to it; and the mask."""
    keep = float(1 - p)  # a plain number for both: kernels draw with a constant
    mask = coin(shape, keep, input.device)
    return masked_scale(input, mask, 1 / keep if keep else 0.0), mask


def _dropped(input: Any, shape: tuple, p: float, inplace: bool) -> Any:
    result, _ = _masked(input, shape, p)
    return input._assign(result) if inplace else result


def with_mask(input: Any, p: float) -> tuple[Any, Any]:
    """Return `dropout` in training, and the mask of the elements that were kept.

    ValueError if `p` is not in [0, 1].
    """
    _checked(input, p, True)
    return _masked(input, tuple(input.shape), p)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero elements with probability `p`, scale the rest by 1 / (1 - p); identity in evaluation.

    >>> import tracejit
    >>> tracejit.nn.functional.dropout(tracejit.ones(2), 1.0).tolist()
    [0.0, 0.0]

    ValueError if `p` is not in [0, 1].
    """
    _checked(input, p, training)
    if not training or p == 0:
        return input
    return _dropped(input, tuple(input.shape), p, inplace)


def _channels(input: Any, batched: bool) -> tuple:
    """Return the shape of a mask with one element for each channel."""
    lead = 2 if batched else 1
    return (*tuple(input.shape)[:lead], *(1,) * (len(input.shape) - lead))


def _drop_channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Any:
    _checked(input, p, training)
    if not training or p == 0:
        return input
    return _dropped(input, _channels(input, batched), p, inplace)


def feature_dropout(input: Any, p: float, train: bool) -> Any:
    """Zero whole channels of (N, C, *) with probability `p`, scale the rest by 1 / (1 - p); same
    shape.

    train  False returns the input

    RuntimeError for fewer than 2 dimensions.

    >>> import tracejit
    >>> tracejit.feature_dropout(tracejit.ones(1, 2, 2), 1.0, True).sum().item()
    0.0
    """
    if len(input.shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _drop_channels(input, p, train, False, True)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, L) or (C, L) with probability `p`, scale the rest by 1 / (1 -
    p); same shape.

    RuntimeError for inputs of other dimensions, ValueError if `p` is not in [0, 1].

    >>> import tracejit
    >>> tracejit.nn.functional.dropout1d(tracejit.ones(1, 2, 2), 1.0).sum().item()
    0.0
    """
    _checked(input, p, training)
    if len(input.shape) not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a "
                           f"{len(input.shape)}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel "
                           "dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    return _drop_channels(input, p, training, inplace, len(input.shape) == 3)


def _warn_of_dimensions(name: str, ndim: int, spatial: int) -> None:
    if ndim not in (spatial + 1, spatial + 2):
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in "
            "an error in a future release. To retain the behavior and silence this warning, please "
            f"use dropout instead. Note that {name} exists to provide channel-wise dropout on "
            f"inputs with {spatial} spatial dimensions, a channel dimension, and an optional batch "
            f"dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).", stacklevel=3)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, H, W) with probability `p`, scale the rest by 1 / (1 - p); same
    shape. The first two dimensions decide.

    Warns of inputs of other dimensions. ValueError if `p` is not in [0, 1].

    >>> import tracejit
    >>> tracejit.nn.functional.dropout2d(tracejit.ones(1, 2, 2, 2), 1.0).sum().item()
    0.0
    """
    _warn_of_dimensions("dropout2d", len(input.shape), 2)
    if len(input.shape) == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.", stacklevel=2)
    return _drop_channels(input, p, training, inplace, True)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero whole channels of (N, C, D, H, W) with probability `p`; those of (C, D, H, W) too. The
    rest is scaled by 1 / (1 - p); same shape.

    ValueError if `p` is not in [0, 1].

    >>> import tracejit
    >>> tracejit.nn.functional.dropout3d(tracejit.ones(1, 2, 2, 2, 2), 1.0).sum().item()
    0.0
    """
    _warn_of_dimensions("dropout3d", len(input.shape), 3)
    return _drop_channels(input, p, training, inplace, len(input.shape) != 4)


_NEGATIVE = -1.7580993408473766  # what SELU tends to: -lambda alpha


def _alpha_dropped(input: Any, p: float, training: bool, inplace: bool, shape: tuple) -> Any:
    _checked(input, p, training)
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    kept = coin(shape, 1 - p, input.device).to(input.dtype)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _NEGATIVE**2))
    result = (input * kept + (1 - kept) * _NEGATIVE) * scale - scale * p * _NEGATIVE
    return input._assign(result) if inplace else result


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Drop elements so that mean 0 and variance 1 stay after SELU: dropped ones take SELU's limit.
    The result has the same shape and floating dtype.

    ValueError if `p` is not in [0, 1]. The source is Klambauer et al. (2017).

    >>> import tracejit
    >>> tracejit.nn.functional.alpha_dropout(tracejit.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """
    return _alpha_dropped(input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Any:
    """Apply `alpha_dropout` to whole channels of (N, C, *); the result has the same shape.

    ValueError if `p` is not in [0, 1].

    >>> import tracejit
    >>> tracejit.nn.functional.feature_alpha_dropout(tracejit.ones(1, 2, 2), 0.5).shape
    tracejit.Size([1, 2, 2])
    """
    return _alpha_dropped(input, p, training, inplace, _channels(input, True))
