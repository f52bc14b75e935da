"""Variables that a branch or a loop body assigns: read, set and put back.

In: functions that rewriting made of a branch, and the names they assign; those names are closure
cells shared with the function around them. Out: `Variables`. Called by `cond.py`, `loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType
from typing import Any

UNBOUND = type("Unbound", (), {"__repr__": lambda self: "(unbound)"})()


class Variables:
    """Cells by name. `live_out` are the names read anywhere outside the statement; `upward_exposed`
    those that somebody may read without binding them first, wherever control came from."""

    def __init__(self, names: Iterable[str], functions: Iterable[Callable | None],
                 live_out: Iterable[str] = (), upward_exposed: Iterable[str] = ()):
        self.cells: dict[str, CellType] = {}
        self.live_out, self.upward_exposed = frozenset(live_out), frozenset(upward_exposed)
        wanted = frozenset(names)
        for function in functions:
            if function is None:
                continue
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                if name in wanted:
                    self.cells[name] = cell

    def values(self) -> dict[str, Any]:
        """Return the present value of each variable; UNBOUND for none."""
        return {name: _contents(cell) for name, cell in self.cells.items()}

    def set(self, values: dict[str, Any]) -> None:
        """Make the variables hold these values."""
        for name, value in values.items():
            cell = self.cells[name]
            if value is not UNBOUND:
                cell.cell_contents = value
            elif _contents(cell) is not UNBOUND:
                del cell.cell_contents


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND
