"""Layers that normalise each channel, over a batch or each of its elements, and may keep running
statistics.

In: tensors (N, C, ...); instance norms take (C, ...) too. Out: tensors of the same shape.
"""

from __future__ import annotations

import warnings
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class _NormBase(Module):
    """Parameters and running statistics, one element for each channel."""

    _version = 2  # since then batches are counted

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        kind = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(tracejit.empty(num_features, **kind)) if wanted else None
            self.register_parameter(name, made)
        kept = track_running_stats
        self.register_buffer("running_mean", tracejit.zeros(num_features, **kind) if kept else None)
        self.register_buffer("running_var", tracejit.ones(num_features, **kind) if kept else None)
        count = tracejit.tensor(0, dtype=tracejit.int64, device=device) if kept else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the mean to zero, the variance to one, and the number of batches to zero."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weight to one, bias to zero, running statistics as at the start."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any],
        strict: bool, missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        count, key = self._buffers["num_batches_tracked"], f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and count is not None:
            # files from before batches were counted
            state_dict.setdefault(key, count.clone())
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def _check_input_dim(self, input: Any) -> None:
        raise NotImplementedError

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        keeps = self.training and self.track_running_stats
        if keeps and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / self.num_batches_tracked.to(tracejit.float64)
        mean, variance = self.running_mean, self.running_var
        # without running statistics to keep, the function may not write any
        if self.training and not keeps:
            mean = variance = None
        by_batch = self.training or self.running_mean is None and self.running_var is None
        return self._normalize(input, mean, variance, by_batch, momentum)

    def _normalize(
        self, input: Any, mean: Any, variance: Any, by_batch: bool, momentum: Any
    ) -> Any:
        return F.batch_norm(
            input, mean, variance, self.weight, self.bias, by_batch, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Normalisation of each channel over the batch: (x - mean) / sqrt(variance + eps) * weight +
    bias. In training mean and variance are those of the batch, in evaluation the running ones.

    num_features      number C of channels
    eps               number added to the variance; default 1e-5
    momentum          share of the batch in new running statistics, default 0.1; None: means over
                      all batches
    affine            False: no weight and bias; default True
    track_running_stats  False: by the batch in evaluation too; default True
    bias              False: no bias is added; keyword only, default True

    Parameters `weight` and `bias` (C,); buffers `running_mean` and `running_var` (C,),
    `num_batches_tracked` (). Input (N, C) or (N, C, L), floating; the output has the same shape.
    Raises ValueError for other dimensions, and in training for one value per channel. The source is
    Ioffe and Szegedy, "Batch normalization" (2015).

    >>> import tracejit
    >>> layer = tracejit.nn.BatchNorm1d(2)
    >>> layer(tracejit.tensor([[0.0, 0.0], [2.0, 4.0]])).round().tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> layer.running_mean
    tensor([0.1000, 0.2000])
    """

    def _check_input_dim(self, input: Any) -> None:
        _check_dimensions(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalisation of each channel of images over batch and places: `BatchNorm1d` of (N, C, H, W).

    num_features      number C of channels
    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`

    Parameters and buffers are those of `BatchNorm1d`. Input (N, C, H, W), floating; the output has
    the same shape. Raises ValueError for other dimensions, and in training for one value per
    channel.

    >>> import tracejit
    >>> tracejit.nn.BatchNorm2d(3)(tracejit.randn(2, 3, 4, 5)).shape
    tracejit.Size([2, 3, 4, 5])
    """

    def _check_input_dim(self, input: Any) -> None:
        _check_dimensions(input, 4)


class BatchNorm3d(_BatchNorm):
    """Normalisation of each channel of volumes over batch and places: `BatchNorm1d` of (N, C, D, H,
    W).

    num_features      number C of channels
    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`

    Parameters and buffers are those of `BatchNorm1d`. Input (N, C, D, H, W), floating; the output
    has the same shape. Raises ValueError for other dimensions, and in training for one value per
    channel.

    >>> import tracejit
    >>> tracejit.nn.BatchNorm3d(3)(tracejit.randn(2, 3, 4, 5, 6)).shape
    tracejit.Size([2, 3, 4, 5, 6])
    """

    def _check_input_dim(self, input: Any) -> None:
        _check_dimensions(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, *) whose statistics in training are those of all processes'
    batches together.

    num_features      number C of channels
    eps, momentum, affine, track_running_stats, bias  as in `BatchNorm1d`
    process_group     the processes; the default group if None. Without any, this is `BatchNorm1d`

    Parameters and buffers are those of `BatchNorm1d`. Input (N, C, *), floating; the output has the
    same shape. Raises ValueError for inputs of one dimension. `convert_sync_batchnorm` makes such
    layers of the other kinds in a model.

    >>> import tracejit
    >>> tracejit.nn.SyncBatchNorm(3)(tracejit.randn(2, 3)).shape
    tracejit.Size([2, 3])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the module with each batch norm in it replaced by this class, over the same
        tensors."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features, module.eps, module.momentum, False, False, process_group
            )
            made.affine, made.track_running_stats = module.affine, module.track_running_stats
            # the same tensors: optimizers that hold them go on
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made

    def _normalize(
        self, input: Any, mean: Any, variance: Any, by_batch: bool, momentum: Any
    ) -> Any:
        group = self._group() if by_batch else None
        if group is None:
            return super()._normalize(input, mean, variance, by_batch, momentum)
        from tracejit.nn.sync_batch_norm import batch_norm_over

        return batch_norm_over(
            group, input, mean, variance, self.weight, self.bias, momentum, self.eps
        )

    def _group(self) -> Any:
        """Return the group if it has several processes, else None."""
        if not tracejit.distributed.is_initialized():
            return None
        group = self.process_group or tracejit.distributed.group.WORLD
        return group if group.size() > 1 else None

    def _check_input_dim(self, input: Any) -> None:
        if len(input.shape) < 2:
            raise ValueError(f"expected at least 2D input (got {len(input.shape)}D input)")


class _InstanceNorm(_NormBase):
    _dimensions: int  # of an input without a batch

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Any) -> Any:
        _check_dimensions(input, self._dimensions, self._dimensions + 1)
        self._check_channels(input)
        alone = len(input.shape) == self._dimensions
        out = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if alone else out

    def _check_channels(self, input: Any) -> None:
        dim = len(input.shape) - self._dimensions
        found = input.shape[dim]
        if found == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), but got: {found}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=3,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalisation of each channel of each sample: (x - mean) / sqrt(variance + eps), over its
    places.

    num_features      number C of channels
    eps               number added to the variance; default 1e-5
    momentum          share of the batch in new running statistics; default 0.1
    affine            True: times `weight`, plus `bias`, both (C,); default False
    track_running_stats  True: evaluation goes by running statistics; default False

    Input (N, C, L) or (C, L), floating; the output has the same shape. Raises ValueError for other
    dimensions, and for one element per channel unless running statistics count. The source is
    Ulyanov, Vedaldi and Lempitsky, "Instance normalization" (2016).

    >>> import tracejit
    >>> tracejit.nn.InstanceNorm1d(1)(tracejit.tensor([[[0.0, 4.0]]])).round().tolist()
    [[[-1.0, 1.0]]]
    """

    _dimensions = 2


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each image over its places: `InstanceNorm1d` of images.

    num_features      number C of channels
    eps, momentum, affine, track_running_stats  as in `InstanceNorm1d`

    Input (N, C, H, W) or (C, H, W), floating; the output has the same shape. Raises ValueError for
    other dimensions, and for one element per channel unless running statistics count.

    >>> import tracejit
    >>> tracejit.nn.InstanceNorm2d(3)(tracejit.randn(2, 3, 4, 5)).shape
    tracejit.Size([2, 3, 4, 5])
    """

    _dimensions = 3


class InstanceNorm3d(_InstanceNorm):
    """Normalisation of each channel of each volume over its places: `InstanceNorm1d` of volumes.

    num_features      number C of channels
    eps, momentum, affine, track_running_stats  as in `InstanceNorm1d`

    Input (N, C, D, H, W) or (C, D, H, W), floating; the output has the same shape. Raises
    ValueError for other dimensions, and for one element per channel unless running statistics
    count.

    >>> import tracejit
    >>> tracejit.nn.InstanceNorm3d(3)(tracejit.randn(3, 4, 5, 6)).shape
    tracejit.Size([3, 4, 5, 6])
    """

    _dimensions = 4


def _check_dimensions(input: Any, *allowed: int) -> None:
    if len(input.shape) not in allowed:
        wanted = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {wanted} input (got {len(input.shape)}D input)")
