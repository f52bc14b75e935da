"""Text of reductions over leading dimensions: a tile of columns at a time, totals in scratch
memory.

In: a `Nest` with a column variable. Out: its lines. A part of `printing.py`'s Printer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.lowering.index import Variable, product
from tracejit.jit.lowering.long_sums import ROWS, Wide, are_light, is_short, rounds
from tracejit.jit.lowering.loops import TILE, Nest, Store, same_loops
from tracejit.jit.lowering.names import Names
from tracejit.jit.lowering.scalars import Scalar

INDENT = "    "
TOGETHER = 4  # rows that one step takes
PLAIN = 12  # scalars with which a step is written that often


@dataclass
class Block:
    """Lines at one depth of loops."""

    variables: frozenset[str]
    lines: list[str] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)
    branch: bool = False  # only reached under a condition: nothing in it may move out


class ColumnPrinting:
    """Part of Printer for column reductions."""

    nest: Nest
    names: Names
    stack: list[Block]
    variables: dict[str, str]
    scratch: int
    place: Callable[[Scalar], str]
    _fresh: Callable[[Variable], str]
    _assign: Callable[[str, Any], str]
    _decoded: Callable[[str, Sequence[Variable]], list[str]]
    _loop: Callable[..., None]
    _store_all: Callable[[Sequence[Store]], None]

    def _columns(self) -> list[str]:
        """Write reductions over leading dimensions: a tile of columns at a time, totals in scratch
        memory."""
        nest, column = self.nest, self.nest.column
        assert column is not None
        tiles = self.names.size((column.extent + TILE - 1) // TILE)
        width = self.names.size(column.extent)
        block = Block(frozenset(v.name for v in nest.outer))
        if nest.outer:
            block.lines.append(f"batch = tile // {tiles}")
            if len(nest.outer) == 1:
                self.variables[nest.outer[0].name] = "batch"
            else:
                block.lines += self._decoded("batch", nest.outer)
        block.lines += [
            f"first = tile % {tiles} * {TILE}" if nest.outer else f"first = tile * {TILE}",
            f"last = min(first + {TILE}, {width})",
        ]
        self.stack.append(block)
        folds = list({s.number: s for s in nest.scalars if s.kind == "fold"}.values())
        totals = [self._scratch_row(f.dtype) for f in folds]
        sums = {f.number: self._wide_row(f) for f in folds if _is_long(f)}
        self.variables[column.name] = "c"
        finals: dict[int, str] = {}
        if folds:
            block.lines.append("for c in range(first, last):")
        for fold, total in zip(folds, totals):
            first = self.names.number(fold.data.identity, fold.dtype)
            block.lines.append(f"{INDENT}{total}[c - first] = {first}")
        while folds:
            loops = folds[0].data.loops
            together = [(f, t) for f, t in zip(folds, totals) if same_loops(f.data.loops, loops)]
            left = [(f, t) for f, t in zip(folds, totals) if not same_loops(f.data.loops, loops)]
            self._rows_of(together, sums)
            for fold, total in together:
                finals[fold.number] = f"{total}[c - first]"
            folds, totals = [f for f, _ in left], [t for _, t in left]
        self._across(lambda: self._store_columns(finals))
        self.stack.pop()
        return block.lines

    def _rows_of(self, folds: Sequence[tuple[Scalar, str]], sums: dict[int, Wide]) -> None:
        """Write all rows of reductions with equal loops. Each ROWS rows are added to wider
        totals."""
        block, loops = self.stack[-1], folds[0][0].data.loops
        long = [(sums[f.number], f, f"{t}[c - first]") for f, t in folds if f.number in sums]
        alone = len(loops) == 1 and loops[0].stop is None
        if not long:
            if alone:
                self._some_rows(folds, loops[0], "0", self.names.size(loops[0].extent))
            else:
                self._loop(loops, lambda: self._innermost_row(folds, loops[-1]))
            return
        moved = [line for wide, _, total in long for line in wide.add(total)]
        many = f"if {self.names.size(product([v.extent for v in loops]))} > {ROWS}:"
        across = f"{INDENT}for c in range(first, last):"
        begun = [line for wide, _, _ in long for line in wide.begin()]
        block.lines += [many, across, *(2 * INDENT + line for line in begun)]
        zeros = [f"{t} = {self.names.number(f.data.identity, f.dtype)}" for _, f, t in long]
        move = [across.strip(), *(INDENT + line for line in (*moved, *zeros))]
        if alone:
            self._blocks_of_rows(folds, loops[0], move)
        else:
            self._counted_rows(folds, loops, move)
        block.lines += [many, across]
        block.lines += [2 * INDENT + line for line in moved]
        block.lines += [f"{2 * INDENT}{total} = {wide.end()}" for wide, _, total in long]

    def _blocks_of_rows(self, folds: Sequence[tuple[Scalar, str]], loop: Variable,
                        move: Sequence[str]) -> None:  # fmt: skip
        """Write ROWS rows at a time. Lines of `move` move their sums before the next rows begin."""
        block, n = self.stack[-1], self.names.size(loop.extent)
        self.stack.append(Block(block.variables))
        self._some_rows(folds, loop, "begin", "end")
        rows = self.stack.pop().lines
        body = [f"begin = b * {ROWS}", f"end = min(begin + {ROWS}, {n})",
                "if b > 0:", *(INDENT + line for line in move), *rows]  # fmt: skip
        head = f"for b in range(({n} + {ROWS - 1}) // {ROWS}):"
        block.lines += [head, *(INDENT + line for line in body)]

    def _counted_rows(self, folds: Sequence[tuple[Scalar, str]], loops: Sequence[Variable],
                      move: Sequence[str]) -> None:  # fmt: skip
        """Write rows of several loops, and count them, to move sums after each ROWS rows."""
        self.stack[-1].lines.append("since = 0")

        def steps() -> None:
            lines = self.stack[-1].lines
            lines += [f"if since == {ROWS}:", f"{INDENT}since = 0"]
            lines += [INDENT + line for line in move]
            lines.append("since = since + 1")
            self._innermost_row(folds, loops[-1])

        self._loop(loops, steps)

    def _innermost_row(self, folds: Sequence[tuple[Scalar, str]], loop: Variable) -> None:
        """Write one row in loops that are open."""
        row = self.variables[loop.name]
        self.stack[-1].lines += self._rows_at_once(folds, loop, row, 1)

    def _some_rows(self, folds: Sequence[tuple[Scalar, str]], loop: Variable,
                   begin: str, end: str) -> None:  # fmt: skip
        """Write rows from `begin` to `end`. Where little is computed, one step takes several rows,
        so that totals are read and written once for all of these."""
        block, row = self.stack[-1], self._fresh(loop)
        count = f"({end} - {begin})" if begin != "0" else end
        step = TOGETHER if self._is_plain() else 1
        block.lines += [f"for q in range({count} // {step}):" if step > 1 else
                        f"for {row} in range({begin}, {end}):"]  # fmt: skip
        self.variables[loop.name] = row
        if step > 1:
            block.lines.append(f"{INDENT}{row} = {begin} + {step} * q")
        block.lines += [INDENT + line for line in self._rows_at_once(folds, loop, row, step)]
        if step > 1:
            rest = f"{count} % {step}"
            block.lines += [f"for q in range({rest}):", f"{INDENT}{row} = {end} - {rest} + q"]
            block.lines += [INDENT + line for line in self._rows_at_once(folds, loop, row, 1)]
        del self.variables[loop.name]

    def _is_plain(self) -> bool:
        """Return True if so little is computed that memory decides how long it takes."""
        scalars = self.nest.scalars
        return len(scalars) <= PLAIN and are_light(scalars)

    def _rows_at_once(self, folds: Sequence[tuple[Scalar, str]], loop: Variable, row: str,
                      count: int) -> list[str]:  # fmt: skip
        """Return lines for rows `row`, `row` + 1, ... of each column, in this order."""
        outer, column = self.stack[-1], self.nest.column
        assert column is not None
        before: list[str] = []
        inside: list[str] = []
        found = {t: f"({t}[c - first] != 0)" if f.dtype == "bool" else f"{t}[c - first]"
                 for f, t in folds}  # fmt: skip
        for k in range(count):
            self.variables[loop.name] = f"({row} + {k})" if k else row
            known = outer.variables | {loop.name}
            self.stack += [Block(known), Block(known | {column.name})]
            for fold, total in folds:
                value = self.place(fold.args[0])
                found[total] = self._assign(
                    self.names.combine(fold.data.combine, found[total], value, fold.dtype), None)
            inside += self.stack.pop().lines
            before += self.stack.pop().lines
        for fold, total in folds:
            value = found[total]
            if fold.dtype == "bool":
                value = f"{self.names.imported('numpy', 'uint8')}({value})"
            inside.append(f"{total}[c - first] = {value}")
        return [*before, "for c in range(first, last):", *(INDENT + line for line in inside)]

    def _wide_row(self, fold: Scalar) -> Wide:
        high = f"{self._scratch_row('float64')}[c - first]"
        low = f"{self._scratch_row('float64')}[c - first]" if fold.dtype == "float64" else ""
        return Wide(self.names, fold.dtype, high, low)

    def _scratch_row(self, kind: str) -> str:
        name = f"total{self.scratch // (8 * TILE)}"
        self.stack[0].lines.append(f"{name} = {self.names.scratch(kind)}(scratch, {self.scratch})")
        self.scratch += 8 * TILE
        return name

    def _across(self, body: Any) -> None:
        """Write a loop over the tile's columns."""
        outer = self.stack[-1]
        assert self.nest.column is not None
        self.stack.append(Block(outer.variables | {self.nest.column.name}))
        body()
        lines = self.stack.pop().lines
        outer.lines += ["for c in range(first, last):", *(INDENT + line for line in lines)]

    def _store_columns(self, finals: dict[int, str]) -> None:
        block = self.stack[-1]
        for scalar in self.nest.scalars:
            text = finals.get(scalar.number)
            if text is not None:
                block.known[scalar.number] = f"({text} != 0)" if scalar.dtype == "bool" else text
        self._store_all(self.nest.filled())


def _is_long(fold: Scalar) -> bool:
    """Return True if a sum may have more rows than one accumulator takes."""
    return rounds(fold) and not is_short(fold.data.loops, ROWS)
