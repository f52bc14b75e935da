"""Which cell of the coverage table a step falls into: op, dtype, shape class, alias class.

In: a Builder before the step runs, and its Draft. Out: cells. Called by `builder.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tracejit as tj

if TYPE_CHECKING:
    from tests.random_programs.builder import Builder, Draft


def cells(b: Builder, draft: Draft) -> frozenset[tuple[str, str, str, str]]:
    if not draft.operands:
        return frozenset([(draft.op, "-", "-", "-")])
    first = draft.writes or draft.operands[0]
    alias = ("write " if draft.writes else "") + _alias(b, first)
    return frozenset(
        (draft.op, b.dtype(first), _shape_class(b, draft, first, k), alias)
        for k in range(b.count)
    )


def _shape_class(b: Builder, draft: Draft, first: str, k: int) -> str:
    shape = tuple(b.value(first, k).shape)
    others = [b.value(n, k) for n in draft.operands]
    if 0 in shape:
        return "0"
    if any(
        isinstance(o, tj.Tensor) and o.dtype.name != "int64" and tuple(o.shape) != shape
        for o in others
    ):
        return "broadcast"
    return "0-dim" if not shape else "1" if 1 in shape else "many"


def _alias(b: Builder, name: str) -> str:
    x = b.value(name)
    if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
        return "expanded"
    looking = [
        a
        for a in b.arguments
        if a.memory and getattr(b.value(a.name), "_storage", None) is x._storage
    ]
    if len(looking) > 1:
        return "shared"
    if not x.is_contiguous():
        return "strided"
    if any(x is b.value(a.name) for a in looking):
        return "input"
    return "view" if looking or x._is_view() else "fresh"
