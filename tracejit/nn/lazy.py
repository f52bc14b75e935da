"""Modules that learn the sizes of their parameters from the first input.

In: the first call. Out: the ordinary layer, the same object, with parameters of that input's sizes.
`LazyModuleMixin` gives this to any Module with uninitialized parameters and a method
`initialize_parameters`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tracejit.nn.lazy_parameter import UninitializedParameter, is_lazy
from tracejit.nn.linear import Linear

__all__ = [
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyLinear", "LazyModuleMixin",
]  # fmt: skip


class LazyModuleMixin:
    """Gives parameters their shapes before the first call: `initialize_parameters` gets its
    arguments. The module then becomes an instance of `cls_to_become`, if that is set."""

    cls_to_become: type | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        me: Any = self
        self._initialize_hook = me.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize all uninitialized parameters and buffers; subclasses define it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Return True if a parameter or buffer of the module has no shape yet."""
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))


def _initialize(module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    """Initialize the module before its first forward."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {type(module).__name__} has not been fully initialized"
        )
    # only before the first call
    module._initialize_hook.remove()
    del module._initialize_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` whose `in_features` is the last size of the first input.

    out_features   size of the last dimension of outputs
    bias           False: no bias is added; default True
    device, dtype  of the parameters

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `Linear`. Input (*, in_features); output (*,
    out_features).

    >>> import tracejit
    >>> layer = tracejit.nn.LazyLinear(2)
    >>> layer(tracejit.ones(3, 5)).shape
    tracejit.Size([3, 2])
    >>> layer
    Linear(in_features=5, out_features=2, bias=True)
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        # without bias, which would be an ordinary parameter of no elements
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Reset as `Linear` does, once there is something to reset."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Give weight and bias their shapes and first values."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # loaded
            self.in_features = self.weight.shape[-1]


class _LazyConvXdMixin(LazyModuleMixin):
    """Convolution whose `in_channels` are those of the first input."""

    dimensions: int
    transposed: bool
    weight: Any
    bias: Any

    def _become_lazy(self, bias: bool, device: Any, dtype: Any, out_channels: int) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Reset as the layer it becomes, once there is something to reset."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Give weight and bias their shapes and first values."""
        me: Any = self
        if self.has_uninitialized_params():
            with no_grad():
                self.in_channels = self._channels_of(input)
                if self.in_channels % me.groups:
                    raise ValueError("in_channels must be divisible by groups")
                self.weight.materialize(me._weight_shape())
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()

    def _channels_of(self, input: Any) -> int:
        count = self.dimensions
        if input.dim() not in (count + 1, count + 2):
            raise RuntimeError(
                f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-count - 1]


class _LazyPlain(_LazyConvXdMixin):
    """Base class of lazy convolutions."""

    in_channels: int

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode
        )
        self._become_lazy(bias, device, dtype, out_channels)


class _LazyTransposed(_LazyConvXdMixin):
    """Base class of lazy transposed convolutions."""

    in_channels: int

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
        )  # fmt: skip
        self._become_lazy(bias, device, dtype, out_channels)


class LazyConv1d(_LazyPlain, Conv1d):
    """`Conv1d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `Conv1d` but `in_channels`, with the same defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `Conv1d`. Input (N, C, L) or (C, L); the output
    is that of `Conv1d`. The first call raises RuntimeError for other dimensions, ValueError where
    `groups` does not divide the channels.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConv1d(4, 3)
    >>> layer(tracejit.ones(5, 2, 8)).shape, layer.in_channels
    (tracejit.Size([5, 4, 6]), 2)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlain, Conv2d):
    """`Conv2d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `Conv2d` but `in_channels`, with the same defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `Conv2d`. Input (N, C, H, W) or (C, H, W); the
    output is that of `Conv2d`. The first call raises RuntimeError for other dimensions, ValueError
    where `groups` does not divide the channels.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConv2d(4, 3)
    >>> layer(tracejit.ones(5, 2, 8, 8)).shape, layer.in_channels
    (tracejit.Size([5, 4, 6, 6]), 2)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlain, Conv3d):
    """`Conv3d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `Conv3d` but `in_channels`, with the same defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `Conv3d`. Input (N, C, D, H, W) or (C, D, H, W);
    the output is that of `Conv3d`. The first call raises RuntimeError for other dimensions,
    ValueError where `groups` does not divide the channels.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConv3d(4, 3)
    >>> layer(tracejit.ones(5, 2, 4, 4, 4)).shape, layer.in_channels
    (tracejit.Size([5, 4, 2, 2, 2]), 2)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """`ConvTranspose1d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `ConvTranspose1d` but `in_channels`, with the same
                      defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `ConvTranspose1d`. Input (N, C, L) or (C, L); the
    output is that of `ConvTranspose1d`. The first call raises RuntimeError for other dimensions.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConvTranspose1d(4, 3)
    >>> layer(tracejit.ones(5, 2, 8)).shape, layer.in_channels
    (tracejit.Size([5, 4, 10]), 2)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """`ConvTranspose2d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `ConvTranspose2d` but `in_channels`, with the same
                      defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `ConvTranspose2d`. Input (N, C, H, W) or (C, H,
    W); the output is that of `ConvTranspose2d`. The first call raises RuntimeError for other
    dimensions.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConvTranspose2d(4, 3)
    >>> layer(tracejit.ones(5, 2, 8, 8)).shape, layer.in_channels
    (tracejit.Size([5, 4, 10, 10]), 2)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """`ConvTranspose3d` whose `in_channels` are those of the first input.

    out_channels, kernel_size, ...  arguments of `ConvTranspose3d` but `in_channels`, with the same
                      defaults

    Before the first call `weight` and `bias` are `UninitializedParameter`s. That call gives them
    their shapes, fills them and makes the layer a `ConvTranspose3d`. Input (N, C, D, H, W) or (C,
    D, H, W); the output is that of `ConvTranspose3d`. The first call raises RuntimeError for other
    dimensions.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyConvTranspose3d(4, 3)
    >>> layer(tracejit.ones(5, 2, 4, 4, 4)).shape, layer.in_channels
    (tracejit.Size([5, 4, 6, 6, 6]), 2)
    """

    cls_to_become = ConvTranspose3d
