"""Generators: where random numbers come from, and who hands out their state.

In: seeds. Out: a state, int64 (seed, draws made), for the records in `random.py`. A program reads
and advances the same memory (`Generator.array`) that eager draws do, so both go on where the
other stopped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.memory.devices import as_device
from tracejit.ops.record import Op, apply
from tracejit.ops.types import TensorType, int64

_SEED = 67280421310721
MASK = (1 << 64) - 1

_state = Op("random_state", "random", ("state",), eager=lambda xp, state: state,
            infer=lambda state: TensorType(int64, (2,), as_device(None)))


class Generator:
    """A source of random numbers: a seed, and how many draws were made since it was set.

    >>> g = Generator().manual_seed(3)
    >>> g.initial_seed(), g.offset
    (3, 0)
    """

    def __init__(self, device: Any = "cpu"):
        self.device = as_device(device)
        self.array = np.array([_SEED, 0], np.int64)  # programs read and advance this memory
        self._lock = threading.Lock()

    @property
    def offset(self) -> int:
        """Draws made since the seed was set."""
        return int(self.array[1])

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed` (64 bits, negative ones wrap); RuntimeError if it is wider."""
        if not -(1 << 63) <= int(seed) <= MASK:
            raise RuntimeError("Overflow when unpacking long long")
        with self._lock:
            self.array[:] = np.array([int(seed) & MASK, 0], np.uint64).view(np.int64)
        return self

    def initial_seed(self) -> int:
        """The seed in use."""
        return int(self.array[0]) & MASK

    def seed(self) -> int:
        """Start again from a seed nobody can foresee, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self.initial_seed()

    def take(self, draws: int = 1) -> np.ndarray:
        """The state now, as an array of its own, and advance by `draws`."""
        with self._lock:
            now = self.array.copy()
            self.array[1] += draws
        return now

    def advance(self, draws: int) -> None:
        """Count `draws` that a program made from this state."""
        with self._lock:
            self.array[1] += draws

    def get_state(self) -> Any:
        """The state as an int64 tensor of two elements."""
        return apply(_state, (self.array.copy(),), {})

    def set_state(self, new_state: Any) -> Generator:
        """Go on from a state that `get_state` returned; RuntimeError if it is not one."""
        values = new_state.tolist()
        if len(values) != 2 or new_state.dtype is not int64:
            raise RuntimeError("RNG state must be an int64 tensor of two elements, as get_state() "
                               "gives")
        with self._lock:
            self.array[:] = values
        return self

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self.array.tolist())


def _restored(device: str, state: list[int]) -> Generator:
    generator = Generator(device)
    generator.array[:] = state
    return generator


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator; returns it.

    >>> import tracejit
    >>> tracejit.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The default generator's state, an int64 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Make the default generator go on from `new_state`."""
    default_generator.set_state(new_state)


Provider = Callable[[Generator], tuple[Any, int]]


def _eager_state(generator: Generator) -> tuple[Any, int]:
    return generator.take(), 0


_provider: Provider = _eager_state


def install_state_provider(provider: Provider) -> None:
    """Who hands out (state operand, draws before this one); the eager room calls this once."""
    global _provider
    _provider = provider


def state_of(generator: Generator | None) -> tuple[Any, int]:
    """The state operand of the next draw, and the draws made before it in this program."""
    return _provider(generator or default_generator)
