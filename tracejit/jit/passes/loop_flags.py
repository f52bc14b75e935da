"""Flags that a loop carries, followed through its first iterations.

In: a `for_loop` node. Out: what is known of its carried flags before each iteration, and the truth
of a value in the body. Called by `after_loops` and by `lowering/steady_flags.py`. A loop's gradient
carries flags that say if gradients arrive. They begin as constants, and after an iteration or two
they change no more.
"""

from __future__ import annotations

from tracejit.core.ops.types import bool_
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_type
from tracejit.jit.passes.fold import constant

MOST_FIRST = 3  # iterations before the flags have to be steady
Known = tuple[bool | None, ...]  # of each carried value: a flag, or None where that is not known


def fixed_flags(node: Node) -> dict[Value, bool]:
    """Return the inputs of the body that are the same known flag in all iterations."""
    region = node.regions[0]
    beside = node.attributes["carried"] + node.attributes["scanned"]
    return {
        inside: state
        for inside, x in zip(region.inputs[1 + beside :], node.inputs[beside:])
        if (state := flag(x)) is not None
    }


def flag_states(node: Node) -> list[Known] | None:
    """Return what is known before each of the first iterations; the last holds for all others.
    None: the flags do not become steady."""
    region, carried = node.regions[0], node.attributes["carried"]
    states: list[Known] = [tuple(map(flag, node.inputs[:carried]))]
    while len(states) <= MOST_FIRST + 1:
        known = decided(node, states[-1])
        after = tuple(known.get(v, flag(v)) for v in region.outputs[:carried])
        if after == states[-1]:
            return states
        states.append(after)
    return None


def settle_choices(node: Node) -> None:
    """Replace choices of the body that a flag decides alike in all iterations."""
    states = flag_states(node)
    if states is None:
        return
    region, always = node.regions[0], [decided(node, state) for state in states]
    settled: dict[Value, Value] = {}
    for inner in region.nodes:
        test = inner.inputs[0] if inner.op.name == "where" else None
        found = {known.get(test) for known in always} if isinstance(test, Value) else {None}
        chosen = inner.inputs[1 if found == {True} else 2] if None not in found else None
        if len(found) == 1 and isinstance(chosen, Value):
            if same_type(chosen.type, inner.outputs[0].type):
                settled[inner.outputs[0]] = chosen
    region.substitute(settled)


def flag(x: object) -> bool | None:
    """Return the truth of a flag that is a constant, else None."""
    known = constant(x) if isinstance(x, Value) and x.dtype is bool_ and not x.shape else None
    return None if known is None else bool(known)


def known_inputs(node: Node, state: Known) -> dict[Value, bool]:
    """Return the inputs of the body that are known flags before an iteration."""
    flags = node.regions[0].inputs[1 : 1 + node.attributes["carried"]]
    return fixed_flags(node) | {x: s for x, s in zip(flags, state) if s is not None}


def decided(node: Node, state: Known) -> dict[Value, bool]:
    """Return the flags of the body that are known in an iteration which begins with `state`."""
    region: Graph = node.regions[0]
    known = known_inputs(node, state)
    for inner in region.nodes:
        found = _decided(inner, known)
        if found is not None:
            known[inner.outputs[0]] = found
    return known


def _decided(node: Node, known: dict[Value, bool]) -> bool | None:
    """Return the flag that a logical op gives, if its known operands decide it."""
    if any(v.dtype is not bool_ or v.shape for v in node.outputs):
        return None  # of a mask, each element has a truth of its own
    given = [known.get(x, flag(x)) if isinstance(x, Value) else None for x in node.inputs]
    name = node.op.name
    if name in ("bitwise_and", "logical_and"):
        return False if False in given else True if given == [True, True] else None
    if name in ("bitwise_or", "logical_or"):
        return True if True in given else False if given == [False, False] else None
    if name in ("bitwise_not", "logical_not", "clone") and given[0] is not None:
        return given[0] if name == "clone" else not given[0]
    return None
