"""Exits: how a branch or a loop body ends, as its function tells the code around it.

None: it ran to its end. `BREAK`, `CONTINUE`: jumps of the innermost loop. `CONTINUE_THROUGH`: a
`continue` out of a `with` or `try`, behind which the iteration would else go on. `Return(value)`:
the function returns. `TracedExit`: only the running program knows which of these. Called by
rewritten functions, `control.py`, `cond.py` and `loops.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Jump:
    """Jump within the innermost loop."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


BREAK = Jump("break")
CONTINUE = Jump("continue")
CONTINUE_THROUGH = Jump("continue")


@dataclass(eq=False)
class Return:
    """Exit by which the function returns `value`."""

    value: Any


@dataclass(eq=False)
class TracedExit:
    """Exit that only the program knows: the loop ends if `broke` or `returned` holds.

    Both are bool tensors without dimensions; False stands for a tensor that never holds.

    broke     the loop is left by a `break`
    returned  the function returns `value`, which counts only then
    own       lists and dicts in `value` that were made for it
    """

    broke: Any
    returned: Any = False
    value: Any = None
    own: Sequence[Any] = ()

    @property
    def ended(self) -> Any:
        """Flag under which the loop ends."""
        if self.broke is False or self.returned is False:
            return self.returned if self.broke is False else self.broke
        return self.broke | self.returned


ControlExit = Any  # None | BREAK | CONTINUE | CONTINUE_THROUGH | Return | TracedExit
