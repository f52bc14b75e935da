"""Generators: sources of random numbers, and the provider of their state.

In: seeds. Out: a state, int64 (seed, draws made), for the records in `random.py`. A program reads
and advances the same memory (`Generator.array`) that eager draws do, so both go on where the other
stopped. Code that reads or sets the state by hand tells the observer first: a recording then makes
the draws it has put off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.memory import forks
from tracejit.core.memory.devices import as_device
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import TensorType, uint8

_SEED = 67280421310721  # PyTorch's default
MASK = (1 << 64) - 1
STATE_BYTES = 16


def _bytes_of_state(xp: Any, seed: int, drawn: int) -> np.ndarray:
    return np.array([seed, drawn], np.int64).view(np.uint8)


_state = Op("random_state", "creation", (), eager=_bytes_of_state,
            infer=lambda seed, drawn: TensorType(uint8, (STATE_BYTES,), as_device("cpu")))

Observer = Callable[[str], None]
_observe: Observer = lambda event: None  # noqa: E731


def install_observer(observer: Observer) -> None:
    """Install the function to tell before a generator is made, read or set; the eager room calls
    this."""
    global _observe
    _observe = observer


class Generator:
    """Source of random numbers: a seed, and the number of draws made since it was set.

    >>> g = Generator().manual_seed(3)
    >>> g.initial_seed(), g.offset
    (3, 0)
    """

    def __init__(self, device: Any = "cpu"):
        _observe("makes a generator")
        self.device = as_device(device)
        self.array = np.array([_SEED, 0], np.int64)  # programs read and advance this memory
        self._lock = forks.rlock()

    @property
    def offset(self) -> int:
        """Number of draws made since the seed was set."""
        _observe("reads the offset of a generator")
        return int(self.array[1])

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed` (64 bits, negative ones wrap).

        RuntimeError for what is no integer, ValueError for one that is wider.
        """
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        number = seed.__index__()
        if not -(1 << 63) <= number <= MASK:
            raise ValueError("Overflow when unpacking long long")
        _observe("seeds a generator")
        self._go_on_from(np.array([number & MASK, 0], np.uint64).view(np.int64))
        return self

    def initial_seed(self) -> int:
        """Return the seed in use."""
        _observe("reads the seed of a generator")
        return int(self.array[0]) & MASK

    def seed(self) -> int:
        """Start again from a seed of the system's entropy, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.initial_seed()

    def take(self, draws: int = 1) -> np.ndarray:
        """Advance by `draws`. Return a copy of the state before."""
        with self._lock:
            now = self.array.copy()
            self.array[1] += draws
        return now

    def give_back(self, state: np.ndarray, draws: int) -> None:
        """Undo `take(draws)`, which gave `state`, unless others drew since."""
        with self._lock:
            if (self.array == (state[0], state[1] + draws)).all():
                self.array[:] = state

    def get_state(self) -> Any:
        """Return the 16 bytes of seed and offset, a uint8 tensor."""
        return apply(_state, (), dict(zip(("seed", "drawn"), self._words())))

    def set_state(self, new_state: Any) -> Generator:
        """Go on from a state that `get_state` returned.

        TypeError for what is no uint8 tensor, RuntimeError for one of another size.
        """
        dtype = getattr(new_state, "dtype", None)
        if dtype is None or not hasattr(new_state, "tolist"):
            raise TypeError(f"expected a ByteTensor, but got {type(new_state).__name__}")
        if dtype is not uint8:
            raise TypeError("RNG state must be a ByteTensor")
        _observe("sets the state of a generator")
        values = np.array(new_state.tolist(), np.uint8).reshape(-1)
        if values.size != STATE_BYTES:
            raise RuntimeError(f"Expected a generator state of size {STATE_BYTES} but found the "
                               f"input RNG state size to be {values.size}")
        self._go_on_from(values.view(np.int64))
        return self

    def clone_state(self) -> Generator:
        """Return another generator that goes on from where this one is.

        >>> g = Generator().manual_seed(3)
        >>> g.clone_state().initial_seed()
        3
        """
        return _restored(str(self.device), self._words())

    def _words(self) -> list[int]:
        _observe("reads the state of a generator")
        return [int(word) for word in self.array]

    def _go_on_from(self, words: np.ndarray) -> None:
        with self._lock:
            self.array[:] = words

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self._words())


def _restored(device: str, state: list[int]) -> Generator:
    generator = Generator(device)
    generator.array[:] = state
    return generator


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it.

    >>> import tracejit
    >>> tracejit.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the system's entropy; return the seed, an int.

    >>> import tracejit
    >>> isinstance(tracejit.seed(), int)
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the default generator's seed, an int.

    >>> import tracejit
    >>> _ = tracejit.manual_seed(7)
    >>> tracejit.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the default generator's state, a uint8 tensor (16,).

    >>> import tracejit
    >>> tracejit.get_rng_state().shape
    tracejit.Size([16])
    """
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Make the default generator go on from `new_state`, a uint8 tensor (16,).

    >>> import tracejit
    >>> state = tracejit.get_rng_state()
    >>> x = tracejit.rand(2)
    >>> tracejit.set_rng_state(state)
    >>> tracejit.equal(tracejit.rand(2), x)
    True
    """
    default_generator.set_state(new_state)


Provider = Callable[[Generator], tuple[Any, int]]


def _eager_state(generator: Generator) -> tuple[Any, int]:
    return generator.take(), 0


_provider: Provider = _eager_state


def install_state_provider(provider: Provider) -> None:
    """Install the function that gives (state operand, draws before this one); the eager room calls
    this."""
    global _provider
    _provider = provider


def state_of(generator: Generator | None) -> tuple[Any, int]:
    """Return the state operand of the next draw, and the number of draws before it in this program.

    TypeError for what is no generator.
    """
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise TypeError(f"expected a Generator, but got {type(generator).__name__}")
    return _provider(generator)
