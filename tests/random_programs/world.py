"""The tables that a random program over objects is drawn from. Filled by `objects_world.py` and
`training_world.py`, drawn from by `worlds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class World:
    """Texts of Python. `source` takes a block of statements and what is returned; `changes` are
    made between calls; `raising` may raise. The source defines `start`, the arguments, and `also`,
    what else is compared."""

    source: str
    statements: tuple[str, ...]
    tests: tuple[str, ...]
    loops: tuple[str, ...]
    returns: tuple[str, ...]
    changes: tuple[str, ...]
    raising: tuple[str, ...]
