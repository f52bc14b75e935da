"""Ops that fail for some values, checked while a function is recorded.

In: an op about to be recorded, its operands. Out: graph values to record it with, or the error of
eager mode. The error is raised at the user's line, before any later line has an effect. Called by
the tracer for ops with `may_fail`. A replay needs none of this: its program checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.state import of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.allocator import memory_limit
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import hint, overflows
from tracejit.core.ops.types import INTEGER
from tracejit.jit.capture import collectives
from tracejit.jit.capture.breaks import add_break_to, break_here
from tracejit.jit.capture.inputs import values_of
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import at_size, interpret
from tracejit.jit.ir.verify import GraphError

_LARGE = memory_limit()
_KEPT_BYTES = 1 << 24  # of a node's results: until the recording ends


def checked(tracer: Any, op: Op, operands: tuple, values: tuple, attributes: dict) -> tuple:
    """Return `values`, or new ones if the segment ended, for an op that does not fail on its
    operands now.

    Raise eager mode's error if the op fails.
    """
    decisive = [v for v in values if _is_decisive(op, v)]
    if tracer.token is not None and collectives.awaits(decisive):
        # the program checks before it meets other processes
        tracer.add_break(f"{op.name} fails for some values, and these come from other processes")
        return _after_flush(tracer, op, operands, attributes)
    cacheable = tracer.cacheable and not tracer.breaks
    if not cacheable and any(v.node is not None and v not in tracer.looked for v in decisive):
        # cheaper than computing them here and in the program
        return _after_flush(tracer, op, operands, attributes)
    for value in decisive:
        if value not in tracer.looked:
            tracer.looked[value] = _content(tracer, value)
    if _succeeds(op, values, attributes, tracer.looked):
        return values
    run_eagerly(tracer, op, operands, attributes)
    return tracer.operands(operands)


def _after_flush(tracer: Any, op: Op, operands: tuple, attributes: dict) -> tuple:
    """End the segment, and check the op in the next one."""
    operands = _with_states(tracer, operands)
    attributes = at_size(attributes)
    tracer.flush()
    return checked(tracer, op, operands, tracer.operands(operands), attributes)


def node_succeeds(tracer: Any, outputs: Sequence[Value]) -> bool:
    """Return True if a node with regions, which may fail, does not fail on what its operands hold
    now.

    What it computes is kept, so that the check of a loop's backward does not run the loop again.
    """
    if tracer.token is not None and collectives.awaits(outputs):
        return False
    try:
        found = _computed(tracer, outputs)
    except GraphError:
        return False
    if sum(array.nbytes for array in found) <= _KEPT_BYTES:
        tracer.looked.update(zip(outputs, found))
    return True


def run_eagerly(tracer: Any, op: Op, operands: tuple, attributes: dict) -> Any:
    """Add a break, end the segment and run the op as eager mode does: usually that raises."""
    # If the function catches the exception, what follows depends on it.
    what = "the function raises an exception" if op.name == "raise_if" else f"{op.name} fails"
    add_break_to(tracer.breaks, break_here(f"{what} for these values"))
    return run_now(tracer, op, operands, attributes)


def run_now(tracer: Any, op: Op, operands: tuple, attributes: dict) -> Any:
    """End the segment and run the op as eager mode does."""
    operands = _with_states(tracer, operands)
    tracer.flush()
    attributes = at_size(attributes)  # sizes may be of earlier segments
    operands = tuple([x.concretize() if is_a(x, SymNumber) else x for x in operands])
    with tracer.paused():
        return Tensor.dispatch(op, operands, attributes)


def too_large(made: Any) -> bool:
    """Return True if no memory could hold a result, or its size is negative.

    Then the op runs at once, so that eager mode's error is raised.
    """
    for value in made if is_a(made, tuple) else (made,):
        shape, itemsize = [hint(s) for s in value.type.shape], value.type.dtype.itemsize
        if math.prod(shape) * itemsize > _LARGE or overflows(shape, itemsize):
            return True
        if min(shape, default=0) < 0:
            return True
    return False


def _is_decisive(op: Op, value: Any) -> bool:
    """Return True if the contents of a value decide whether the op fails.

    Those of positions and predicates do, and those of all operands of host ops, such as weights.
    """
    return is_a(value, Value) and (
        op.kind == "extern" or value.type.dtype.category <= INTEGER
    )


def _with_states(tracer: Any, operands: tuple) -> tuple:
    """Return operands with copies of generators' states in place of the states: a flush draws from
    them."""
    words = {id(draws.tensor): draws.words for draws in tracer.generators.values()}
    return tuple(of_array(words[id(x)].copy()) if id(x) in words else x for x in operands)


def _content(tracer: Any, value: Value) -> np.ndarray:
    """Return what a value of the recording holds: read, or computed from the inputs it depends
    on."""
    if value.node is None:
        return _array(values_of([tracer.input_sources()[value]])[0])
    return _computed(tracer, [value])[0]


def _computed(tracer: Any, outputs: Sequence[Value]) -> list[np.ndarray]:
    """Compute values of the recording from its inputs and from what was computed before."""
    sources = tracer.input_sources()
    inputs = [v for v in tracer.graph.inputs if v in sources]
    known = [v for v in tracer.looked if v.node is not None and v.graph is tracer.graph]
    part = extract(tracer.graph, "check", [*inputs, *known], outputs)
    arrays = [_array(x) for x in values_of([sources[v] for v in inputs])]
    arrays += [tracer.looked[v] for v in known]
    return unwatched(lambda: interpret(part, arrays, symbols=tracer.graph.scope.hints)).outputs


def _array(x: Any) -> Any:
    return x.array if is_a(x, Tensor) else np.asarray(x)


def _succeeds(op: Op, values: tuple, attributes: dict, known: dict) -> bool:
    """Return True if the op runs on the known operands as they are and ones for all others."""
    graph, operands, arrays = Graph(op.name), [], []
    for value in values:
        if is_a(value, Value):
            kind = value.type._replace(shape=tuple(hint(s) for s in value.type.shape))
            operand = graph.input(kind)
            operand.is_weak = value.is_weak
            operands.append(operand)
            one = np.ones((), kind.dtype.numpy)  # weights that are all zero are no distribution
            arrays.append(known[value] if value in known else np.broadcast_to(one, kind.shape))
        else:
            operands.append(at_size(value))
    made = graph.append(op, tuple(operands), at_size(attributes))
    graph.outputs = list(made) if is_a(made, tuple) else [made]
    try:
        unwatched(lambda: interpret(graph, arrays, symbols={}))
    except GraphError:
        return False
    return True
