"""Exchange of two tensors: each object gets the other's elements, history and attributes.

In: two tensors. Out: the same two objects, exchanged. Nodes that keep one of them, and views of it,
follow the memory, not the object.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.hooks import retains_grad
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.nodes import LeafSink
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import Saved
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.views import View, stand_for, standing_for
from tracejit.core.eager.writing import take_memory
from tracejit.core.memory.readers import about_to_write
from tracejit.core.memory.referrers import referrers

POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: this can happen when "
    "you try to run backward on a tensor that was swapped. Change what tensors are before running "
    "forward, or after both forward and backward."
)
_FIELDS = tuple(n for n in TensorState.__slots__ if n not in ("__dict__", "__weakref__"))
_HOLDERS = {View: "parent", Saved: "tensor"}


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange two tensors in place: elements, class, attributes, gradient and history.

    >>> import tracejit
    >>> x, y = tracejit.ones(1), tracejit.zeros(2)
    >>> tracejit.utils.swap_tensors(x, y)
    >>> x
    tensor([0., 0.])

    Weak references stay with the object. Afterwards a backward raises RuntimeError if one of the
    two was a leaf of its history. Raises RuntimeError after `retain_grad()`, TypeError for other
    objects.
    """
    for x in (t1, t2):
        if not isinstance(x, TensorState):
            raise TypeError(f"swap_tensors: expected tensors, got {type(x).__name__}")
        if retains_grad(x):
            raise RuntimeError("swap_tensors: Expected no weakrefs to a tensor that is swapped, "
                               "but retain_grad() was called on it")
    t1, t2 = resolve_identity(t1), resolve_identity(t2)
    if t1 is t2:
        return
    if active.tracer is not None:
        active.tracer.break_graph(t1, "the function calls swap_tensors")
        active.tracer.break_graph(t2, "the function calls swap_tensors")
    holders = [*_holders(t1, t2), *_holders(t2, t1)]
    followers = [(one, x) for x in (t1, t2) for one in standing_for(x)]
    for x in (t1, t2):
        if x._storage is not None:
            about_to_write(x._storage)
        _poison(x)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for name in _FIELDS:
        one, other = getattr(t1, name), getattr(t2, name)
        setattr(t1, name, other)
        setattr(t2, name, one)
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for holder, name, x in holders:
        setattr(holder, name, x)
    for one, x in followers:
        stand_for(one, x)
        take_memory(one, x)
        one.__dict__ = x.__dict__


def _holders(x: Any, other: Any) -> list[tuple[Any, str, Any]]:
    """List (holder, attribute, `other`) for the records that hold `x` and must hold `other`
    then."""
    return [(r, _HOLDERS[type(r)], other) for r in referrers([x])
            if type(r) in _HOLDERS and not (type(r) is View and r.op is None)]


def _poison(x: Any) -> None:
    """Make the sink of a leaf, if there is one, raise when it runs. The leaf gets a new sink."""
    if type(x._node) is LeafSink:
        sink = x._node.found()
        if sink is not None:
            sink.register_prehook(_refuse)
        x._node = None


def _refuse(grads: tuple) -> None:
    raise RuntimeError(POISONED)
