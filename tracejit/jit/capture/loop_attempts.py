"""Reasons to record the body of a rolled loop once more: what one attempt learnt for the next.

In: the name of a variable, and the number of one of its tensors; or a list or dict. Out: an
exception with these. Raised by `loop_body.py` and `loop_contents.py`, caught by `loops.py` and
`control.py`.
"""

from __future__ import annotations

from typing import Any

from tracejit.jit.capture.breaks import RegionRefused


class Retrace(RegionRefused):
    """Request to record the body once more, knowing something of tensor `k` of a variable."""

    what = ""

    def __init__(self, name: str, k: int):
        super().__init__(f"{name} {self.what}")
        self.place = (name, k)


class LiftNumber(Retrace):
    """Python number that changes in an iteration: it becomes a value of the graph."""

    what = "changes"


class StrideChange(Retrace):
    """Change of a carried variable's strides: trace the body again with unknown strides."""

    what = "has other strides after an iteration"


class GradPromotion(Retrace):
    """Variable that requires grad after an iteration: it then does so from the start."""

    what = "requires grad after an iteration"


class Place:
    """List or dict, told from others by identity."""

    def __init__(self, container: Any):
        self.container = container

    def __eq__(self, other: object) -> bool:
        return type(other) is Place and other.container is self.container

    def __hash__(self) -> int:
        return id(self.container)


class WrittenContainer(Retrace):
    """List or dict from before the loop whose items the body assigns. `body`: the loop that is to
    carry them, which may be one around."""

    def __init__(self, body: Any, container: Any, reason: str):
        RegionRefused.__init__(self, reason)
        self.body, self.place = body, Place(container)  # type: ignore[assignment]


class PeelIteration(RegionRefused):
    """Request to run an iteration before the loop: a variable has its type only after that."""
