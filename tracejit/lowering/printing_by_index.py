"""The text of sums by index, of which places that are named often are added in float64.

In: a `Store` that adds, with the `Frequent` of `frequent.py`. Out: its lines. A part of
`printing.py`'s Printer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.lowering.columns import INDENT, Block
from tracejit.lowering.frequent import FEW, Frequent, Position
from tracejit.lowering.index import Index
from tracejit.lowering.loops import Store
from tracejit.lowering.names import Names
from tracejit.lowering.scalars import Scalar, variables_of


class ByIndexPrinting:
    """What Printer does for sums by index."""

    names: Names
    stack: list[Block]
    targets: Callable[[Any], Sequence[tuple[int, Any]]]
    pointer: Callable[[Any, str], str]
    place: Callable[[Scalar], str]
    index: Callable[[Index], str]
    _temporary: Callable[[], str]
    _loop: Callable[..., None]
    _places: Callable[[Any, Sequence[Index]], list[tuple[str, str]]]

    def _sums_by_index(self, store: Store) -> None:
        """Count how often each key is named, add, and settle what was added beside."""
        often = store.frequent
        assert often is not None
        seen, wide = (self.pointer(self.targets(leaf)[0][0], leaf.dtype.name)
                      for leaf in often.memory())
        rows = self._temporary()
        lines = self.stack[-1].lines
        lines.append(f"{rows} = 0")
        if type(often.most) is int:
            self._count(often, seen, wide, rows)
        else:
            lines.append(f"if {self.names.size(often.most)} > {FEW}:")
            self._inside(lambda: self._count(often, seen, wide, rows))
        self._loop(store.inner, lambda: self._add(store, often, seen, wide, rows))
        lines.append(f"if {rows} > 0:")
        self._inside(lambda: self._loop(
            often.whole, lambda: self._settle(store, often, seen, wide), False))

    def _inside(self, body: Callable[[], None]) -> None:
        """Write lines that a condition guards."""
        self.stack.append(Block(self.stack[-1].variables, branch=True))
        body()
        inside = self.stack.pop().lines
        self.stack[-1].lines += [INDENT + line for line in inside]

    def _count(self, often: Frequent, seen: str, wide: str, rows: str) -> None:
        keys, width = self.names.size(often.keys), self.names.size(often.width)
        zero = self.names.number(-0.0, "float64")  # which changes nothing it is added to
        lines = self.stack[-1].lines
        none, one = self.names.number(0, "int32"), self.names.number(1, "int32")
        lines += [f"for k in range({keys}):", f"{INDENT}{seen}[k] = {none}"]

        def one_more() -> None:
            key = self.index(often.at.key)
            self.stack[-1].lines.append(f"{seen}[{key}] = {seen}[{key}] + {one}")

        self._loop(often.loops, one_more, False)
        lines += [
            f"for k in range({keys}):",
            f"{INDENT}if {seen}[k] > {FEW}:",
            f"{2 * INDENT}for j in range({width}):",
            f"{3 * INDENT}{wide}[{rows} * {width} + j] = {zero}",
            f"{2 * INDENT}{rows} = {rows} + 1",
            f"{2 * INDENT}{seen}[k] = {self.names.imported('numpy', 'int32')}({rows})",
            f"{INDENT}else:",
            f"{2 * INDENT}{seen}[k] = {none}",
        ]

    def _add(self, store: Store, often: Frequent, seen: str, wide: str, rows: str) -> None:
        value, row = self.place(store.scalar), self._row_in_use(often, seen, rows)
        places, at = self._places(store.leaf, store.place), self._element(often, often.at, row)
        wider = self.names.imported("numpy", "float64")
        self.stack[-1].lines += [
            f"if {row} == 0:",
            *(f"{INDENT}{pointer}[{where}] = {pointer}[{where}] + {value}"
              for pointer, where in places),
            "else:",
            f"{INDENT}{wide}[{at}] = {wide}[{at}] + {wider}({value})",
        ]  # fmt: skip

    def _row_in_use(self, often: Frequent, seen: str, rows: str) -> str:
        """The row of an element of the source, found in the outermost loop that knows its key."""
        used = variables_of(often.at.key)
        depth = next(k for k, block in enumerate(self.stack) if used <= block.variables)
        inner = self.stack[depth + 1 :]
        del self.stack[depth + 1 :]
        found, row = self._row_of(often.at, seen), self._temporary()
        self.stack[-1].lines += [f"{row} = 0", f"if {rows} > 0:", f"{INDENT}{row} = {found}"]
        self.stack += inner
        return row

    def _settle(self, store: Store, often: Frequent, seen: str, wide: str) -> None:
        """What was added beside joins what one element of the result was."""
        row, places = self._temporary(), self._places(store.leaf, often.result)
        found, at = self._row_of(often.of, seen), self._element(often, often.of, row)
        wider, narrow = (self.names.imported("numpy", d) for d in ("float64", "float32"))
        self.stack[-1].lines += [
            f"{row} = {found}",
            f"if {row} > 0:",
            *(f"{INDENT}{pointer}[{where}] = "
              f"{narrow}({wider}({pointer}[{where}]) + {wide}[{at}])"
              for pointer, where in places),
        ]  # fmt: skip

    def _row_of(self, position: Position, seen: str) -> str:
        return f"int({seen}[{self.index(position.key)}])"

    def _element(self, often: Frequent, position: Position, row: str) -> str:
        width, column = self.names.size(often.width), self.index(position.column)
        return f"({row} - 1) * {width} + {column}"
