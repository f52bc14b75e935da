"""Dual tensors: tensors with a tangent, which ops carry on from their operands to their results.

In: primals and tangents, from `autograd.forward_ad`. Out: the tangents of their results. An open
level takes the place of the tracer, as the mapping of `vmap` does. It hands on all that tensors
ask, and sees each op with its operands and results. The op's gradient rules, run twice, give the
tangent of a result: a gradient is linear in the gradient it starts from. Tangents are ordinary
tensors, and the tape records them with their operands. Tangents of views are views, so a write
through one is seen by the others.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager import backward
from tracejit.core.eager.dispatch import is_view
from tracejit.core.eager.function import run_forward
from tracejit.core.eager.modes import enable_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import over_same_memory
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import View, chain_of
from tracejit.core.eager.writing import assign, write_memory
from tracejit.core.ops.cotangents import cotangents
from tracejit.core.ops.creation import zeros_like
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import FLOATING
from tracejit.func.mapping import Mapping


class Duals(Mapping):
    """Level of forward mode: holds the tangents of tensors.

    held  by a tensor's id: a weak reference to it, its tangent
    """

    def __init__(self, below: Any) -> None:
        super().__init__("forward_ad", below, 0, "same")
        self.held: dict[int, tuple[weakref.ref, Any]] = {}

    def has(self, x: Any) -> bool:
        """Return False: no tensor is a sample of a level."""
        return False

    # -- tangents ------------------------------------------------------------------------------
    def tangent(self, x: Any) -> Any:
        """Return the tangent of a tensor, or None. A view has a view of its parent's tangent."""
        found = self.held.get(id(x))
        if found is not None:
            return found[1]
        view = x._view
        if type(view) is not View:
            return None
        of_parent = self.tangent(view.parent)
        if of_parent is None:
            return None
        if view.op is None:
            return self.hold(x, of_parent)
        return self.hold(x, self.outside(view.op, of_parent, *view.operands, **view.attributes))

    def hold(self, x: Any, tangent: Any) -> Any:
        """Give a tensor this tangent, and return the tangent."""
        key = id(x)
        self.held[key] = weakref.ref(x, lambda _: self.held.pop(key, None)), tangent
        return tangent

    def dual(self, primal: Any, tangent: Any) -> Any:
        """Return a view of a tensor, with this tangent. RuntimeError where one of both has a
        tangent."""
        check_size(primal, tangent)
        if self.tangent(tangent) is not None:
            raise RuntimeError("Setting a forward grad that itself has a forward gradient at the "
                               "same level0 is not supported.")
        if self.tangent(primal) is not None:
            raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward "
                               "gradient at the same level 0 is not supported.")
        made = self.outside(primal.view_as, primal)
        self.hold(made, tangent)
        return made

    def primal(self, x: Any) -> Any:
        """Return a view of a tensor, without a tangent."""
        return self.outside(x.view_as, x)

    def among(self, tensors: Sequence[Any]) -> dict[int, Any]:
        """Return the tangents of tensors, by their number in the sequence."""
        found = ((k, self.tangent(x)) for k, x in enumerate(tensors) if isinstance(x, TensorState))
        return {k: t for k, t in found if t is not None}

    # -- ops -----------------------------------------------------------------------------------
    def run(self, op: Op, operands: tuple, attributes: dict) -> Any:
        return self.outside(self._below_run(), op, operands, attributes)

    def ran(self, op: Op, operands: tuple, attributes: dict, result: Any) -> None:
        """Give the results of an op, which are on the tape by now, their tangents."""
        tangents = self.among(operands)
        if tangents:
            self.outside(self._push, op, operands, attributes, result, tangents)

    def _push(self, op: Op, operands: tuple, attributes: dict, result: Any,
              tangents: dict[int, Any]) -> None:
        if op.views and is_view(result, operands[0]):
            if 0 in tangents:
                self.hold(result, op(tangents[0], *operands[1:], **attributes))
            return
        results = result if type(result) is tuple else (result,)
        made = pushed(op, operands, attributes, results, tangents)
        for x, t in zip(results, made):
            if t is not None:
                shared = type(t._view) is View or any(t is other for other in tangents.values())
                self.hold(x, t.clone() if shared else t)

    def write(self, tensor: Any, value: Any) -> None:
        """Write memory, and the value's tangent into the tangent of the tensors that look there."""
        of_value = self.tangent(value)
        if of_value is not None and self.tangent(tensor) is None:
            base, _ = chain_of(tensor)
            self.hold(base, self.outside(zeros_like, base))
        own = self.tangent(tensor)
        self.outside(write_memory, tensor, value)
        if own is not None:
            self.outside(assign, own, zeros_like(own) if of_value is None else of_value)

    # -- what tensors ask ------------------------------------------------------------------------
    def alias(self, tensor: Any) -> Any:
        made = self.outside(over_same_memory, tensor)
        tangent = self.tangent(tensor)
        if tangent is not None:
            self.hold(made, tangent)
        return made

    def severed(self, tensor: Any) -> Any:
        found = super().severed(tensor)
        return found if self.tangent(tensor) is None else self.outside(over_same_memory, found)

    def hides(self, tensors: Any) -> None:
        if self.below is not None:
            self.outside(self.below.hides, tensors)

    def pushes(self, tensors: Sequence[Any]) -> UsersPush | None:
        """Return a `UsersPush` if an argument of a user's function has a tangent, else None."""
        tangents = self.among(tensors)
        return UsersPush(self, tangents) if tangents else None


class UsersPush:
    """Application of an `autograd.Function` to dual tensors."""

    def __init__(self, level: Duals, tangents: dict[int, Any]) -> None:
        self.level, self.tangents = level, tangents

    def forward(self, function: Any) -> Callable[..., Any]:
        """Return the function's forward, in which tensors have no tangents."""
        return lambda *call: self.level.outside(run_forward, function, *call)

    def results(self, jvp: Callable[..., Any], node: Any, args: tuple,
                outputs: Sequence[Any]) -> None:
        """Give the results the tangents that the user's `jvp` returns."""
        given = [self._given(k, x, node) for k, x in enumerate(args)]
        found = self.level.outside(jvp, node, *given)
        made = found if isinstance(found, tuple) else (found,)
        if len(made) != len(outputs):
            raise RuntimeError("Function's jvp returned an invalid number of forward gradients "
                               f"(expected {len(outputs)} but got {len(made)})")
        for k, (x, t) in enumerate(zip(outputs, made)):
            if t is None or not isinstance(x, TensorState) or x._dtype.category < FLOATING:
                continue
            if not isinstance(t, TensorState):
                raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad "
                                   f"output {k}.")
            check_size(x, t)
            self.level.hold(x, t)

    def _given(self, k: int, x: Any, node: Any) -> Any:
        """Return the tangent of an argument; zeros where it has none but could."""
        could = isinstance(x, TensorState) and x._dtype.category >= FLOATING
        if k in self.tangents or not node.materialize_grads or not could:
            return self.tangents.get(k)
        return self.level.outside(zeros_like, x)


def pushed(op: Op, operands: tuple, attributes: dict, results: Sequence[Any],
           tangents: dict[int, Any]) -> list[Any]:
    """Return the tangents of an op's results from those of its operands; None where there is
    none."""
    needed = [k for k in tangents if op.differentiable(k)]
    floating = [isinstance(x, TensorState) and x._dtype.category >= FLOATING for x in results]
    if not needed or not any(floating):
        return [None] * len(results)
    if op.scatter is not None and op.scatter.combine == "set":
        # The last of several elements that go to one place is there; its rule gives all the grad.
        placed = (_tangent_or_zeros(x, tangents.get(k)) if op.differentiable(k) else x
                  for k, x in enumerate(operands))
        return [op(*placed, **attributes)]
    with enable_grad():
        starts = [zeros_like(x).detach().requires_grad_() if yes else None
                  for x, yes in zip(results, floating)]
        grads = cotangents(op, starts, operands, results, attributes, needed)
    pairs = [(g, tangents[k]) for k, g in zip(needed, grads) if g is not None and g.requires_grad]
    asked = [x for x in starts if x is not None]
    if not pairs:
        return [None if x is None else zeros_like(x).detach() for x in starts]
    held, given = zip(*((g, t if t.dtype is g.dtype else t.to(g.dtype)) for g, t in pairs))
    around = any(isinstance(x, TensorState) and x.requires_grad
                 for x in (*operands, *results, *given))
    found = iter(backward.grad(held, asked, given, create_graph=active.grad_enabled and around,
                               materialize_grads=True))
    return [None if x is None else next(found) for x in starts]


def _tangent_or_zeros(x: Any, tangent: Any) -> Any:
    return zeros_like(x) if tangent is None else tangent.to(x.dtype)


def check_size(x: Any, tangent: Any) -> None:
    """Raise RuntimeError for a tangent of another shape."""
    if tuple(x.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(x.shape)} while the given "
            f"forward gradient is of size {list(tangent.shape)}."
        )
