"""Functions one level below `nn.functional`, as PyTorch's package itself has them.

Their arguments are in another order, and they also return intermediate results. In: tensors and
options by position. Out: tensors, or tuples of them. Called by users as
`tracejit.native_layer_norm` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import activations, creation, hard_activations, normalization
from tracejit.core.ops import batch_norm as norms
from tracejit.core.ops import bilinear as _bilinear
from tracejit.core.ops import dropout as _dropout
from tracejit.core.ops import embedding as _rows
from tracejit.core.ops.composite import widened
from tracejit.core.ops.grid_sampling import grid_sample
from tracejit.core.ops.linalg_norms import matrix_norm, vector_norm
from tracejit.core.ops.operators import method
from tracejit.core.ops.pixel_shuffle import channel_shuffle
from tracejit.core.ops.pointwise_math import rsqrt
from tracejit.core.ops.softmax import log_softmax, softmax
from tracejit.core.ops.types import bool_


def native_layer_norm(input: Any, normalized_shape: Sequence[Any], weight: Any, bias: Any,
                      eps: float) -> tuple[Any, Any, Any]:
    """Return `layer_norm` (*, *normalized_shape), and its mean and 1 / deviation, which have no
    gradient.

    >>> import tracejit
    >>> tracejit.native_layer_norm(tracejit.tensor([1., 3.]), [2], None, None, 0.0)
    (tensor([-1.,  1.]), tensor([2.]), tensor([1.]))
    """
    out = normalization.layer_norm(input, normalized_shape, weight, bias, eps)
    dims = tuple(range(len(input.shape) - len(normalized_shape), len(input.shape)))
    return (out, *_statistics(input.detach(), weight, dims, eps, True))


def native_group_norm(input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: int,
                      eps: float) -> tuple[Any, Any, Any]:
    """Return `group_norm` (N, C, *), the means (N, group) and 1 / deviations that it divides by.

    >>> import tracejit
    >>> parts = tracejit.native_group_norm(tracejit.ones(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5)
    >>> [tuple(part.shape) for part in parts]
    [(2, 4, 3), (2, 2), (2, 2)]
    """
    out = normalization.group_norm(input, group, weight, bias, eps)
    grouped = input.reshape((N, group, C // group * HxW))
    return (out, *_statistics(grouped, weight, (2,), eps, False))


def native_batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                      training: bool, momentum: float, eps: float) -> tuple[Any, Any, Any]:
    """Return `batch_norm` (N, C, *), and in training the means (C,) and 1 / deviations that it
    divides by.

    Neither has a gradient; outside of training both are empty.

    >>> import tracejit
    >>> x = tracejit.tensor([[0.], [2.]])
    >>> tracejit.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-9)[0].flatten()
    tensor([-1.,  1.])
    """
    out = norms.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        nothing = input.new_zeros((0,))
        return out, nothing, nothing.clone()
    dims = (0, *range(2, len(input.shape)))
    return (out, *_statistics(input.detach(), weight, dims, eps, False))


def _statistics(input: Any, weight: Any, dims: tuple[int, ...], eps: float,
                keepdim: bool) -> tuple[Any, Any]:
    """Return means and 1 / deviations, computed in float32 at least.

    Those of halves are halves, unless the weights are not.
    """
    wide = widened(input)
    center = wide.mean(dims, True)
    variance = ((wide - center) * (wide - center)).mean(dims, keepdim)
    found = center if keepdim else wide.mean(dims), rsqrt(variance + eps)
    mixed = weight is not None and weight.dtype is not input.dtype
    return found if mixed else (found[0].to(input.dtype), found[1].to(input.dtype))


def native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Return `dropout`, and where elements were kept, bools of the same shape; `train=None` counts
    as True.

    >>> import tracejit
    >>> tracejit.native_dropout(tracejit.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if train is False or p == 0:
        return input.clone(), creation.full_of(input, tuple(input.shape), True, bool_)
    return _dropout.with_mask(input, p)


def batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    """Call `nn.functional.batch_norm` of (N, C, *) with arguments in another order; the shape stays
    the same.

    >>> import tracejit
    >>> x = tracejit.tensor([[0.], [2.]])
    >>> tracejit.batch_norm(x, None, None, None, None, True, 0.1, 1e-9, False).flatten()
    tensor([-1.,  1.])
    """
    return norms.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                  use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Any:
    """Call `nn.functional.instance_norm` of (N, C, *) with arguments in another order; the shape
    stays the same.

    >>> import tracejit
    >>> x = tracejit.tensor([[[0., 2.]]])
    >>> tracejit.instance_norm(x, None, None, None, None, True, 0.1, 0.0, False).flatten()
    tensor([-1.,  1.])
    """
    return norms.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats,
                               momentum, eps)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Any:
    """Call `nn.functional.group_norm` of (N, C, *); the shape stays the same.

    >>> import tracejit
    >>> tracejit.group_norm(tracejit.tensor([[0., 2.]]), 1, eps=0.0)
    tensor([[-1.,  1.]])
    """
    return normalization.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(input: Any, normalized_shape: Sequence[Any], weight: Any = None,
             eps: float | None = None) -> Any:
    """Call `nn.functional.rms_norm` of (*, *normalized_shape); the shape stays the same.

    >>> import tracejit
    >>> tracejit.rms_norm(tracejit.tensor([1., 7.]), [2])
    tensor([0.2000, 1.4000])
    """
    return normalization.rms_norm(input, normalized_shape, weight, eps)


def embedding(weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Any:
    """Call `nn.functional.embedding` with arguments in another order; `padding_idx` -1 is none.

    >>> import tracejit
    >>> tracejit.embedding(tracejit.eye(2), tracejit.tensor([1])).tolist()
    [[0.0, 1.0]]
    """
    padding = None if padding_idx == -1 else padding_idx
    return _rows.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq,
                           sparse=sparse)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Call `nn.functional.bilinear` of (*, n) and (*, m): (*, out).

    >>> import tracejit
    >>> tracejit.bilinear(tracejit.ones(5, 2), tracejit.ones(5, 3), tracejit.ones(4, 2, 3)).shape
    tracejit.Size([5, 4])
    """
    return _bilinear.bilinear(input1, input2, weight, bias)


def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Any:
    """Call `nn.functional.grid_sample` of (N, C, H, W) and (N, h, w, 2): (N, C, h, w). Numbers name
    the modes.

    >>> import tracejit
    >>> grid = tracejit.zeros(1, 1, 1, 2)
    >>> tracejit.grid_sampler(tracejit.ones(1, 1, 2, 2), grid, 0, 0, False).item()
    1.0
    """
    return grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode],
                       ("zeros", "border", "reflection")[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def native_channel_shuffle(input: Any, groups: int) -> Any:
    """Call `channel_shuffle` of (N, C, *); the shape stays the same.

    >>> import tracejit
    >>> tracejit.native_channel_shuffle(tracejit.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return channel_shuffle(input, groups)


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """Return norms over all dimensions but `dim`, which keeps its place; -1: over all of them, a
    0-dim tensor.

    >>> import tracejit
    >>> tracejit.norm_except_dim(tracejit.tensor([[3., 4.], [0., 1.]]), 2, 0)
    tensor([[5.],
            [1.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    others = tuple(k for k in range(len(v.shape)) if k != dim)
    return vector_norm(v, pow, others, True)


def frobenius_norm(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """Call `linalg.vector_norm` over the dimensions `dim`: their sizes go, or with `keepdim` become
    1.

    >>> import tracejit
    >>> tracejit.frobenius_norm(tracejit.tensor([[3., 4.]]), [0, 1])
    tensor(5.)
    """
    return vector_norm(input, 2, dim, keepdim)


def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """Sum the singular values of matrices (*, m, n): (*), or with `keepdim` (*, 1, 1).

    >>> import tracejit
    >>> tracejit.nuclear_norm(tracejit.tensor([[3., 0.], [0., 4.]]))
    tensor(7.)
    """
    return matrix_norm(input, "nuc", dim, keepdim)


@method()
def relu(input: Any) -> Any:
    """Return the larger of each element and 0, in the same shape and dtype. RuntimeError for bools.

    >>> import tracejit
    >>> tracejit.relu(tracejit.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return activations.relu(input)


def selu(input: Any) -> Any:
    """Call `nn.functional.selu`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.selu(tracejit.tensor([-1., 2.]))
    tensor([-1.1113,  2.1014])
    """
    return activations.selu(input)


def celu(input: Any, alpha: float = 1.0) -> Any:
    """Call `nn.functional.celu`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.celu(tracejit.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return hard_activations.celu(input, alpha)


def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
          training: bool = False) -> Any:
    """Call `nn.functional.rrelu`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.rrelu(tracejit.tensor([-1., 2.]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return hard_activations.rrelu(input, lower, upper, training)


def threshold(input: Any, threshold: float, value: float) -> Any:
    """Call `nn.functional.threshold`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.threshold(tracejit.tensor([0.2, 0.7]), 0.5, -1.0)
    tensor([-1.0000,  0.7000])
    """
    return hard_activations.threshold(input, threshold, value)


def dropout(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.dropout`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.dropout(tracejit.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return _dropout.dropout(input, p, train)


def alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.alpha_dropout`: the shape stays the same.

    >>> import tracejit
    >>> tracejit.alpha_dropout(tracejit.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return _dropout.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.feature_alpha_dropout` of (N, C, *): the shape stays the same.

    >>> import tracejit
    >>> tracejit.feature_alpha_dropout(tracejit.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    return _dropout.feature_alpha_dropout(input, p, train)


def dropout_(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.dropout` in place: the shape stays the same.

    >>> import tracejit
    >>> tracejit.dropout_(tracejit.ones(2), 1.0, True)
    tensor([0., 0.])
    """
    return _dropout.dropout(input, p, train, True)


def alpha_dropout_(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.alpha_dropout` in place: the shape stays the same.

    >>> import tracejit
    >>> tracejit.alpha_dropout_(tracejit.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return _dropout.alpha_dropout(input, p, train, True)


def feature_alpha_dropout_(input: Any, p: float, train: bool) -> Any:
    """Call `nn.functional.feature_alpha_dropout` in place of (N, C, *): the shape stays the same.

    >>> import tracejit
    >>> tracejit.feature_alpha_dropout_(tracejit.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    return _dropout.feature_alpha_dropout(input, p, train, True)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Return the direction of `v` with the lengths `g` along `dim`."""
    return v * (g / norm_except_dim(v, 2, dim))


def _softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """Call `softmax`."""
    return softmax(input, dim)


def _log_softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """Call `log_softmax`."""
    return log_softmax(input, dim)


NAMES = ("native_layer_norm native_group_norm native_batch_norm native_dropout batch_norm "
         "instance_norm group_norm rms_norm embedding bilinear grid_sampler grid_sampler_2d "
         "grid_sampler_3d frobenius_norm nuclear_norm relu selu celu rrelu threshold "
         "dropout alpha_dropout feature_alpha_dropout dropout_ alpha_dropout_ "
         "feature_alpha_dropout_ native_channel_shuffle norm_except_dim _weight_norm "
         "_softmax _log_softmax").split()
FUNCTIONS = {name: globals()[name] for name in NAMES}
