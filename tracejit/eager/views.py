"""Views: which tensors look at the same memory, and how each came to look where it does.

In: results of view ops, from dispatch. Out: records in `tensor._view`, from which in-place writes
rebase histories (writing.py) and stale views regenerate theirs (`tape.refresh`).
"""

from __future__ import annotations

from typing import Any

from tracejit.ops.record import Op


class Family:
    """What a tensor and all views of it share.

    generation  how often the base's history was replaced by a write
    version     None: the Storage's counter counts writes; an int for `.data`, which counts its own
    inference   made in inference mode
    """

    __slots__ = ("generation", "version", "inference")

    def __init__(self, version: int | None = None, inference: bool = False):
        self.generation, self.version, self.inference = 0, version, inference


class View:
    """`op(parent, *operands, **attributes)` looks at the parent's memory.

    generation  the family's, when this view's own history was made
    untracked   made in no_grad mode
    viewed      whether there have been views of this view
    output      of what `split` and the like give: PyTorch's name of the node, and which it is
    """

    __slots__ = ("parent", "op", "operands", "attributes", "family", "generation", "untracked",
                 "viewed", "output")

    def __init__(self, parent: Any, op: Op, operands: tuple, attributes: dict, family: Family,
                 untracked: bool):
        self.parent, self.op, self.operands, self.attributes = parent, op, operands, attributes
        self.family, self.generation, self.untracked = family, family.generation, untracked
        self.viewed = False
        self.output: tuple[str, int] | None = None


def family_of(x: Any) -> Family:
    """The family of a tensor whose `_view` is set."""
    view = x._view
    return view if type(view) is Family else view.family


def counting_family(x: Any) -> Family | None:
    """Of what is from `.data` the family, which counts writes to it; None: its Storage does."""
    if x._view is None:
        return None
    family = family_of(x)
    return None if family.version is None else family


def chain_of(x: Any) -> tuple[Any, list[View]]:
    """The base of a view, and the view ops that lead from it to x."""
    steps = []
    while type(x._view) is View:
        steps.append(x._view)
        x = x._view.parent
    return x, steps[::-1]
