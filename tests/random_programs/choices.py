"""Where the generator's decisions come from: a seeded NumPy generator, or hypothesis, which can
shrink them.

In: a seed or hypothesis' `draw`. Out: a `Choices`. Zero is always the simplest choice, so that
shrinking simplifies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Choices:
    """Decisions, each a number below some bound."""

    def __init__(self, below: Callable[[int], int]):
        self.below = below

    @staticmethod
    def seeded(seed: int) -> Choices:
        """Decisions of a seed; far cheaper than hypothesis' own."""
        rng = np.random.default_rng([seed, 0x7261])
        return Choices(lambda bound: int(rng.integers(bound)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 cases; False is the simple answer."""
        return self.below(100) >= 100 - percent

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)
