"""The default random generator; PyTorch's `torch.random`.

In: seeds and states. Out: the state of the generator that random ops draw from unless given one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.ops.generators import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed",
           "manual_seed", "seed", "set_rng_state"]  # fmt: skip


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Draws inside do not change the state outside.

    >>> import tracejit
    >>> before = tracejit.get_rng_state()
    >>> with tracejit.random.fork_rng():
    ...     _ = tracejit.rand(3)
    >>> bool((tracejit.get_rng_state() == before).all())
    True
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
