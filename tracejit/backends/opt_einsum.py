"""PyTorch's `torch.backends.opt_einsum`: scripts set its switches; einsum joins its operands from
left to right, as PyTorch's does without the package `opt_einsum`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether an order of products is looked for: no."""
    return False


def get_opt_einsum() -> None:
    """The package that looks for one: none."""


def set_flags(_enabled: bool | None = None,
              _strategy: str | None = None) -> tuple[bool, str | None]:
    """Set the switches that are given; returns what they were."""
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
        globals().update(zip(("enabled", "strategy"), before))
