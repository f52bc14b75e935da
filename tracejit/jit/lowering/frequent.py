"""Sums by index: places that an index names often are added in float64, beside the others.

In: where a scatter adds, and in which loops. Out: a `Frequent`: memory to count in and to add in.
Called by `loops.py`; `printing_by_index.py` writes the lines. The kernel makes the first FEW
additions to a place in float32, one after another, so that their error is bounded. Later ones go to
a row of wider memory, which joins the place at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.core.ops.types import float64, int32
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.emit import Partial
from tracejit.jit.lowering.index import (
    Index,
    Variable,
    as_index,
    contiguous_strides,
    linear,
    product,
    resolved,
    unravelled,
)
from tracejit.jit.lowering.scalars import variables_of

FEW = 1024  # additions to one place that float32 may take one after another


@dataclass
class Frequent:
    """Memory of one sum by index.

    - `seen`: for each key how often it was named, up to FEW; then FEW and the number of its row of
      `wide`, from 1 on
    - `wide`: float64, `width` columns for each key that is named more than FEW times
    - `most`: a bound of how often one place is named
    - `key`, `column`: where an element of the source is added: a number of what the outer loops
      decide, and of the rest
    - `outer`, `inner`: the loops over the source that decide the key, and those within
    - `place`: the element of the result that belongs to `rows` and `columns`, a key and a column
    """

    seen: Partial
    wide: Partial
    most: SizeLike
    key: Index
    column: Index
    outer: list[Variable]
    inner: list[Variable]
    place: list[Index]
    rows: Variable
    columns: Variable

    def memory(self) -> tuple[Partial, Partial]:
        return self.seen, self.wide


def frequent(value: Any, dims: Sequence[int], most: SizeLike, target: Sequence[Index],
             loops: Sequence[Variable]) -> Frequent | None:
    """Return memory for float32 sums into `value`; None for other dtypes, or if no place can be
    named often.

    The indices name dimensions `dims` of `value`. In `loops` over the source, an element of the
    source goes to `target`.
    """
    if value.dtype.name != "float32" or type(most) is int and most <= FEW:
        return None
    named = frozenset().union(*(variables_of(target[d]) for d in dims))
    others = frozenset().union(*(variables_of(x) for d, x in enumerate(target) if d not in dims))
    # A loop that no other dimension follows comes back to the same places.
    again = named | {v.name for v in loops if v.name not in others}
    depth = max((k + 1 for k, v in enumerate(loops) if v.name in again), default=0)
    outer, inner = list(loops[:depth]), list(loops[depth:])
    within = {v.name for v in inner}
    shape = [resolved(s) for s in value.shape]
    keyed = [d for d in range(len(shape)) if d in dims or not variables_of(target[d]) <= within]
    rest = [d for d in range(len(shape)) if d not in keyed]
    sizes = [[shape[d] for d in part] for part in (keyed, rest)]
    key, column = (linear([target[d] for d in part], contiguous_strides(own))
                   for part, own in zip((keyed, rest), sizes))
    rows, columns = Variable("key", product(sizes[0])), Variable("column", product(sizes[1]))
    element = dict(zip(keyed, unravelled(as_index(rows), sizes[0])))
    element |= zip(rest, unravelled(as_index(columns), sizes[1]))
    # A key has a row once it is named more than FEW times.
    most_rows = product([v.extent for v in outer]) // (FEW + 1)
    seen, wide = Partial(value, rows.extent), Partial(value, most_rows * columns.extent)
    seen.dtype, wide.dtype = int32, float64
    return Frequent(seen, wide, most, key, column, outer, inner,
                    [element[d] for d in range(len(shape))], rows, columns)
