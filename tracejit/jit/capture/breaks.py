"""Graph breaks: reasons that a captured function cannot be replayed as one program.

In: a reason, the user's line. Out: `GraphBreak` records for `report().breaks`; `CaptureError`,
where the user demands one program; `RegionRefused`, where a part cannot be a subgraph. Called by
the tracer and the jit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.jit.capture.hints import hint_for
from tracejit.jit.capture.location import (
    is_library,
    location_of,
    user_frame,
    user_location,
    written_location,
)
from tracejit.jit.ir.graph import Location

_SHOWN = 6  # lines of libraries in a printed break


@dataclass(frozen=True)
class Inside:
    """Line within a user's line where capture ended: of a library, or of a refused branch."""

    location: Location
    reason: str


@dataclass(frozen=True)
class GraphBreak:
    """Reason that a captured function could not be replayed as one program, with line and hint.

    inside  lines of libraries that the user's line called, or the line that refused a branch
    """

    reason: str
    location: Location | None
    hint: str = ""
    inside: tuple[Inside, ...] = ()

    @property
    def file(self) -> str:
        return self.location.file if self.location else ""

    @property
    def line(self) -> int:
        return self.location.line if self.location else 0

    def __str__(self) -> str:
        where = f"{self.location}  {self.location.text}" if self.location else "(unknown line)"
        lines = [where, f"    {self.reason}"]
        for found in self.inside[:_SHOWN]:
            why = "" if self.reason.endswith(found.reason) else f": {found.reason}"
            lines.append(f"      in {found.location}  {found.location.text}{why}")
        if len(self.inside) > _SHOWN:
            lines.append(f"      ... {len(self.inside) - _SHOWN} more")
        return "\n".join(lines + ([f"    hint: {self.hint}"] if self.hint else []))


def break_here(reason: str, hint: str = "", cause: RegionRefused | None = None) -> GraphBreak:
    """Make the record of a break at the user's line that is running.

    cause  refusal of a branch, whose line is named below the user's
    """
    location, library = written_location(3)
    inside = [] if library is None else [Inside(library, reason)]
    refused = None if cause is None else cause.location()
    if refused is not None and refused not in (location, library):
        inside.append(Inside(refused, str(cause)))
    return GraphBreak(reason, location, hint or hint_for(reason), tuple(inside))


def add_break_to(breaks: list[GraphBreak], found: GraphBreak) -> None:
    """Add a record, or join it with the record of its line if libraries broke in both.

    A line that refused a branch breaks again when the branch runs: the branch's record names it.
    """
    for k, known in enumerate(breaks):
        if any(found.location == within.location for within in known.inside):
            return
        if known.location == found.location and (
                known.reason == found.reason or _in_library(known) and _in_library(found)):
            inside = tuple(dict.fromkeys((*known.inside, *found.inside)))
            breaks[k] = GraphBreak(known.reason, known.location, known.hint, inside)
            return
    breaks.append(found)


def _in_library(found: GraphBreak) -> bool:
    return any(is_library(within.location.file) for within in found.inside)


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

    def __init__(self, reason: str, hint: str = "", where: tuple[Any, ...] | None = None):
        super().__init__(reason)
        self.given = hint
        if where is None:
            frame = user_frame()
            where = () if frame is None else (frame.f_code, frame.f_lineno)
        self.where = where  # (code, line); () for nowhere
        region: Any = active.tracer
        if region is not None and getattr(region, "refused", self) is None:
            region.refused = self

    @property
    def hint(self) -> str:
        return self.given or hint_for(str(self))

    def location(self) -> Location | None:
        """Return the user's line that was refused."""
        return location_of(*self.where) if self.where else None

    def again(self) -> RegionRefused:
        """Return the refusal of the region around, for the same reason and line."""
        return RegionRefused(str(self), self.given, self.where or None)

    def advice(self, location: Location | None) -> str:
        """Return the reason, the line if it is not `location`, and the hint if there is one."""
        found = self.location()
        at = f" (at {found})" if found is not None and found != location else ""
        return f"{self}{at}" + (f"; hint: {self.hint}" if self.hint else "")


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
