"""Samplers: set the order of samples, and how often each is taken.

In: a dataset's size, weights, a generator. Out: indices, or lists of them, as iterators. Random
orders depend on the generator alone: without one, a seed is drawn from the default generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tracejit.core.eager.construction import as_tensor
from tracejit.core.ops.generators import Generator
from tracejit.core.ops.random import randint, randperm
from tracejit.core.ops.sampling import multinomial
from tracejit.core.ops.types import float64, int64

T_co = TypeVar("T_co", covariant=True)
_DRAWN_TOGETHER = 32  # indices at once, as PyTorch draws them


def fresh_seed(generator: Generator | None = None) -> int:
    """Draw a seed from a generator (the default one where none is given)."""
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError("random_() received an invalid combination of arguments - got (generator="
                        f"{type(generator).__name__}, ), but expected a Generator")
    return int(randint(0, (1 << 63) - 1, (), generator=generator, dtype=int64).item())


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(Generic[T_co]):
    """Base class of samplers: subclass it, with `__iter__` and, for the loader's length, `__len__`.

    >>> import tracejit
    >>> class EverySecond(tracejit.utils.data.Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __iter__(self):
    ...         return iter(range(0, len(self.data), 2))
    >>> list(EverySecond("abcd"))
    [0, 2]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Sampler of the positions 0, 1, 2 ... of a dataset.

    >>> import tracejit
    >>> list(tracejit.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Gives indices in random order: each once per round, or drawn independently.

    replacement  draw independently
    num_samples  how many there are altogether; default: as many as samples

    Raises TypeError for a `replacement` that is no bool, ValueError for no positive number.

    >>> import tracejit
    >>> order = RandomSampler(range(4), generator=tracejit.Generator().manual_seed(0))
    >>> sorted(order)
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError("replacement should be a boolean value, but got replacement="
                            f"{replacement}")
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Number of indices in a pass; the dataset's size may change in between."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            # One number of the default generator for each pass, however long it is.
            generator = Generator().manual_seed(fresh_seed())
        drawn = self._drawn(len(self.data_source), generator)
        yield from itertools.islice(itertools.chain.from_iterable(drawn), self.num_samples)

    def _drawn(self, count: int, generator: Generator) -> Iterator[list[int]]:
        while True:
            if self.replacement:
                size = (_DRAWN_TOGETHER,)
                yield randint(0, count, size, dtype=int64, generator=generator).tolist()
            else:
                yield randperm(count, generator=generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Sampler of the given indices, in random order; `generator` draws it, None: the default one.

    >>> import tracejit
    >>> sorted(tracejit.utils.data.SubsetRandomSampler([4, 7]))
    [4, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for k in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[k]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to `weights`, which need not sum to 1.

    Raises ValueError for weights of more than one dimension and no positive `num_samples`;
    RuntimeError where there are fewer samples than are to be drawn without replacement.

    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError("replacement should be a boolean value, but got replacement="
                             f"{replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement,
                            generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of up to `batch_size` indices of another sampler.

    drop_last  leave out the last list where it is shorter
    Raises ValueError for no positive size and a `drop_last` that is no bool.

    >>> list(BatchSampler(range(5), 2, False)), len(BatchSampler(range(5), 2, True))
    ([[0, 1], [2, 3], [4]], 2)
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
