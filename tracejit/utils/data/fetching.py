"""Fetching: the samples of one batch out of a dataset, collated.

In: output of a sampler: an index, a list of them, or placeholders that only count. Out: a batch;
StopIteration where a stream has ended. Runs in the caller's process or in a worker's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tracejit.utils.data.dataset import samples_of


class MapFetcher:
    """Fetches samples by number."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any],
                 drop_last: bool) -> None:
        self.dataset, self.batched, self.collate = dataset, batched, collate

    def fetch(self, index: Any) -> Any:
        samples = samples_of(self.dataset, index) if self.batched else self.dataset[index]
        return self.collate(samples)


class StreamFetcher:
    """Fetches as many samples of a stream as there are indices."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any],
                 drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.batched, self.collate, self.drop_last = batched, collate, drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate(next(self.samples))
        samples = list(itertools.islice(self.samples, len(index)))
        self.ended = len(samples) < len(index)
        if not samples or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate(samples)
