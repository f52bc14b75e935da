"""Effects of an in-place write on the tape: the written tensor gets the history of the result.

In: a tensor about to be written, and the result. Out: new nodes for the tensor and the base it
views, and a copy of its old value if the op's gradient reads that. Called by `writing.store` and
custom Functions.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.nodes import Edge, Node, edge_of, grad_fn_of
from tracejit.core.eager.origins import check_write
from tracejit.core.eager.recording import ended_to_hints
from tracejit.core.eager.saved import Saved, SavedOutput, alias
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tape import OpNode, move_retained, refresh, type_of
from tracejit.core.eager.views import View, chain_of
from tracejit.core.ops import creation
from tracejit.core.ops.record import apply
from tracejit.core.ops.types import FLOATING, TensorType

LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."


def check_rebase(self: TensorState) -> None:
    """Raise RuntimeError if a write needs a history that cannot be given."""
    if self._dtype.category < FLOATING:
        raise RuntimeError(f"cannot record a write to a tensor of dtype {self._dtype.name}: no "
                           "gradient")
    if type(self._view) is View:
        check_write(self)
        _, steps = chain_of(self)
        if any(v.parent._requires_grad and grad_fn_of(v.parent) is None for v in steps):
            raise RuntimeError(LEAF_VIEW)


# An in-place op may save its operand some nodes before its result: casts, parts of a composite.
_DEPTH_OF_AN_OP = 3


def keep_original(self: TensorState, node: Node, since: int) -> None:
    """Replace `self`, where the op that writes it saved it, by a copy: its gradient reads the old
    value.

    Nodes from before `since` are of other ops: they keep `self`, and their backward raises.
    """
    original = None
    level = [node]
    for _ in range(_DEPTH_OF_AN_OP):
        for n in level:
            if not isinstance(n, OpNode) or n.operands is None or n.sequence < since:
                continue
            if any(type(x) is Saved and x.tensor is self for x in n.operands):
                original = _original(self) if original is None else original
                n.operands = tuple([original if type(x) is Saved and x.tensor is self else x
                                    for x in n.operands])
        level = [e[0] for n in level for e in n.edges if e is not None]


def _original(self: TensorState) -> Saved:
    """Copy a tensor as it is now, with the history it has now."""
    copy = alias(self).clone()
    if self._requires_grad:
        copy._node, copy._output_nr = edge_of(self)
        copy._requires_grad = True
    return Saved(copy)


def rebase(self: TensorState, result: Any, overwrites: bool = False) -> None:
    """Give `self` (and the base it views) the history of `result`. `overwrites`: the result does
    not depend on `self`, so the gradient of the old elements is zero."""
    base, steps = chain_of(self)
    if steps:
        source = edge_of(result) if result._requires_grad else None
        if source is not None:
            _keep_written(*source, self, result)
        old = edge_of(base) if base._requires_grad else None
        _rebase(base, CopySlices(old, source, steps, type_of(base), type_of(result)), 0)
        refresh(self)
        return
    node: Node
    if not result._requires_grad or overwrites and self._requires_grad:
        source = edge_of(result) if result._requires_grad else None
        node, number = Overwrite(edge_of(base), source, type_of(self)), 0
    else:
        node, number = edge_of(result)
        _keep_written(node, number, self, result)
    _rebase(base, node, number)
    refresh(self)


def _rebase(base: TensorState, node: Node, number: int) -> None:
    set_history(base, node, number)
    family = base._view
    if family is not None:
        family.generation += 1
        family.written_by = None if node.opaque else (node.name(), number)


def _keep_written(node: Node, number: int, self: TensorState, result: Any) -> None:
    """Make the node save `self` as its result instead of `result`. So later writes to `self` are
    noticed, and the memory of `result` is freed."""
    if not isinstance(node, OpNode) or node.outputs is None:
        return
    kept = node.outputs[number]
    if type(kept) is SavedOutput and result._view is None:
        outputs = list(node.outputs)
        outputs[number] = SavedOutput(self, node, number)
        node.outputs = tuple(outputs)


def set_history(x: TensorState, node: Node, number: int) -> None:
    """Make x output `number` of `node`. A retained gradient is that of the new history."""
    before, output = grad_fn_of(x), x._output_nr
    x._node, x._output_nr, x._requires_grad = node, number, True
    move_retained(x, before, output)


class Overwrite(Node):
    """In-place write of a result that does not depend on the old elements: their gradient is
    zero."""

    __slots__ = ("type",)

    def __init__(self, before: Edge, source: Edge, type: TensorType):
        super().__init__((before, source))
        self.type = type

    def indifferent(self) -> bool:
        return self.extras is None

    def apply(self, grads: list) -> list:
        return [creation.zeros_of(grads[0], ended_to_hints(self.type)), grads[0]]

    def name(self) -> str:
        return "CopyBackwards"


class CopySlices(Node):
    """In-place write through a view. Outside the view the gradient goes on to the base's old
    history, inside to that of the written result."""

    __slots__ = ("steps", "base_type", "source_type")

    def __init__(self, base: Edge, source: Edge, steps: list[View], base_type: TensorType,
                 source_type: TensorType):
        super().__init__((base, source))
        self.steps = [(s.op, s.operands, s.attributes) for s in steps]
        self.base_type, self.source_type = base_type, source_type

    def indifferent(self) -> bool:
        return self.extras is None

    def apply(self, grads: list) -> list:
        seen = [grads[0]]
        self.steps = ended_to_hints(self.steps)
        for op, operands, attributes in self.steps:
            seen.append(apply(op, (seen[-1], *operands), attributes))
        base = self._without_slice(seen) if self.edges[0] is not None else None
        return [base, seen[-1] if self.edges[1] is not None else None]

    def _without_slice(self, seen: list) -> Any:
        grad = creation.zeros_of(seen[0], ended_to_hints(self.source_type))
        for (op, operands, attributes), before in zip(reversed(self.steps), reversed(seen[:-1])):
            grad = op.view_inverse(before, grad, *operands, **attributes)
        return grad
