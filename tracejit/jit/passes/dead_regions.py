"""Drop what nobody reads of branches and loops.

In: a node with regions, and the values that are read after it. Out: the same node without outputs
that nobody reads. Its regions compute no more than the rest needs, and it has no operands that they
do not read. Called by `dce`. A carried value stays only if code after the loop reads it, or if it
decides about such a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tracejit.core.ops.creation import full_record
from tracejit.core.ops.types import bool_
from tracejit.jit.ir.graph import Graph, Node, Value


class _In(NamedTuple):
    """Operand, and the input of the regions that it becomes; None: there is no such."""

    operand: int | None
    input: int | None
    role: str  # fixed | carried | scanned | popped | captured
    number: int = 0  # of those that are carried


class _Out(NamedTuple):
    """Output of the regions, and the output of the node that it becomes."""

    result: int | None
    output: int | None
    role: str  # fixed | carried | result | pushed
    number: int = 0


def trim(graph: Graph, node: Node, live: set[Value], dce: Callable[[Graph], Any]) -> None:
    """Drop what is dead of one node and, with `dce`, in its regions."""
    layout = _LAYOUTS.get(node.op.name)
    if layout is None:  # an op that calls its regions in a way of its own
        for region in node.regions:
            dce(region)
        return
    if not any(v in live for v in node.outputs):  # it is here because it may fail
        if not node.outputs:
            _add_output(graph, node)
        live = live | set(node.outputs[:1])
    ins, outs = layout(node)
    wanted = _carried(node, ins, outs, live)
    kept = [x for x in outs if _is_read(node, x, live, wanted)]
    for region in node.regions:
        region.outputs = [region.outputs[x.result] for x in kept if x.result is not None]
    node.outputs = tuple(node.outputs[x.output] for x in kept if x.output is not None)
    for k, value in enumerate(node.outputs):
        value.index = k
    for region in node.regions:
        dce(region)
    read = [_read_by(region) for region in node.regions]
    _keep_inputs(node, [x for x in ins if _is_used(node, x, read, wanted)])


# -- layouts --------------------------------------------------------------------------------------


def _captured(node: Node, operand: int, input: int) -> list[_In]:
    return [_In(operand + k, input + k, "captured") for k in range(len(node.inputs) - operand)]


def _of_cond(node: Node) -> tuple[list[_In], list[_Out]]:
    outs = [_Out(k, k, "result") for k in range(len(node.outputs))]
    return [_In(0, None, "fixed"), *_captured(node, 1, 0)], outs


def _of_for(node: Node) -> tuple[list[_In], list[_Out]]:
    carried, scanned = node.attributes["carried"], node.attributes["scanned"]
    ins = [_In(None, 0, "fixed"), *(_In(k, k + 1, "carried", k) for k in range(carried))]
    ins += [_In(k, k + 1, "scanned") for k in range(carried, carried + scanned)]
    outs = [_Out(k, k, "carried", k) for k in range(carried)]
    outs += [_Out(k, k, "result") for k in range(carried, len(node.outputs))]
    return ins + _captured(node, carried + scanned, carried + scanned + 1), outs


def _of_while(node: Node) -> tuple[list[_In], list[_Out]]:
    carried = node.attributes["carried"]
    ins = [_In(0, None, "fixed"), *(_In(k + 1, k, "carried", k) for k in range(carried))]
    outs = [_Out(None, 0, "fixed"), _Out(0, None, "fixed")]
    outs += [_Out(k + 1, k + 1, "carried", k) for k in range(carried)]
    pushed = range(carried + 1, len(node.regions[0].outputs))
    outs += [_Out(k, None, "pushed") for k in pushed]
    outs += [_Out(None, carried + 1, "pushed")] if pushed else []
    return ins + _captured(node, carried + 1, carried), outs


def _of_unwind(node: Node) -> tuple[list[_In], list[_Out]]:
    carried = node.attributes["carried"]
    ins = [_In(0, None, "fixed"), _In(1, None, "fixed")]
    ins += [_In(k + 2, k, "carried", k) for k in range(carried)]
    popped = len(node.regions[0].inputs) - (len(node.inputs) - 2)
    ins += [_In(None, carried + k, "popped") for k in range(popped)]
    outs = [_Out(k, k, "carried", k) for k in range(carried)]
    return ins + _captured(node, carried + 2, carried + popped), outs


_LAYOUTS = {"cond": _of_cond, "for_loop": _of_for, "while_loop": _of_while,
            "unwind_loop": _of_unwind}


# -- what is read ---------------------------------------------------------------------------------


def _is_read(node: Node, x: _Out, live: set[Value], wanted: set[int]) -> bool:
    if x.role == "carried":
        return x.number in wanted
    if x.role == "pushed":
        return node.outputs[-1] in live
    return x.role == "fixed" or node.outputs[x.output or 0] in live


def _is_used(node: Node, x: _In, read: Sequence[set[Value]], wanted: set[int]) -> bool:
    if x.role == "carried":
        return x.number in wanted
    if x.role in ("fixed", "popped") or x.input is None:
        return True
    return any(r.inputs[x.input] in values for r, values in zip(node.regions, read))


def _carried(node: Node, ins: Sequence[_In], outs: Sequence[_Out], live: set[Value]) -> set[int]:
    """Numbers of the carried values that somebody reads, in the loop or after it."""
    wanted = {x.number for x in outs if x.role == "carried"
              and node.outputs[x.output or 0] in live}
    states = [(x.number, x.input) for x in ins if x.role == "carried" and x.input is not None]
    while states:
        region = node.regions[0]
        results = [region.outputs[x.result] for x in outs
                   if x.result is not None and _is_read(node, x, live, wanted)]
        read = _read_by(region, results)
        more = {number for number, k in states if region.inputs[k] in read}
        if more <= wanted:
            break
        wanted |= more
    return wanted


def _read_by(graph: Graph, results: Iterable[Value] | None = None) -> set[Value]:
    """Return the values that `results` depend on, themselves included, with the reads of failing
    nodes."""
    live = set(graph.outputs if results is None else results)
    for node in reversed(graph.nodes):
        if node.stays or any(v in live for v in node.outputs):
            live.update(node.operand_values())
    return live


# -- changes --------------------------------------------------------------------------------------


def _keep_inputs(node: Node, kept: Sequence[_In]) -> None:
    node.inputs = tuple(node.inputs[x.operand] for x in kept if x.operand is not None)
    for region in node.regions:
        region.inputs = [region.inputs[x.input] for x in kept if x.input is not None]
    for role in ("carried", "scanned"):
        if role in node.attributes:
            node.attributes[role] = sum(x.role == role for x in kept)


def _add_output(graph: Graph, node: Node) -> None:
    """Lowering knows nodes by their outputs: a `cond` or `for_loop` without any gets one."""
    for region in node.regions:
        given = {"shape": (), "value": True, "dtype": bool_, "device": None}
        region.outputs.append(region.append(full_record, (), given))
    types = node.op.infer(*node.inputs, **node.attributes, regions=node.regions)
    node.outputs = tuple(Value(graph, t, node, k) for k, t in enumerate(types))
