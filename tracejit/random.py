"""Default random generator; PyTorch's `torch.random`.

In: seeds and states. Out: the state of the generator that random ops draw from unless given one.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from tracejit.core.eager import generator_state  # noqa: F401 - recordings see what is done to generators
from tracejit.core.ops.generators import (
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


class fork_rng(ContextDecorator):
    """Context or decorator: draws inside do not change the state outside.

    `devices` and `device_type` are PyTorch's; there is one generator for all devices.

    >>> import tracejit
    >>> before = tracejit.get_rng_state()
    >>> with tracejit.random.fork_rng():
    ...     _ = tracejit.rand(3)
    >>> bool((tracejit.get_rng_state() == before).all())
    True
    """

    def __init__(self, devices: Any = None, enabled: bool = True, *,
                 device_type: str = "cuda") -> None:
        self.enabled = enabled

    def _recreate_cm(self) -> fork_rng:
        return fork_rng(enabled=self.enabled)  # calls of a decorated function may nest

    def __enter__(self) -> None:
        if self.enabled:
            self._state = get_rng_state()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.enabled:
            set_rng_state(self._state)
