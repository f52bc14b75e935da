"""DistributedSampler: the part of a dataset that one of several processes takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tracejit import distributed
from tracejit.core.ops.generators import Generator
from tracejit.core.ops.random import randperm
from tracejit.utils.data.sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Gives every `num_replicas`-th index from `rank` on, of an order that all processes agree on.

    shuffle    the order is a permutation drawn from seed + epoch; else the dataset's
    drop_last  leave out the indices that would make parts unequal; else the first come twice

    Raises ValueError for a rank outside 0 ... num_replicas - 1.

    >>> sampler = DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler), len(sampler)
    ([1, 3, 0], 3)
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = distributed.get_world_size()
        if rank is None:
            rank = distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval "
                             f"[0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        surplus = len(dataset) % num_replicas if drop_last else 0
        self.num_samples = math.ceil((len(dataset) - surplus) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(count, generator=generator).tolist()
        # More than once where there are more processes than samples.
        while order and len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle differently from now on; all processes must say the same."""
        self.epoch = epoch
