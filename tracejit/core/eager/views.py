"""Views: which tensors look at the same memory, and how each came to look where it does.

In: results of view ops, from dispatch. Out: records in `tensor._view`, from which in-place writes
rebase histories (writing.py) and stale views regenerate theirs (`tape.refresh`).
"""

from __future__ import annotations

import weakref
from typing import Any


class AliasFamily:
    """State that a tensor and all its views share.

    generation  how often the base's history was replaced by a write
    version     None: the Storage's counter counts writes; an int for `.data`, which counts its own
    inference   made in inference mode
    written_by  PyTorch's name of the node of the last such write, and which of its results this is
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
    generation  the family's, when this view's own history was made
    origin      of a view that may not be used in every way: how it was made (origins.py)
    version     of such a view: that of its memory when it was made
    viewed      whether there have been views of this view
    output      of what `split` and the like give: PyTorch's name of the node, and which it is
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
    """Return the family that counts writes to what is from `.data`; None: its Storage does."""
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
    """Return the tensor that x stands for: itself, or the one it turned out to be."""
    while type(x._view) is View and x._view.op is None:
        x = x._view.parent
    return x


def family_made(x: Any) -> AliasFamily:
    """Return the family of a tensor, made where it has none."""
    if x._view is None:
        x._view = AliasFamily()
    return family_of(x)


def stand_for(x: Any, other: Any) -> None:
    """From now on x stands for `other`, whose history it has, and so does what stood for x."""
    family, followers = family_made(other), standing_for(x)
    x._view = View(other, None, (), {}, family)
    x._view.viewed = True  # for all that is known here
    for one in (x, *followers):
        one._view.family, one._view.generation = family, -1
    known = [r for r in family.stand_ins if r() is not None]
    family.stand_ins = (*known, *map(weakref.ref, (x, *followers)))


def standing_for(x: Any) -> list:
    """Return the tensors that stand for x: they follow it wherever it gets another history or
    memory."""
    if x._view is None:
        return []
    held = [r() for r in family_of(x).stand_ins]
    return [one for one in held if one is not None and one is not x and canonical(one) is x]
