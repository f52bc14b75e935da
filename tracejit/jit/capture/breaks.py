"""Reasons that a captured function cannot be replayed as one program, and the error where that is
demanded.

In: a reason, the user's line. Out: `GraphBreak` records for `report().breaks`; `CaptureError`. Used
by the tracer and the jit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.jit.capture.location import user_location
from tracejit.jit.ir.graph import Location


@dataclass(frozen=True)
class GraphBreak:
    """Reason that a captured function could not be replayed as one program."""

    reason: str
    location: Location | None
    hint: str = ""

    @property
    def file(self) -> str:
        return self.location.file if self.location else ""

    @property
    def line(self) -> int:
        return self.location.line if self.location else 0

    def __str__(self) -> str:
        where = f"{self.location}  {self.location.text}" if self.location else "(unknown line)"
        return f"{where}\n    {self.reason}" + (f"\n    hint: {self.hint}" if self.hint else "")


class CaptureError(RuntimeError):
    """Error of a function that cannot be captured as asked; the message names the line and the
    reason."""


class RegionRefused(BaseException):
    """Refusal of a part of the program that cannot become a region of the graph; the message says
    why.

    Not an `Exception`: the user's own `except Exception` must not take it. If a bare `except` does,
    the region remembers it.
    """

    def __init__(self, reason: str, hint: str = "", is_placed: bool = False):
        super().__init__(reason)
        self.hint, self.is_placed = hint, is_placed
        region: Any = active.tracer
        if region is not None and getattr(region, "refused", self) is None:
            region.refused = self


    def at(self, location: Location | None) -> RegionRefused:
        """Return the refusal of the region around, which names the innermost line only."""
        here = "" if self.is_placed or location is None else f" (at {location})"
        return RegionRefused(f"{self}{here}", self.hint, True)

    def advice(self) -> str:
        """Return the reason, followed by the hint if there is one."""
        return f"{self}; hint: {self.hint}" if self.hint else str(self)


class InternalError(BaseException):
    """Error of tracejit's own, which tests see; elsewhere a region is refused instead."""


def leaked(traced: Any) -> str:
    """Describe the use of a deferred tensor outside the recording that made it."""
    made = traced.origin
    used = user_location()
    return (
        f"a tensor made while {traced.tracer.name} was captured"
        + (f" ({made}: {made.text})" if made else "")
        + " is used outside of it, before it was computed"
        + (f", at {used}: {used.text}" if used else "")
        + f"; return it from {traced.tracer.name}, and use it when the call is over"
    )
