"""Batch norms folded into the layer before them, for inference.

In: a layer and a batch norm, both in eval mode. Out: one layer that computes what both do.
"""

from __future__ import annotations

import copy
from typing import Any

import tracejit
from tracejit.nn.parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution (transpose: a transposed one) with a batch norm folded in.

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> conv, norm = nn.Conv2d(3, 2, 1).eval(), nn.BatchNorm2d(2).eval()
    >>> nn.utils.fuse_conv_bn_eval(conv, norm)
    Conv2d(3, 2, kernel_size=(1, 1), stride=(1, 1))

    Raises AssertionError for modules in training.
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight (O, I, *kernel) and bias (O,) of a convolution with a batch norm folded in.

    >>> import tracejit
    >>> one = tracejit.ones(2)
    >>> weight, bias = tracejit.nn.utils.fuse_conv_bn_weights(
    ...     tracejit.ones(2, 3, 1), None, one, one, 0.0, one, one)
    >>> weight.shape, bias.tolist()
    (tracejit.Size([2, 3, 1]), [0.0, 0.0])
    """
    bias = tracejit.zeros_like(bn_rm) if conv_b is None else conv_b
    scale = (bn_rv + bn_eps).rsqrt()
    if bn_w is not None:
        scale = bn_w * scale
    shape = [1] * conv_w.dim()
    # the dimension of the output channels
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = (bias - bn_rm) * scale
    if bn_b is not None:
        bias = bias + bn_b
    bias = bias.to((conv_w if conv_b is None else conv_b).dtype)
    trained = conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, trained)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer with a batch norm folded in, its outputs of the same shape.

    Raises AssertionError for modules in training, or another number of features.

    >>> import tracejit
    >>> linear, norm = tracejit.nn.Linear(3, 2).eval(), tracejit.nn.BatchNorm1d(2).eval()
    >>> tracejit.nn.utils.fuse_linear_bn_eval(linear, norm)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Return weight (out, in) and bias (out,) of a linear layer with a batch norm folded in.

    >>> import tracejit
    >>> one = tracejit.ones(2)
    >>> weight, bias = tracejit.nn.utils.fuse_linear_bn_weights(
    ...     tracejit.ones(2, 3), None, one, one, 0.0, one, one)
    >>> weight.shape, bias.tolist()
    (tracejit.Size([2, 3]), [0.0, 0.0])
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
