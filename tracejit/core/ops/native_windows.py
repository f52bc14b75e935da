"""Convolutions and pooling as the package itself has them in PyTorch.

In: tensors and options by position. Out: tensors, or pairs of them. Called by users as
`tracejit.convolution` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import adaptive_pooling, pooling
from tracejit.core.ops import convolution as convolutions
from tracejit.core.ops.grid_sampling import affine_grid


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Call `conv1d` on (time, batch, channels); the weight is (kernel, in_channels, out_channels).

    >>> import tracejit
    >>> x, weight = tracejit.ones(5, 2, 3), tracejit.ones(2, 3, 4)
    >>> tracejit.conv_tbc(x, weight, tracejit.zeros(4)).shape
    tracejit.Size([4, 2, 4])
    """
    out = convolutions.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return out.permute(2, 0, 1)


def convolution(input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int],
                groups: int) -> Any:
    """Call `conv1d` to `conv3d` or their transposes, by the dimensions of the weight; shapes are
    theirs.

    >>> import tracejit
    >>> x, weight = tracejit.ones(1, 1, 3), tracejit.ones(1, 1, 2)
    >>> tracejit.convolution(x, weight, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    count = len(weight.shape) - 2
    if transposed:
        found = getattr(convolutions, f"conv_transpose{count}d")
        return found(input, weight, bias, stride, padding, output_padding, groups, dilation)
    found = getattr(convolutions, f"conv{count}d")
    return found(input, weight, bias, stride, padding, dilation, groups)


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """Return `nn.functional.adaptive_max_pool1d` of (N, C, L) and where the largest elements are:
    (N, C, output_size).

    >>> import tracejit
    >>> tracejit.adaptive_max_pool1d(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return adaptive_pooling.adaptive_max_pool1d(input, output_size, True)


def max_pool1d_with_indices(input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False) -> tuple[Any, Any]:
    """Return `nn.functional.max_pool1d` of (N, C, L) and where the largest elements are, in the
    same shape.

    >>> import tracejit
    >>> tracejit.max_pool1d_with_indices(tracejit.tensor([[1., 3., 2., 0.]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return pooling.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode,
                              return_indices=True)


def affine_grid_generator(theta: Any, size: Sequence[int], align_corners: bool) -> Any:
    """Call `nn.functional.affine_grid` of (N, 2, 3) and size (N, C, H, W): (N, H, W, 2).

    >>> import tracejit
    >>> tracejit.affine_grid_generator(tracejit.ones(1, 2, 3), [1, 1, 4, 5], False).shape
    tracejit.Size([1, 4, 5, 2])
    """
    return affine_grid(theta, size, align_corners)


NAMES = ("conv_tbc convolution adaptive_max_pool1d max_pool1d_with_indices "
         "affine_grid_generator").split()
FUNCTIONS = {name: globals()[name] for name in NAMES}
