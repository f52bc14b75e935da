"""Sums of many floats in blocks: the error of a block stays small, and totals are added up wider.

In: a reduction's loops. Out: loops cut into blocks, and the lines that add a block's total. Called
by `printing.py` and `columns.py`. A block is short, so its error is bounded. Totals of float32
blocks are added in float64. Totals of float64 blocks are added beside what each addition loses.
Blocks depend on sizes at run time alone: one text is right for every size. A loop of little work is
written twice, and the text without blocks runs where all its sums fit one block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.accumulate import ACCUMULATORS
from tracejit.jit.lowering.index import Variable, as_index, product
from tracejit.jit.lowering.names import Names
from tracejit.jit.lowering.scalars import Scalar
from tracejit.jit.lowering.vector_math import FUNCTIONS

BLOCK = 4096  # elements that one accumulator takes, in the lanes of vectors
ROWS = 128  # rows that a column's accumulator takes, one after another
LIGHT = 64  # scalars that are worth writing twice
_LONG = re.compile("|".join(rf"\b{f}\(" for f, _ in FUNCTIONS if "sqrt" not in f))
BLOCK_NAME = "b"  # the variable over blocks; `grid.py` shares out the loop within it


def rounds(fold: Scalar) -> bool:
    """Return True if this reduction is a sum of floats."""
    return ACCUMULATORS.get(fold.data.combine) == "add" and "float" in fold.args[0].dtype


def are_light(scalars: Sequence[Scalar]) -> bool:
    """Return True if a loop computes so little that it is written twice, once without blocks."""
    long = sum(s.kind == "call" and _LONG.search(s.data) is not None for s in scalars)
    return len(scalars) + 12 * long <= LIGHT


def is_short(loops: Sequence[Variable], most: int) -> bool:
    """Return True if loops are known to take no more than `most` elements."""
    if len(loops) == 1 and loops[0].stop is not None:
        return True  # part of a range, of a length that is bounded
    extent = product([v.extent for v in loops])
    return type(extent) is int and extent <= most


def in_blocks(loops: Sequence[Variable]) -> list[Variable]:
    """Return the same loops, the innermost cut into blocks if it may be long."""
    last = loops[-1]
    if is_short([last], BLOCK):
        return [*loops]
    blocks: SizeLike = (last.extent + BLOCK - 1) // BLOCK
    block = Variable(last.name + "_blocks", blocks)
    return [*loops[:-1], block, Variable(last.name, last.extent, as_index(block) * BLOCK,
                                         last.extent)]  # fmt: skip


@dataclass
class Short:
    """Statements of a loop without blocks, for sizes that meet a condition."""

    condition: str
    body: list[str]


class Wide:
    """Sum of blocks' totals of one reduction, under names (or elements) of its own."""

    def __init__(self, names: Names, dtype: str, high: str, low: str):
        self.names, self.dtype, self.high = names, dtype, high
        self.low = low if dtype == "float64" else ""
        self.zero = names.number(0, "float64")

    def begin(self) -> list[str]:
        """Write the initial values before any block."""
        lines = [f"{self.high} = {self.zero}"]
        return [*lines, f"{self.low} = {self.zero}"] if self.low else lines

    def add(self, total: str) -> list[str]:
        """Return lines that add one more block."""
        if not self.low:
            wider = self.names.imported("numpy", "float64")
            return [f"{self.high} = {self.high} + {wider}({total})"]
        return [
            f"{self.low} = {self.low} + {self._function('lost_float64')}({self.high}, {total})",
            f"{self.high} = {self.high} + {total}",
        ]

    def end(self) -> str:
        """Return the whole sum, in the type of the reduction."""
        if not self.low:
            return f"{self.names.imported('numpy', self.dtype)}({self.high})"
        return f"{self._function('settled_float64')}({self.high}, {self.low})"

    def _function(self, name: str) -> str:
        return self.names.imported("tracejit.jit.lowering.accumulate", name)
