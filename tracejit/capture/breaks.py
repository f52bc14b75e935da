"""Why a captured function could not be replayed as one program, and the error where that is
demanded.

In: a reason, the user's line. Out: `Break` records for `report().breaks`; `CaptureError`. Used by
the
recorder and the jit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracejit.ir.graph import Location


@dataclass(frozen=True)
class Break:
    """Why a captured function could not be replayed as one program."""

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
    """A function cannot be captured as asked; the message names the line and the reason."""


class Refused(BaseException):
    """A part of the program cannot become a region of the graph; the message says why.

    Not an `Exception`: the user's own `except Exception` must not take it.
    """


LEAKED = (
    "a deferred tensor escaped from the captured function that made it and was used in another "
    "one; "
    "return it from that function instead of storing it"
)
