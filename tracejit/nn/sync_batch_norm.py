"""Batch normalisation over the batches of all processes.

In: this process's part of a batch, (N, C, *), and a group. Out: the normalised part. Called by
`SyncBatchNorm` in training.

Deviations are summed from the common mean, in a second exchange: sums of squares would lose digits.
"""

from __future__ import annotations

from typing import Any

from tracejit.autograd.grad_mode import no_grad
from tracejit.core.ops.joining import cat
from tracejit.distributed.buffers import reduced_in
from tracejit.distributed.nn.functional import all_reduce


def batch_norm_over(
    group: Any, input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any,
    momentum: Any, eps: float,
) -> Any:  # fmt: skip
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, with the mean and the variance of
    all processes' elements of a channel.

    running_mean, running_var  are written, if they are there

    Raises ValueError if a channel has one element in all processes together.
    """
    x = input.to(reduced_in(input.dtype))
    channels = x.shape[1]
    over = [d for d in range(x.dim()) if d != 1]
    shape = [1, channels, *[1] * (x.dim() - 2)]
    own = x.numel() // channels
    sums = all_reduce(cat([x.sum(over), x.new_full((1,), own)]), group=group)
    total = sums[channels]
    if own <= 1 and float(total) <= 1:  # with more of its own a process need not look
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"{tuple(input.shape)}")
    mean = sums[:channels] / total
    centred = x - mean.view(shape)
    squares = all_reduce(centred.square().sum(over), group=group)
    if running_mean is not None:
        _follow(running_mean, mean, momentum)
    if running_var is not None:
        _follow(running_var, squares / (total - 1), momentum)
    scale = (squares / total + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    result = centred * scale.view(shape)
    if bias is not None:
        result = result + bias.view(shape)
    return result.to(input.dtype)


@no_grad()
def _follow(running: Any, now: Any, momentum: Any) -> None:
    """Move a running statistic towards that of this batch."""
    running.copy_((1 - momentum) * running + momentum * now.to(running.dtype))
