"""PowerSGD: communication hooks that send gradients as products of two thin matrices.

In: a state and a bucket. Out: a future of the bucket's approximate mean. Passed to
`DistributedDataParallel.register_comm_hook`. What the approximation leaves out is added to the next
gradient.

Source: Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed
Optimization, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.construction import from_numpy
from tracejit.core.ops.creation import zeros
from tracejit.core.ops.joining import cat
from tracejit.distributed import groups
from tracejit.distributed.algorithms.ddp_comm_hooks import default_hooks
from tracejit.distributed.buckets import GradBucket
from tracejit.distributed.collectives import all_reduce
from tracejit.distributed.groups import ProcessGroup
from tracejit.futures import Future
from tracejit.linalg import qr

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """Settings of PowerSGD, and what it keeps between iterations.

    process_group              the default one if None
    matrix_approximation_rank  columns of the thin matrices
    start_powerSGD_iter        iterations that average gradients exactly before
    min_compression_rate       a matrix is sent as it is if this would not make it so much smaller
    use_error_feedback         add what was left out to the next gradient
    warm_start                 begin with the last iteration's matrices, not with random ones
    orthogonalization_epsilon  added to the norm of a column, which may be 0
    random_seed                of the first matrices; the same in all processes
    batch_tensors_with_same_shape  taken, and without effect

    Raises ValueError if it would start before buckets are in their final order.
    """

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000, min_compression_rate: float = 2,
        use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in vars(self).items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=groups.world())

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """Return how many times fewer elements travelled, how many there were, how many went."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def group(self) -> ProcessGroup:
        """Return the group over which buckets are averaged."""
        return groups.world() if self.process_group is None else self.process_group


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Average a bucket: each gradient is a matrix of its own, approximated where that pays."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer, before = bucket.buffer(), _with_error(state, bucket)
    matrices, rest = [], []
    for grad in bucket.gradients():
        matrix = grad.reshape(grad.shape[0], -1) if grad.dim() else grad.reshape(1, 1)
        rows, columns = matrix.shape
        thin = (rows + columns) * min(rows, columns, state.matrix_approximation_rank)
        compress = thin * state.min_compression_rate < matrix.numel()
        (matrices if compress else rest).append(matrix)
        state.total_numel_before_compression += matrix.numel()
        state.total_numel_after_compression += thin if compress else matrix.numel()
    exact = _summed(rest, state.group())
    approximated = _approximated(state, bucket.index(), matrices)
    for one, found in zip([*rest, *matrices], [*exact, *approximated]):
        one.copy_(found / state.group().size())
    return _ended(state, bucket, buffer, before)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Average a bucket as one square matrix: faster, and less exact."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    buffer, before = bucket.buffer(), _with_error(state, bucket)
    side = math.ceil(math.sqrt(buffer.numel()))
    square = cat([buffer, zeros(side * side - buffer.numel(), dtype=buffer.dtype)])
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    (found,) = _approximated(state, bucket.index(), [square.reshape(side, side)])
    buffer.copy_(found.reshape(-1)[: buffer.numel()] / state.group().size())
    return _ended(state, bucket, buffer, before)


def _with_error(state: PowerSGDState, bucket: GradBucket) -> Any:
    """Add what the last iteration left out to a bucket; return a copy of the sum, or None."""
    if not state.use_error_feedback:
        return None
    buffer = bucket.buffer()
    if bucket.index() in state.error_dict:
        buffer.add_(state.error_dict[bucket.index()])
    return buffer.clone()


def _ended(state: PowerSGDState, bucket: GradBucket, buffer: Any, before: Any) -> Future:
    """Keep what was left out, count, and return a future of the buffer."""
    if before is not None:
        state.error_dict[bucket.index()] = before - buffer
    state.maybe_increase_iter(bucket)
    found: Future = Future()
    found.set_result(buffer)
    return found


def _approximated(state: PowerSGDState, index: int, matrices: Sequence[Any]) -> list[Any]:
    """Return low-rank approximations of the sums of matrices over the processes."""
    group, epsilon = state.group(), state.orthogonalization_epsilon
    qs = state.q_memory_dict.get(index) if state.warm_start else None
    if qs is None:
        qs = [_random(state, matrix) for matrix in matrices]
    qs = [_orthogonal(q, epsilon) for q in qs]
    ps = _summed([matrix @ q for matrix, q in zip(matrices, qs)], group)
    ps = [_orthogonal(p, epsilon) for p in ps]
    qs = _summed([matrix.t() @ p for matrix, p in zip(matrices, ps)], group)
    if state.warm_start:
        state.q_memory_dict[index] = [q / group.size() for q in qs]
    return [p @ q.t() for p, q in zip(ps, qs)]


def _random(state: PowerSGDState, matrix: Any) -> Any:
    rows, columns = matrix.shape
    rank = min(rows, columns, state.matrix_approximation_rank)
    return from_numpy(state.rng.standard_normal((columns, rank))).to(matrix.dtype)


def _orthogonal(matrix: Any, epsilon: float) -> Any:
    """Return columns that span the same space and are orthogonal; those of zeros stay zeros."""
    if matrix.shape[1] > 2 and epsilon == 0:
        return qr(matrix)[0]
    columns: list[Any] = []
    for k in range(matrix.shape[1]):
        column = matrix[:, k]
        for one in columns:
            column = column - (one * column).sum() * one
        norm = column.norm() + epsilon
        columns.append(column / norm if float(norm) > 0 else column)
    return cat([column.unsqueeze(1) for column in columns], 1)


def _summed(tensors: Sequence[Any], group: ProcessGroup) -> list[Any]:
    """Return the sums of tensors over the processes, which travel in one piece."""
    if not tensors:
        return []
    whole = cat([one.reshape(-1) for one in tensors])
    all_reduce(whole, group=group)
    parts = whole.split([one.numel() for one in tensors])
    return [part.reshape(one.shape) for part, one in zip(parts, tensors)]
