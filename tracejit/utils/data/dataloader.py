"""Loader: gives a dataset in batches, in a sampler's order.

In: a dataset and how to go through it. Out: an iterable over batches, which the calling process
fetches, or worker processes do.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import warnings
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tracejit import cuda
from tracejit.core.eager.recording import active
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.generators import Generator
from tracejit.utils.data.collate import default_collate, default_convert
from tracejit.utils.data.dataset import IterableDataset, Samples
from tracejit.utils.data.fetching import MapFetcher, StreamFetcher
from tracejit.utils.data.parallel import ParallelIterator, Pool
from tracejit.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    fresh_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert"]

T_co = TypeVar("T_co", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Placeholders(Sampler):
    """Indices of a stream: they only count."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Loader of batches: each iteration is another pass over the dataset.

    batch_size          samples in a batch; None: single samples, not collated
    shuffle             another random order in each pass
    sampler             the order, instead of `shuffle`; `batch_sampler` gives lists of indices
    num_workers         processes that fetch; 0: the calling one does
    collate_fn          makes a batch of a list of samples; default: `default_collate`
    pin_memory, pin_memory_device   accepted; nothing is pinned
    drop_last           leave out a last batch that is shorter
    timeout             seconds to wait for a worker's batch; 0: for ever
    worker_init_fn      called with its number in each worker, after seeding
    multiprocessing_context   a start method's name, or a context
    generator           where shuffling and the workers' seeds come from
    prefetch_factor     batches asked of each worker in advance; default 2
    persistent_workers  keep the processes from one pass to the next
    in_order            False: batches come as workers finish them

    Errors of workers are raised here, with the text of their traceback. Raises ValueError for
    arguments that exclude each other, RuntimeError where a worker ends or takes longer than
    `timeout`. Captured functions that iterate over a loader are co-executed.

    >>> import tracejit
    >>> data = tracejit.utils.data.TensorDataset(tracejit.arange(5), tracejit.arange(5) * 2)
    >>> for x, y in DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([0, 2])
    tensor([2, 3]) tensor([4, 6])
    tensor([4]) tensor([8])
    """

    _pool: Pool | None = None
    _initialized = False

    def __init__(
        self,
        dataset: Samples[T_co] | Iterable[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Any = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._stream = isinstance(dataset, IterableDataset)
        if self._stream:
            for name, given, plain in (("shuffle", shuffle, shuffle in (None, False)),
                                       ("sampler", sampler, sampler is None),
                                       ("batch_sampler", batch_sampler, batch_sampler is None)):
                if not plain:
                    raise ValueError("DataLoader with IterableDataset: expected unspecified "
                                     f"{name} option, but got {name}={given}")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                                 "shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually "
                             "exclusive with drop_last")
        if sampler is None:
            sampler = self._order(shuffle, generator)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._reported_length: int | None = None
        self._initialized = True
        _warn_of_many(num_workers)

    def _order(self, shuffle: bool | None, generator: Generator | None) -> Sampler:
        if self._stream:
            return _Placeholders()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is "
                             "initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """Context that starts processes, or None."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._multiprocessing_context = _checked_context(context, self.num_workers)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def _fetcher_class(self) -> Any:
        return StreamFetcher if self._stream else MapFetcher

    def __iter__(self) -> Iterator[Any]:
        self._tell_recorder()
        if self.pin_memory and not cuda.is_available():
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then "
                          "device pinned memory won't be used.", stacklevel=2)
        if not self.num_workers:
            return _SerialIterator(self)
        _warn_of_many(self.num_workers)
        if not self.persistent_workers:
            return ParallelIterator(self, Pool(self))
        if self._pool is None or not self._pool.close.alive:
            self._pool = Pool(self)
        else:
            fresh_seed(self.generator)  # so that orders are those of fresh workers
        return ParallelIterator(self, self._pool)

    def __len__(self) -> int:
        """Return the batches of a pass. TypeError where the dataset, or sampler, has no length."""
        if not self._stream:
            return len(self._index_sampler)
        length = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def _count_fetched(self, fetched: int) -> None:
        if self._stream and self._reported_length is not None and fetched > len(self):
            text = (f"Length of IterableDataset {self.dataset} was reported to be "
                    f"{self._reported_length}(when accessing len(dataloader)), but {fetched} "
                    "samples have been fetched. ")
            if self.num_workers:
                text += ("For multiprocessing data-loading, this could be caused by not properly "
                         "configuring the IterableDataset replica at each worker. Please see "
                         "get_worker_info() for how to share the work.")
            warnings.warn(text, stacklevel=4)

    def _tell_recorder(self) -> None:
        if active.tracer is not None:
            active.tracer.break_graph(
                None, "the function iterates over a DataLoader",
                "pass batches to the captured function")


class _SerialIterator:
    """Pass in the calling process."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._indices = iter(loader._index_sampler)
        fresh_seed(loader.generator)  # as with workers, so that the order does not depend on them
        self._fetcher = loader._fetcher_class(loader.dataset, loader._auto_collation,
                                              loader.collate_fn, loader.drop_last)
        self._fetched = 0

    def __iter__(self) -> _SerialIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        self._loader._tell_recorder()
        batch = self._fetcher.fetch(next(self._indices))
        self._fetched += 1
        self._loader._count_fetched(self._fetched)
        return batch


class _BaseDataLoaderIter(ABC):  # noqa: B024
    """Base of both iterators of loaders, for `isinstance` and annotations."""


_SingleProcessDataLoaderIter = _BaseDataLoaderIter.register(_SerialIterator)
_MultiProcessingDataLoaderIter = _BaseDataLoaderIter.register(ParallelIterator)


def _check_workers(count: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
    if count < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable "
                         "multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if count == 0 and prefetch is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let "
                         "num_workers > 0 to enable multiprocessing, otherwise set "
                         "prefetch_factor to None.")
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and count == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _checked_context(context: Any, workers: int) -> Any:
    if context is None:
        return None
    if not workers:
        raise ValueError("multiprocessing_context can only be used with multi-process loading "
                         f"(num_workers > 0), but got num_workers={workers}")
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError("multiprocessing_context option should specify a valid start method "
                             f"in {methods!r}, but got multiprocessing_context={context!r}")
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError("multiprocessing_context option should be a valid context object or a "
                        "string specifying the start method, but got "
                        f"multiprocessing_context={context}")
    return context


def _warn_of_many(workers: int) -> None:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if cpus is not None and workers > cpus:
        warnings.warn(
            f"This DataLoader will create {workers} worker processes in total. Our suggested max "
            f"number of worker in current system is {cpus}, which is smaller than what this "
            "DataLoader is going to create. Please be aware that excessive worker creation might "
            "get DataLoader running slow or even freeze, lower the worker number to avoid "
            "potential slowness/freeze if necessary.", stacklevel=3)


_sealing.seal_all(globals())
