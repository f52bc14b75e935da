"""Text of sums by index. Places that are named often are added in float64.

In: a `Store` that adds, with the `Frequent` of `frequent.py`. Out: its lines. A part of
`printing.py`'s Printer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.jit.lowering.columns import INDENT, Block
from tracejit.jit.lowering.frequent import FEW, Frequent
from tracejit.jit.lowering.index import Index, as_index
from tracejit.jit.lowering.loops import Store
from tracejit.jit.lowering.names import Names
from tracejit.jit.lowering.scalars import Scalar


class ByIndexPrinting:
    """Part of Printer for sums by index."""

    names: Names
    stack: list[Block]
    variables: dict[str, str]
    targets: Callable[[Any], Sequence[tuple[int, Any]]]
    pointer: Callable[[Any, str], str]
    place: Callable[[Scalar], str]
    index: Callable[[Index], str]
    _temporary: Callable[[], str]
    _loop: Callable[..., None]
    _places: Callable[[Any, Sequence[Index]], list[tuple[str, str]]]

    def _sums_by_index(self, store: Store) -> None:
        """Count how often each key is named, add here or beside, and settle what is beside."""
        often = store.frequent
        assert often is not None
        seen, wide = (self.pointer(self.targets(leaf)[0][0], leaf.dtype.name)
                      for leaf in often.memory())
        rows, lines = self._temporary(), self.stack[-1].lines
        count = "" if type(often.most) is int else f"if {self.names.size(often.most)} > {FEW}:"
        lines.append(f"{rows} = 0")
        keys, none = self.names.size(often.rows.extent), self.names.number(0, "int32")
        lines += _under(count, [f"for k in range({keys}):", f"{INDENT}{seen}[k] = {none}"])
        self._loop(often.outer, lambda: self._add(store, often, (seen, wide, rows), count))
        lines.append(f"if {rows} > 0:")
        self._inside(lambda: self._loop(
            [often.rows], lambda: self._settle(store, often, seen, wide), False))

    def _inside(self, body: Callable[[], None]) -> None:
        """Write lines that a condition guards."""
        self.stack.append(Block(self.stack[-1].variables, branch=True))
        body()
        inside = self.stack.pop().lines
        self.stack[-1].lines += [INDENT + line for line in inside]

    def _add(self, store: Store, often: Frequent, names: tuple[str, str, str], count: str) -> None:
        """Write the additions of all that the source has for one key."""
        seen, wide, rows = names
        key, row = self.index(often.key), self._temporary()
        width, lines = self.names.size(often.columns.extent), self.stack[-1].lines
        narrow, wider = (self.names.imported("numpy", d) for d in ("int32", "float64"))
        zero = self.names.number(-0.0, "float64")  # which changes nothing it is added to
        lines.append(f"{row} = 0")
        lines += _under(count, [
            f"{row} = int({seen}[{key}])",
            f"if {row} < {FEW}:",
            f"{INDENT}{seen}[{key}] = {narrow}({row} + 1)",
            f"{INDENT}{row} = 0",
            "else:",
            f"{INDENT}if {row} == {FEW}:",
            f"{2 * INDENT}{rows} = {rows} + 1",
            f"{2 * INDENT}{row} = {FEW} + {rows}",
            f"{2 * INDENT}{seen}[{key}] = {narrow}({row})",
            f"{2 * INDENT}for c in range(({rows} - 1) * {width}, {rows} * {width}):",
            f"{3 * INDENT}{wide}[c] = {zero}",
            f"{INDENT}{row} = {row} - {FEW}",
        ])  # fmt: skip

        def here() -> None:
            value = self.place(store.scalar)
            for pointer, where in self._places(store.leaf, store.place):
                self.stack[-1].lines.append(
                    f"{pointer}[{where}] = {pointer}[{where}] + {value}")

        def beside() -> None:
            value, at = self.place(store.scalar), self._beside(often, row, often.column)
            self.stack[-1].lines.append(f"{wide}[{at}] = {wide}[{at}] + {wider}({value})")

        lines.append(f"if {row} == 0:")
        self._inside(lambda: self._loop(often.inner, here, False))
        lines.append("else:")
        self._inside(lambda: self._loop(often.inner, beside, False))

    def _settle(self, store: Store, often: Frequent, seen: str, wide: str) -> None:
        """Join what was added beside for one key to what was added before."""
        row, key = self._temporary(), self.variables[often.rows.name]
        wider, narrow = (self.names.imported("numpy", d) for d in ("float64", "float32"))
        self.stack[-1].lines += [f"{row} = int({seen}[{key}]) - {FEW}", f"if {row} > 0:"]

        def join() -> None:
            at = self._beside(often, row, as_index(often.columns))
            for pointer, where in self._places(store.leaf, often.place):
                whole = f"{wider}({pointer}[{where}]) + {wide}[{at}]"
                self.stack[-1].lines.append(f"{pointer}[{where}] = {narrow}({whole})")

        self._inside(lambda: self._loop([often.columns], join, False))

    def _beside(self, often: Frequent, row: str, column: Index) -> str:
        return f"({row} - 1) * {self.names.size(often.columns.extent)} + {self.index(column)}"


def _under(condition: str, lines: list[str]) -> list[str]:
    return [condition, *(INDENT + line for line in lines)] if condition else lines
