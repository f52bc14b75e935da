"""Variables that a branch or a loop body assigns: cells that are read, set and put back.

In: functions that the rewriter made of blocks, and the names that they assign; the names are
closure cells, shared with the function around. Out: `Variables`. Called by `control.py`, `cond.py`
and `loop_body.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType
from typing import Any

UNBOUND = type("Unbound", (), {"__repr__": lambda self: "(unbound)"})()


class Variables:
    """Cells by name. `live_out`: names read outside the statement, or by a later iteration.
    `upward_exposed`: names that code may read without binding them first. `private`: those that
    each iteration of a loop binds anew, and that nothing reads behind it."""

    def __init__(self, names: Iterable[str], functions: Iterable[Callable | None],
                 live_out: Iterable[str] = (), upward_exposed: Iterable[str] = (),
                 private: Iterable[str] = ()):
        self.cells: dict[str, CellType] = {}
        self.live_out, self.upward_exposed = frozenset(live_out), frozenset(upward_exposed)
        self.private = frozenset(private)
        wanted = frozenset(names)
        for function in functions:
            if function is None:
                continue
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                if name in wanted:
                    self.cells[name] = cell

    def values(self) -> dict[str, Any]:
        """Return the value that each variable has now; UNBOUND for none."""
        return {name: _contents(cell) for name, cell in self.cells.items()}

    def set(self, values: dict[str, Any]) -> None:
        """Set the variables; UNBOUND deletes the value."""
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
