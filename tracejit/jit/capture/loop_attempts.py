"""Why the body of a rolled loop is recorded once more: what one attempt learnt for the next.

In: the name of a variable and which of its elements. Out: an exception with that place. Raised by
`loop_body.py`, caught by `loops.py`.
"""

from __future__ import annotations

from tracejit.jit.capture.breaks import RegionRefused


class Retrace(RegionRefused):
    """The body has to be recorded once more, knowing this of element `k` of a variable."""

    what = ""

    def __init__(self, name: str, k: int):
        super().__init__(f"{name} {self.what}")
        self.place = (name, k)


class LiftNumber(Retrace):
    """A Python number changes from iteration to iteration: it must be in the graph."""

    what = "changes"


class StrideChange(Retrace):
    """A variable lies in memory in another way after an iteration."""

    what = "has other strides after an iteration"


class GradPromotion(Retrace):
    """A variable requires grad after an iteration: so it must from the start."""

    what = "requires grad after an iteration"


class GrowingList(Retrace):
    """A list grows through a name that is bound again, to the same list (`+=`)."""

    what = "is a list that grows"
