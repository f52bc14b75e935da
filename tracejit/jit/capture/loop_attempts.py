"""Reasons to record the body of a rolled loop once more: what one attempt learnt for the next.

In: the name of a variable, and the number of one of its tensors. Out: an exception with both.
Raised by `loop_body.py`, caught by `loops.py`.
"""

from __future__ import annotations

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
