"""PyTorch's `torch.backends.opt_einsum`: scripts set its switches, which have no effect.

`einsum` joins its operands from left to right, as PyTorch's does without the package `opt_einsum`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Return False: no better order of products is searched."""
    return False


def get_opt_einsum() -> None:
    """Return None: no package searches for an order of products."""


def set_flags(_enabled: bool | None = None,
              _strategy: str | None = None) -> tuple[bool, str | None]:
    """Set the switches that are given; return the values that they had."""
    global enabled, strategy
    before = enabled, strategy
    enabled = enabled if _enabled is None else _enabled
    strategy = strategy if _strategy is None else _strategy
    return before


@contextlib.contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Context: the switches are set so inside; nothing depends on them."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        # Not by `set_flags`, which keeps a strategy where None was given.
        globals().update(zip(("enabled", "strategy"), before))
