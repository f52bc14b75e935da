"""Batch and instance norms that learn the number of channels from the first input.

In: the first call. Out: the ordinary layer, the same object; `lazy.py` says how.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.ops.creation import zeros
from tracejit.core.ops.types import int64
from tracejit.nn.batch_norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from tracejit.nn.lazy import LazyModuleMixin
from tracejit.nn.lazy_parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class _LazyNormBase(LazyModuleMixin):
    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # without parameters and statistics, which would be ordinary ones of no elements
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        kind = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**kind)
        if affine and bias:
            self.bias = UninitializedParameter(**kind)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**kind)
            self.running_var = UninitializedBuffer(**kind)
            self.num_batches_tracked = zeros((), dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Reset as the layer it becomes, once there is something to reset."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Give parameters and statistics their sizes and first values."""
        if not self.has_uninitialized_params():
            return
        with no_grad():
            self.num_features = input.shape[1]
            for x in (*self._parameters.values(), *self._buffers.values()):
                if is_lazy(x):
                    x.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """`BatchNorm1d` whose `num_features` are the channels of the first input.

    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`, with the same defaults

    Before the first call `weight`, `bias` and the running statistics have no shape. That call makes
    them (C,) and the layer a `BatchNorm1d`. Input (N, C) or (N, C, L); the output has the same
    shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyBatchNorm1d()
    >>> layer(tracejit.randn(4, 3)).shape, layer.num_features
    (tracejit.Size([4, 3]), 3)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """`BatchNorm2d` whose `num_features` are the channels of the first input.

    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`, with the same defaults

    Before the first call `weight`, `bias` and the running statistics have no shape. That call makes
    them (C,) and the layer a `BatchNorm2d`. Input (N, C, H, W); the output has the same shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyBatchNorm2d()
    >>> layer(tracejit.randn(4, 3, 2, 2)).shape, layer.num_features
    (tracejit.Size([4, 3, 2, 2]), 3)
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """`BatchNorm3d` whose `num_features` are the channels of the first input.

    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`, with the same defaults

    Before the first call `weight`, `bias` and the running statistics have no shape. That call makes
    them (C,) and the layer a `BatchNorm3d`. Input (N, C, D, H, W); the output has the same shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyBatchNorm3d()
    >>> layer(tracejit.randn(4, 3, 2, 2, 2)).shape, layer.num_features
    (tracejit.Size([4, 3, 2, 2, 2]), 3)
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """`InstanceNorm1d` whose `num_features` are the channels of the first input.

    eps, momentum     as in `InstanceNorm1d`
    affine, track_running_stats  here True by default: weight, bias and running statistics

    Before the first call these have no shape. That call makes them (C,) and the layer an
    `InstanceNorm1d`. Input (N, C, L) or (C, L); the output has the same shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyInstanceNorm1d()
    >>> layer(tracejit.randn(4, 3, 2)).shape, layer.num_features
    (tracejit.Size([4, 3, 2]), 3)
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """`InstanceNorm2d` whose `num_features` are the channels of the first input.

    eps, momentum     as in `InstanceNorm1d`
    affine, track_running_stats  here True by default: weight, bias and running statistics

    Before the first call these have no shape. That call makes them (C,) and the layer an
    `InstanceNorm2d`. Input (N, C, H, W) or (C, H, W); the output has the same shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyInstanceNorm2d()
    >>> layer(tracejit.randn(4, 3, 2, 2)).shape, layer.num_features
    (tracejit.Size([4, 3, 2, 2]), 3)
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """`InstanceNorm3d` whose `num_features` are the channels of the first input.

    eps, momentum     as in `InstanceNorm1d`
    affine, track_running_stats  here True by default: weight, bias and running statistics

    Before the first call these have no shape. That call makes them (C,) and the layer an
    `InstanceNorm3d`. Input (N, C, D, H, W) or (C, D, H, W); the output has the same shape.

    >>> import tracejit
    >>> layer = tracejit.nn.LazyInstanceNorm3d()
    >>> layer(tracejit.randn(4, 3, 2, 2, 2)).shape, layer.num_features
    (tracejit.Size([4, 3, 2, 2, 2]), 3)
    """

    cls_to_become = InstanceNorm3d
