"""Datasets: give samples by number, or one after the other.

In: tensors, other datasets, the user's subclasses. Out: samples. The loader and users call
`dataset[i]`, `len(dataset)` and `iter(dataset)`; nothing here is about batches.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.generators import Generator, default_generator
from tracejit.core.ops.random import randperm

T_co = TypeVar("T_co", covariant=True)


class Samples(Protocol[T_co]):
    """Object that gives samples by number: a dataset, a list."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """Subclass it, with `__getitem__` and, for samplers, `__len__`.

    `__getitems__(indices)`, where there is one, gives a batch's samples at once.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> (Squares() + Squares())[7]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co], ABC):
    """Subclass it, with `__iter__`, where samples come as a stream.

    With worker processes each has a copy of the dataset; `get_worker_info` says which part it
    takes.

    >>> class Three(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Three() + Three())
    [0, 1, 2, 0, 1, 2]
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]: ...

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample `i` is `(tensor[i], ...)` of tensors whose first sizes agree.

    Raises AssertionError where they do not.

    >>> import tracejit
    >>> TensorDataset(tracejit.arange(3), tracejit.ones(3, 2))[1]
    (tensor(1), tensor([1., 1.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Sample `i` holds sample `i` of each dataset: a tuple, or a dict for those given by name.

    Raises ValueError for none, for both kinds, and for sizes that differ.

    >>> StackDataset(x=[1, 2], y=[4, 5])[1]
    {'x': 2, 'y': 5}
    """

    datasets: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via "
                             "``kwargs``) like input/output, but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = {len(d) for d in self._all()}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = lengths

    def _all(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, parts: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(dataset[index] for dataset in self._all())

    def __getitems__(self, indices: Sequence[Any]) -> list:
        columns = [samples_of(dataset, indices) for dataset in self._all()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError("Nested dataset's output size mismatch. Expected "
                                 f"{len(indices)}, got {len(column)}")
        return [self._sample(parts) for parts in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Dataset of the samples of several datasets, one after the other.

    Raises AssertionError for no dataset, or a stream.

    >>> import tracejit
    >>> tracejit.utils.data.ConcatDataset([[1, 2], [3]])[-1]
    3
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: Any) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]


class ChainDataset(IterableDataset):
    """Several streams, one after the other; AssertionError where one of them is none.

    >>> class Two(IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> list(ChainDataset([Two(), Two()]))
    ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[T_co]):
    """Dataset of the samples of another at the given indices.

    >>> import tracejit
    >>> tracejit.utils.data.Subset("abcd", [3, 1])[0]
    'd'
    """

    def __init__(self, dataset: Samples[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        # Some code asks a subset for a list of samples, if its dataset takes lists.
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: Sequence[int]) -> list:
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples_of(dataset: Any, indices: Sequence[Any]) -> list:
    """Return several samples, at once where the dataset can do that."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


def random_split(
    dataset: Samples[T_co],
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[T_co]]:
    """Subsets of the given lengths, or fractions, that share no sample, drawn at random.

    Fractions sum to 1; what rounding down leaves over goes to the first subsets, one sample each.
    Raises ValueError for lengths that do not sum to the dataset's, and for no fraction.

    >>> import tracejit
    >>> parts = random_split(range(10), [0.7, 0.3], tracejit.Generator().manual_seed(0))
    >>> [len(part) for part in parts], sorted(i for part in parts for i in part.indices)
    ([7, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    whole: Any = dataset
    total = sum(lengths)
    counts = list(lengths)
    # Lengths are taken for fractions if they sum to 1, [1] included: all of the dataset.
    if math.isclose(total, 1) and total <= 1:
        counts = _counts(lengths, len(whole))
    if sum(counts) != len(whole):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(len(whole), generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - n : end]) for n, end in zip(counts, ends)]


def _counts(fractions: Sequence[float], size: int) -> list[Any]:
    counts = []
    for k, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {k} is not between 0 and 1")
        counts.append(math.floor(size * fraction))
    # Samples that rounding down left over.
    for k in range(size - sum(counts)):
        counts[k % len(counts)] += 1
    for k, count in enumerate(counts):
        if count == 0:
            warnings.warn(f"Length of split at index {k} is 0. This might result in an empty "
                          "dataset.", stacklevel=3)
    return counts
