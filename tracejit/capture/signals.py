"""How a branch or a loop body ends: what rewritten control flow hands to its surroundings.

None: it fell off its end. `BREAK`, `CONTINUE`: jumps of the innermost loop. `Return(value)`: the
function returns. `Decided(broke)`: whether it was BREAK is known only when the program runs. Called
by rewritten functions, `control.py`, `branches.py` and `loops.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Jump:
    """A jump within the innermost loop."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


BREAK = Jump("break")
CONTINUE = Jump("continue")


@dataclass(eq=False)
class Return:
    """The function returns `value`."""

    value: Any


@dataclass(eq=False)
class Decided:
    """The loop ends if `broke` (a bool tensor without dimensions) holds, else it goes on."""

    broke: Any


Signal = Any  # None | BREAK | CONTINUE | Return | Decided
