"""Flags that settle in a loop: bodies for its first iterations, and one for all others.

In: a `for_loop` node. Out: bodies with the flags that are known replaced by what they are. Called
by `loop_kernel.py`. A loop's gradient carries flags that say if gradients arrive. They begin as
constants, and after an iteration or two they change no more: then a body needs no flags at all.
"""

from __future__ import annotations

from tracejit.core.ops.creation import full_record
from tracejit.core.ops.types import bool_
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.passes.cse import cse
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.fold import constant, fold
from tracejit.jit.passes.simplify import simplify

MOST_FIRST = 3  # iterations with bodies of their own: a text grows with each
MOST_NODES = 1500  # of all bodies together
_Known = tuple[bool | None, ...]  # of each flag: its value, or None where that is not known


def bodies(node: Node) -> list[Graph]:
    """Return the bodies of the first iterations, then that of all others."""
    region, carried = node.regions[0], node.attributes["carried"]
    beside = carried + node.attributes["scanned"]
    always = {
        inside: state
        for inside, x in zip(region.inputs[1 + beside :], node.inputs[beside:])
        if (state := _flag(x)) is not None
    }
    flags = region.inputs[1 : 1 + carried]
    states: list[_Known] = [tuple(map(_flag, node.inputs[:carried]))]
    while len(states) <= MOST_FIRST + 1:
        known = always | {x: s for x, s in zip(flags, states[-1]) if s is not None}
        after = _after(region, carried, known)
        if after == states[-1]:
            break
        states.append(after)
    else:
        return [region]
    if not always and all(state is None for state in states[-1]):
        return [region]
    found = [_with(region, always | {x: s for x, s in zip(flags, state) if s is not None})
             for state in states]  # fmt: skip
    return found if sum(len(body.nodes) for body in found) <= MOST_NODES else [region]


def _flag(x: object) -> bool | None:
    known = constant(x) if isinstance(x, Value) and x.dtype is bool_ and not x.shape else None
    return None if known is None else bool(known)


def _after(region: Graph, carried: int, known: dict[Value, bool]) -> _Known:
    """Return the flags after an iteration that begins with those known."""
    known = dict(known)
    for node in region.nodes:
        found = _decided(node, known)
        if found is not None:
            known[node.outputs[0]] = found
    return tuple(known.get(v, _flag(v)) for v in region.outputs[:carried])


def _decided(node: Node, known: dict[Value, bool]) -> bool | None:
    """Return the flag that a logical op gives, if its known operands decide it."""
    if any(v.dtype is not bool_ or v.shape for v in node.outputs):
        return None  # of a mask, each element has a truth of its own
    given = [known.get(x, _flag(x)) if isinstance(x, Value) else None for x in node.inputs]
    name = node.op.name
    if name in ("bitwise_and", "logical_and"):
        return False if False in given else True if given == [True, True] else None
    if name in ("bitwise_or", "logical_or"):
        return True if True in given else False if given == [False, False] else None
    if name in ("bitwise_not", "logical_not", "clone") and given[0] is not None:
        return given[0] if name == "clone" else not given[0]
    return None


def _with(region: Graph, known: dict[Value, bool]) -> Graph:
    """Return a copy of a body in which flags are constants."""
    copy, values = copy_graph(region)
    with copy.inserting() as made:
        constants = {values[x]: _constant(copy, values[x], state) for x, state in known.items()}
    copy.substitute(constants)
    copy.nodes = [*made, *copy.nodes]
    return dce(cse(simplify(fold(copy), "eager")))


def _constant(graph: Graph, like: Value, state: bool) -> Value:
    return graph.append(full_record, (), {"shape": (), "value": state, "dtype": bool_,
                                          "device": like.type.device})  # fmt: skip
