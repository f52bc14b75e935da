"""Layers that multiply, and layers that only reshape.

In: tensors whose last dimension is `in_features`. Out: tensors whose last one is `out_features`.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class Linear(Module):
    """Affine map of the last dimension: input @ weight.T + bias.

    in_features    size of the last dimension of inputs
    out_features   size of the last dimension of outputs
    bias           False: no bias is added; default True
    device, dtype  of the parameters

    Parameters: `weight` (out_features, in_features) and `bias` (out_features,). Both start uniform
    in +-1 / sqrt(in_features). Input (*, in_features); output (*, out_features) of the same dtype.
    Raises RuntimeError where the last size or the dtype differs.

    >>> import tracejit
    >>> layer = tracejit.nn.Linear(3, 2)
    >>> layer(tracejit.ones(5, 3)).shape, layer.weight.shape
    (tracejit.Size([5, 2]), tracejit.Size([2, 3]))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        kind = {"device": device, "dtype": dtype}
        self.weight = Parameter(tracejit.empty((out_features, in_features), **kind))
        if bias:
            self.bias = Parameter(tracejit.empty(out_features, **kind))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly in +-1 / sqrt(in_features)."""
        # with this `a` the bound is 1 / sqrt(in_features)
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """Bilinear map of two inputs: y[k] = x1 @ weight[k] @ x2 + bias[k].

    in1_features, in2_features  sizes of the last dimensions of both inputs
    out_features      size of the last dimension of outputs
    bias              False: no bias is added; default True
    device, dtype     of the parameters

    Parameters: `weight` (out_features, in1_features, in2_features) and `bias` (out_features,). Both
    start uniform in +-1 / sqrt(in1_features). Inputs (*, in1_features) and (*, in2_features);
    output (*, out_features). Raises RuntimeError where sizes differ.

    >>> import tracejit
    >>> tracejit.nn.Bilinear(2, 3, 4)(tracejit.ones(5, 2), tracejit.ones(5, 3)).shape
    tracejit.Size([5, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        kind = {"device": device, "dtype": dtype}
        self.weight = Parameter(tracejit.empty((out_features, in1_features, in2_features), **kind))
        if bias:
            self.bias = Parameter(tracejit.empty(out_features, **kind))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly in +-1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """Layer that returns its argument, to stand where a model needs no layer.

    The constructor takes any arguments and ignores them. Input and output are the same tensor, of
    any shape and dtype. The layer holds no parameters.

    >>> import tracejit
    >>> x = tracejit.ones(2, 3)
    >>> tracejit.nn.Identity(54, unused=True)(x) is x
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Module):
    """Layer that joins the dimensions start_dim .. end_dim into one.

    start_dim  first dimension to join; default 1, so that batches stay apart
    end_dim    last dimension to join; default -1

    Input (*, d_start, ..., d_end, *); output (*, d_start * ... * d_end, *), a view where strides
    allow it. Raises IndexError for dimensions that the input lacks, RuntimeError where end_dim
    comes before start_dim.

    >>> import tracejit
    >>> tracejit.nn.Flatten()(tracejit.ones(4, 3, 5, 5)).shape
    tracejit.Size([4, 75])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Layer that splits one dimension into several: the inverse of `Flatten`.

    dim               dimension to split, an int
    unflattened_size  sizes of the new dimensions; one may be -1

    Input (*, d, *); output (*, *unflattened_size, *), a view. The constructor raises TypeError for
    sizes that are no ints; the call raises RuntimeError where their product is not d.

    >>> import tracejit
    >>> tracejit.nn.Unflatten(1, (2, 5))(tracejit.ones(3, 10)).shape
    tracejit.Size([3, 2, 5])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int) and isinstance(unflattened_size, (tuple, list)):
            for k, size in enumerate(unflattened_size):
                if not hasattr(size, "__index__"):
                    raise TypeError("unflattened_size must be tuple of ints, but found element of "
                                    f"type {type(size).__name__} at pos {k}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
