"""Sums by index: places that an index names often are added in float64, beside the others.

In: where a scatter adds, and in which loops. Out: a `Frequent`: memory to count in and to add in.
Called by `loops.py`; `printing_by_index.py` writes the lines. One place after another is added in
float32 while it is named at most FEW times, so that its error is bounded; places named more often
get a row of wider memory. How often each is named is counted first, in whole rows of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.ir.sizes import SizeLike
from tracejit.lowering.emit import Partial
from tracejit.lowering.index import (
    Index,
    Variable,
    as_index,
    contiguous_strides,
    linear,
    product,
    resolved,
)
from tracejit.lowering.scalars import variables_of
from tracejit.ops.types import float64, int32

FEW = 1024  # additions to one place that float32 may take one after another


@dataclass
class Position:
    """An element of the result: `key` numbers what the indices name, `column` the rest of it."""

    key: Index
    column: Index


@dataclass
class Frequent:
    """Memory of one sum by index.

    seen    for each key how often it is named, then the number of its row of `wide` from 1 on; 0:
            it has none
    wide    float64, `width` columns for each key that is named more than FEW times
    most    a bound of how often one place is named
    loops   the loops of the source that a key depends on
    """

    seen: Partial
    wide: Partial
    keys: SizeLike
    width: SizeLike
    most: SizeLike
    loops: list[Variable]
    at: Position  # where an element of the source is added
    of: Position  # an element of the result
    result: list[Index]  # the same element
    whole: list[Variable]  # the loops over the result

    def memory(self) -> tuple[Partial, Partial]:
        return self.seen, self.wide


def frequent(value: Any, dims: Sequence[int], most: SizeLike,
             target: Sequence[Any], each: Sequence[Variable],
             place: Sequence[Index], whole: Sequence[Variable]) -> Frequent | None:
    """Memory for sums into `value`, whose dimensions `dims` the indices name; None: no place can
    be named often.

    target, each   where an element of the source goes, and the loops over the source
    place, whole   an element of the result, and the loops over the result
    """
    if value.dtype.name != "float32" or type(most) is int and most <= FEW:
        return None
    shape = [resolved(s) for s in value.shape]
    rest = [d for d in range(len(shape)) if d not in dims]

    def position(index: Sequence[Any]) -> Position:
        key, column = (linear([as_index(index[d]) for d in part],
                              contiguous_strides([shape[d] for d in part]))
                       for part in (dims, rest))
        return Position(key, column)

    at = position(target)
    used = variables_of(at.key)
    loops = [v for v in each if v.name in used]
    width = product([shape[d] for d in rest])
    keys = product([shape[d] for d in dims])
    named = product([v.extent for v in loops])
    seen, wide = (Partial(value, extent) for extent in (keys, named // (FEW + 1) * width))
    seen.dtype, wide.dtype = int32, float64
    return Frequent(seen, wide, keys, width, most, loops, at, position(place), [*place], [*whole])
