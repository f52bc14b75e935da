"""Constant folding: values of recorded tensors that no unknown input of the call decides.

In: a deferred tensor whose value Python needs. Out: a tensor that holds the value, computed in
eager mode; else None. Sizes, runtime numbers, and small tensors that are no arguments may decide
the value. Guards then watch these sizes, numbers and contents: every replay would find the same
value, so the recording goes on. If any other input of the graph or a random number decides, the
result is None. Called where a branch is taken, a number or a list is read, a shape depends on
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.dispatch import dispatch
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.record import Op
from tracejit.jit.capture.concretize import concretize
from tracejit.jit.capture.known_contents import knowable, learn
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.settling import with_numbers
from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.ir.sizes import SymInt


def fold_constant(tracer: Any, tensor: Tensor, of_sizes: bool = True) -> Tensor | None:
    """Return the value of a tensor as a concrete tensor; None if an unknown input decides it.

    `of_sizes`: sizes, runtime numbers and small tensors may decide as well, and are guarded then.
    """
    if tracer.mapped or tensor._traced is None and (tracer.knows is None or not of_sizes):
        return None
    known: dict[Value, Any] = tracer.constant_values
    value = tracer.traced(tensor).read()
    inputs = _inputs(value, known, of_sizes, knowable(tracer) if of_sizes else None)
    if inputs is None:
        return None
    if inputs:
        learn(tracer, inputs)
    with tracer.paused(), no_grad():
        stack = [value]
        while stack:
            waiting = [] if stack[-1] in known else _operands(stack[-1], known)
            if waiting:
                stack.extend(waiting)
            elif (last := stack.pop()) not in known:
                known.update(_computed(last.node, known))
    return known[value]


def run_on_constants(tracer: Any, op: Op, operands: tuple, attributes: dict) -> Any:
    """Return the op's result, or results, if no input decides any of its operands; else None."""
    known = [tracer.fold_constant(x) if is_a(x, Tensor) else x for x in operands]
    if any(x is None for x in known):
        return None
    with tracer.paused(), no_grad():
        return _run(op, known, attributes)


def _inputs(value: Value, known: dict[Value, Any], of_sizes: bool,
            may: Callable[[Value], bool] | None) -> list[Value] | None:
    """Return the inputs that decide a value and are not known yet.

    Return None if a region takes part, a size without `of_sizes`, or an input that `may` refuses.
    """
    seen, stack, inputs = {value}, [value], []
    while stack:
        one = stack.pop()
        if one in known:
            continue
        if one.node is None:
            if may is None or not may(one):
                return None
            inputs.append(one)
            continue
        if one.node.regions or not of_sizes and _has_sizes(one.node):
            return None
        new = [x for x in _operands(one, known) if x not in seen]
        seen.update(new)
        stack.extend(new)
    return inputs


def _has_sizes(node: Node) -> bool:
    found: list[Any] = []
    with_numbers((node.inputs, node.attributes), found.append)
    return any(type(x) is SymInt for x in found)


def _operands(value: Value, known: dict[Value, Any]) -> list[Value]:
    return [x for x in value.node.operand_values() if x not in known]  # type: ignore[union-attr]


def _computed(node: Node, known: dict[Value, Any]) -> dict[Value, Tensor]:
    """Compute the tensors of a node's outputs."""
    operands = [known[x] if is_a(x, Value) else x for x in node.inputs]
    made = _run(node.op, operands, node.attributes)
    return dict(zip(node.outputs, made if is_a(made, tuple) else (made,)))


def _run(op: Op, operands: list[Any], attributes: dict) -> Any:
    """Run an op in eager mode; its sizes and numbers become plain, and are guarded."""
    return dispatch(
        op, with_numbers(tuple(operands), concretize), with_numbers(attributes, concretize))
