"""Communication hook of local SGD: after some iterations only neighbours average gradients.

In: a state and a bucket. Out: a future of the averaged bucket. Used with a model averager, which
averages the parameters of all processes now and then.

Source: Lin et al., Don't Use Large Mini-Batches, Use Local SGD, 2020.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from tracejit.distributed.buckets import GradBucket
from tracejit.distributed.subgroups import new_subgroups
from tracejit.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """Groups and counts of `post_localSGD_hook`.

    process_group         averages gradients in the first iterations; the default one if None
    subgroup              averages them later; the processes of each host if None
    start_localSGD_iter   iterations until then
    post_local_gradient_allreduce  False: nobody averages gradients later
    """

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:  # fmt: skip
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:
    """Average a bucket over all processes at first, over those of the subgroup later."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default_hooks.allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return debugging_hooks.noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return default_hooks.allreduce_hook(state.subgroup, bucket)
