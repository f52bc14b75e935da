"""Graph breaks: reasons that a captured function cannot be replayed as one program.

In: a reason, the user's line. Out: `GraphBreak` records for `report().breaks`; `CaptureError`,
where the user demands one program; `RegionRefused`, where a part cannot be a subgraph. Called by
the tracer and the jit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.jit.capture.location import user_location
from tracejit.jit.ir.graph import Location


@dataclass(frozen=True)
class GraphBreak:
    """Reason that a captured function could not be replayed as one program, with line and hint."""

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
    """Error where a function cannot be captured as asked; the message names line and reason. It is
    a RuntimeError.

    >>> import tracejit
    >>> issubclass(tracejit.CaptureError, RuntimeError)
    True
    """


class RegionRefused(BaseException):
    """Refusal of a branch or a loop body that cannot be a subgraph; the message says why.

    Not an `Exception`, so that the user's `except Exception` does not catch it. A bare `except`
    does: so the region remembers its first refusal, and ends with it.
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
    """Bug in tracejit, raised if passes are verified, as in tests; else a region is refused."""


def leaked(traced: Any) -> str:
    """Return the message for a deferred tensor that is used outside the recording that made it."""
    made = traced.origin
    used = user_location()
    return (
        f"a tensor made while {traced.tracer.name} was captured"
        + (f" ({made}: {made.text})" if made else "")
        + " is used outside of it, before it was computed"
        + (f", at {used}: {used.text}" if used else "")
        + f"; return it from {traced.tracer.name}, and use it when the call is over"
    )
