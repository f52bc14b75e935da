"""Views: the record of which tensors share memory, and by which ops.

In: results of view ops, from dispatch. Out: records in `tensor._view`. In-place writes rebase
histories by them (writing.py), and stale views regenerate theirs (`tape.refresh`).
"""

from __future__ import annotations

import weakref
from typing import Any


class AliasFamily:
    """State that a tensor and all its views share.

    generation  how often a write replaced the base's history
    version     None: the Storage counts writes; int: the family counts its own, as that of `.data`
    inference   made in inference mode
    written_by  PyTorch's name of the node of the last such write, and its result's number
    stand_ins   weak references to tensors that stand for members
    """

    __slots__ = ("generation", "version", "inference", "written_by", "stand_ins")

    def __init__(self, version: int | None = None, inference: bool = False):
        self.generation, self.version, self.inference = 0, version, inference
        self.written_by: tuple[str, int] | None = None
        self.stand_ins: tuple[weakref.ref, ...] = ()


class View:
    """Record of a view: `op(parent, *operands, **attributes)` looks at the parent's memory.

    op          None: the tensor is no view, it stands for the parent itself
    generation  the family's, when this view's own history was made; -1: make it again
    origin      how the view was made, if that forbids some uses (origins.py)
    version     of its memory when the view was made, or marked
    viewed      True if there have been views of this view
    output      of a piece from `split` and the like: (PyTorch's name of the node, result number)
    """

    __slots__ = ("parent", "op", "operands", "attributes", "family", "generation", "origin",
                 "version", "viewed", "output")

    def __init__(self, parent: Any, op: Any, operands: tuple, attributes: dict,
                 family: AliasFamily):
        self.parent, self.op, self.operands, self.attributes = parent, op, operands, attributes
        self.family, self.generation = family, family.generation
        self.origin: str | None = None
        self.version = 0
        self.viewed = False
        self.output: tuple[str, int] | None = None


def family_of(x: Any) -> AliasFamily:
    """Return the family of a tensor whose `_view` is set."""
    view = x._view
    return view if type(view) is AliasFamily else view.family


def counting_family(x: Any) -> AliasFamily | None:
    """Return the family that counts writes, as for `.data`. None: the Storage counts them."""
    if x._view is None:
        return None
    family = family_of(x)
    return None if family.version is None else family


def chain_of(x: Any) -> tuple[Any, list[View]]:
    """Return the base of a view, and the view ops that lead from it to x."""
    steps = []
    while type(x._view) is View:
        if x._view.op is not None:
            steps.append(x._view)
        x = x._view.parent
    return x, steps[::-1]


def canonical(x: Any) -> Any:
    """Return the tensor that x stands for; x itself if it stands for no other."""
    while type(x._view) is View and x._view.op is None:
        x = x._view.parent
    return x


def family_made(x: Any) -> AliasFamily:
    """Return the family of a tensor; make one if it has none."""
    if x._view is None:
        x._view = AliasFamily()
    return family_of(x)


def stand_for(x: Any, other: Any) -> None:
    """Make x, and all tensors that stand for x, stand for `other` and have its history."""
    family, followers = family_made(other), standing_for(x)
    x._view = View(other, None, (), {}, family)
    x._view.viewed = True  # unknown here, so assumed
    for one in (x, *followers):
        one._view.family, one._view.generation = family, -1
    known = [r for r in family.stand_ins if r() is not None]
    family.stand_ins = (*known, *map(weakref.ref, (x, *followers)))


def standing_for(x: Any) -> list:
    """Return the tensors that stand for x. They follow it to another history or memory."""
    if x._view is None:
        return []
    held = [r() for r in family_of(x).stand_ins]
    return [one for one in held if one is not None and one is not x and canonical(one) is x]
