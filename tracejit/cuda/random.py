"""Random states of devices; PyTorch's `torch.cuda.random`.

In: seeds and states. Out: the state of the one generator, from which every device draws. Without a
device there are no states of devices, and functions that set them have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracejit import cuda
from tracejit.core.ops import generators
from tracejit.core.ops import sealing as _sealing

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed",
           "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all"]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seed the one generator there is: random numbers are the same on every device."""
    generators.manual_seed(seed)


def seed() -> None:
    """Seed the generator by chance; without a device nothing happens."""
    if cuda.is_available():
        generators.seed()


def initial_seed() -> int:
    """Return the seed of the generator. DeviceUnavailable without a device."""
    cuda.init()
    return int(generators.initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """Return a device's random state. DeviceUnavailable without a device."""
    cuda.init()
    return generators.get_rng_state()


def get_rng_state_all() -> list[Any]:
    """Return the random state of each device: [] without one.

    >>> import tracejit
    >>> len(tracejit.cuda.get_rng_state_all()) == tracejit.cuda.device_count()
    True
    """
    return [get_rng_state(number) for number in range(cuda.device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Go on from a device's random state; without a device nothing happens."""
    if cuda.is_available():
        generators.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states that `get_rng_state_all` returned."""
    for number, state in enumerate(new_states):
        set_rng_state(state, number)


manual_seed_all, seed_all = manual_seed, seed


_sealing.seal_all(globals())
