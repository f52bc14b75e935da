"""Branches and loops run again op by op, where gradients that they give are to be differentiated.

In: the node of a graph that stands for a branch or a loop, tensors for its operands. Out:
`RunAgain`, a backward that runs it over tensors, on the tape, and goes back through that. Made by
`pull_back.py` for nodes of a tape; a tape that is laid again (`relaid.py`) has nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.eager.backward import grad_between
from tracejit.eager.modes import enable_grad
from tracejit.eager.nodes import Edge, Node, edge_of
from tracejit.eager.recording import settled
from tracejit.eager.saved import alias
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Graph, Value
from tracejit.ir.interpret import at_size, regions_over_tensors
from tracejit.ops.control import run_over_tensors
from tracejit.ops.record import Op
from tracejit.ops.stacks import stack_run


class Gate(Node):
    """Where a part of the tape ends: at what it was given, whose history lies behind."""

    __slots__ = ()

    def apply(self, grads: list) -> list:
        return grads


class Underivable(Node):
    """The history of gradients whose derivatives nobody knows."""

    __slots__ = ()

    def apply(self, grads: list) -> list:
        raise RuntimeError(
            "tracejit: a gradient is differentiated that a compiled branch or loop gave, in which "
            "custom Functions or hooks run, or a view is read; run the function plainly for that")


def without_derivatives(made: Sequence[Any], edges: Sequence[Edge]) -> None:
    """Make gradients such that they cannot be differentiated; `edges`: to what they depend on."""
    node = Underivable(tuple(edges))
    for k, x in enumerate(made):
        x._node, x._output_nr, x._requires_grad = node, k, True


def at(like: Any, node: Any, number: int) -> Any:
    """A tensor over the same memory that is an output of a node."""
    made = alias(like)
    made._node, made._output_nr, made._requires_grad = node, number, True
    return made


class RunAgain:
    """operands  of the node, off the tape
    sources   for each input of the tape's node the places among the operands at which it is
    numbers   for each result of the tape's node the number of the output
    edges     of the tape's node
    sizes     of the call, if it is not the one that was recorded
    """

    holds_tensors = True

    def __init__(self, op: Op, attributes: dict, regions: tuple[Graph, ...], operands: list[Any],
                 sources: list[list[int]], numbers: list[int], edges: Sequence[Edge],
                 sizes: Mapping[str, int] | None = None):
        self.op, self.attributes, self.regions, self.operands = op, attributes, regions, operands
        self.sources, self.numbers, self.edges, self.sizes = sources, numbers, edges, sizes

    def __call__(self, grads: Sequence[Any], create_graph: bool) -> list[Any]:
        scope = self.regions[0].scope
        sizes = scope.complete(dict(scope.hints)) if self.sizes is None else self.sizes
        given = {name: at_size(settled(x), sizes) for name, x in self.attributes.items()}
        operands, ends = list(settled(self.operands)), []
        for places, edge in zip(self.sources, self.edges):
            end = None if edge is None else at(operands[places[0]], Gate((edge,)), 0)
            for k in places if end is not None else ():
                operands[k] = end
            ends.append(end)
        with stack_run(), enable_grad():
            made = run_over_tensors(self.op, operands, **given,
                                    regions=regions_over_tensors(self.regions, sizes))
        arrived = [(made[k], grad) for k, grad in zip(self.numbers, grads)
                   if grad is not None and made[k]._requires_grad]
        wanted = [end for end in ends if end is not None]
        found = iter(grad_between([x for x, _ in arrived], wanted, [g for _, g in arrived],
                                  create_graph))
        return [None if end is None else next(found) for end in ends]


def run_again(parent: Any, inputs: Sequence[Any], results: Sequence[Tensor]) -> RunAgain | None:
    """What runs again the node that `results` are outputs of, on the way back to `inputs`; None
    where it is not the inputs as they are that the node was given."""
    values = [parent.traced(x).read() for x in results]
    node = values[0].node
    if any(v.node is not node for v in values):
        return None
    edges = [edge_of(x) if x._requires_grad else None for x in inputs]
    sources: list[list[int]] = []
    for x, edge in zip(inputs, edges):
        value = parent.traced(x).read() if edge is not None else None
        sources.append([k for k, v in enumerate(node.inputs) if v is value])
        if edge is not None and (not sources[-1] or sources[-1] in sources[:-1]):
            return None
    operands = [parent.holding(v) if isinstance(v, Value) else v for v in node.inputs]
    return RunAgain(node.op, node.attributes, node.regions, operands, sources,
                    [v.index for v in values], edges)
