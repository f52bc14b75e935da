"""Flags that settle in a loop: bodies for its first iterations, and one for all others.

In: a `for_loop` node. Out: bodies with the flags that are known replaced by what they are. Called
by `loop_kernel.py`. After an iteration or two a loop's flags change no more
(`passes/loop_flags.py`): then a body needs no flags at all.
"""

from __future__ import annotations

from tracejit.core.ops.creation import full_record
from tracejit.core.ops.types import bool_
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.passes.cse import cse
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.fold import fold
from tracejit.jit.passes.loop_flags import fixed_flags, flag_states, known_inputs
from tracejit.jit.passes.simplify import simplify

MOST_NODES = 1500  # of all bodies together: a text grows with each


def bodies(node: Node) -> list[Graph]:
    """Return the bodies of the first iterations, then that of all others."""
    region, states = node.regions[0], flag_states(node)
    if states is None or not fixed_flags(node) and all(s is None for s in states[-1]):
        return [region]
    found = [_with(region, known_inputs(node, state)) for state in states]
    return found if sum(len(body.nodes) for body in found) <= MOST_NODES else [region]


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
