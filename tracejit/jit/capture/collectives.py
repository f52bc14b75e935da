"""Collectives in a recording: nodes in one order, which run when the program does.

In: a collective's record, its tensors, the words of its process group. Out: a deferred tensor.
Called by the tracer for `distributed`.

Other processes wait for these nodes, so each runs once. A check of values that depend on one cannot
run beforehand, and the plain function cannot run again after it: such a check ends the segment
(`awaits`). Regions and later backward passes, which may run again or not at all, have no
collectives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracejit.core.memory import CPU
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType, int64
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.location import user_location
from tracejit.jit.ir.graph import Value

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer


def record(tracer: Tracer, op: Op, operands: tuple, words: Any, attributes: dict) -> Any:
    """Append a collective behind the last one; return its result as a tensor, or None."""
    if tracer.root is tracer and tracer.differentiating:
        raise backward_calls(op.name)
    if tracer.root is not tracer or tracer.speculation_depth or tracer.differentiating:
        raise RegionRefused(f"it calls {op.name}, for which other processes wait")
    values = tracer.operands(operands)
    known = tracer.groups.get(id(words))
    if known is None:
        kind = TensorType(int64, tuple(words._shape), CPU)
        group = tracer.graph.input(kind, source="process group")
        tracer.groups[id(words)] = words, group
        tracer.constants[id(words)] = words
    else:
        group = known[1]
    graph = tracer.graph
    graph.location, graph.detached = user_location(), False
    token = group if tracer.token is None else tracer.token
    made = graph.append(op, (*values, group, token), attributes)
    made = made if type(made) is tuple else (made,)
    tracer.token = made[-1]
    return tracer.tensor_of(made[0]) if len(made) > 1 else None


def backward_calls(name: str) -> RegionRefused:
    """Return the error of a later backward that calls a collective: it may run again, or never."""
    return RegionRefused(f"calls {name}, for which other processes wait")


def awaits(values: Iterable[Any]) -> bool:
    """Return True if one of the values depends on a collective that has not run."""
    seen: set[Value] = set()
    stack = [x for x in values if type(x) is Value]
    while stack:
        value = stack.pop()
        if value in seen or value.node is None:
            continue
        if value.node.effect:
            return True
        seen.add(value)
        stack.extend(value.node.operand_values())
    return False
