"""Second derivatives of branches and loops: the backward runs them again, op by op.

In: the graph node of a branch or a loop, tensors for its operands. Out: `EagerVjp`, a backward that
runs the node over tensors, on the tape, and goes back through that tape. Made by `vjp.py` for nodes
of a tape. In a tape that is laid again (`rebuilt_tape.py`) it is the only backward of such a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.core.eager.backward import grad_between
from tracejit.core.eager.modes import enable_grad
from tracejit.core.eager.nodes import Edge, Node, edge_of
from tracejit.core.eager.recording import ended_to_hints
from tracejit.core.eager.saved import alias
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.control import run_over_tensors
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.stacks import stack_run
from tracejit.jit.capture.storage import FunctionalTensor
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import at_size, regions_over_tensors


class TapeBoundary(Node):
    """End of a part of the tape. Behind it lies the history of what that part was given."""

    __slots__ = ()

    def apply(self, grads: list) -> list:
        return grads


class NotDifferentiable(Node):
    """History of gradients without derivatives: a backward through it raises RuntimeError."""

    __slots__ = ("output_count",)

    def __init__(self, edges: tuple[Edge, ...], output_count: int):
        super().__init__(edges)
        self.output_count = output_count

    def apply(self, grads: list) -> list:
        raise RuntimeError(
            "tracejit: cannot differentiate the gradient of a compiled branch or loop that runs "
            "custom Functions or hooks. Call the function without capture.")


def without_derivatives(made: Sequence[Any], edges: Sequence[Edge]) -> None:
    """Give gradients a history that raises when it is differentiated. `edges`: to what they depend
    on."""
    node = NotDifferentiable(tuple(edges), len(made))
    for k, x in enumerate(made):
        x._node, x._output_nr, x._requires_grad = node, k, True


def at(like: Any, node: Any, number: int) -> Any:
    """Make an alias of `like` that is output `number` of a node."""
    made = alias(like)
    made._node, made._output_nr, made._requires_grad = node, number, True
    return made


Source = tuple[list[int], list[tuple[Op, dict]]]


class EagerVjp:
    """Backward that runs a graph node again over tensors, on the tape, and goes back through that
    tape.

    operands  of the graph node, off the tape
    sources   for each input of the tape's node: its places among the operands, and the view steps
              from the operand there to the input
    numbers   for each result of the tape's node the number of the graph node's output
    edges     of the tape's node
    sizes     of the call; None: of the recorded one
    """

    holds_tensors = True

    def __init__(self, op: Op, attributes: dict, regions: tuple[Graph, ...], operands: list[Any],
                 sources: list[Source], numbers: list[int], edges: Sequence[Edge],
                 sizes: Mapping[str, int] | None = None):
        self.op, self.attributes, self.regions, self.operands = op, attributes, regions, operands
        self.sources, self.numbers, self.edges, self.sizes = sources, numbers, edges, sizes

    def __call__(self, grads: Sequence[Any], create_graph: bool) -> list[Any]:
        scope = self.regions[0].scope
        sizes = scope.complete(dict(scope.hints)) if self.sizes is None else self.sizes
        given = {name: at_size(ended_to_hints(x), sizes) for name, x in self.attributes.items()}
        operands: list[Any] = list(ended_to_hints(self.operands))
        ends: list[Any] = [None] * len(self.edges)
        with enable_grad():
            # Whole operands first: views are put back into what then stands for the operand.
            for k in sorted(range(len(ends)), key=lambda k: len(self.sources[k][1])):
                (places, views), edge = self.sources[k], self.edges[k]
                if edge is None:
                    continue
                seen = [operands[places[0]]]
                steps = [(op, at_size(ended_to_hints(x), sizes)) for op, x in views]
                for op, attributes in steps:
                    seen.append(apply(op, (seen[-1],), attributes))
                whole = ends[k] = at(seen.pop(), TapeBoundary((edge,)), 0)
                for (op, attributes), before in zip(reversed(steps), reversed(seen)):
                    whole = op.view_inverse(before, whole, **attributes)
                for place in places:
                    operands[place] = whole
        with stack_run(), enable_grad():
            made = run_over_tensors(self.op, operands, **given,
                                    regions=regions_over_tensors(self.regions, sizes))
        arrived = [(made[k], grad) for k, grad in zip(self.numbers, grads)
                   if grad is not None and made[k]._requires_grad]
        wanted = [end for end in ends if end is not None]
        found = iter(grad_between([x for x, _ in arrived], wanted, [g for _, g in arrived],
                                  create_graph))
        return [None if end is None else next(found) for end in ends]


def _source(traced: FunctionalTensor, given: Sequence[Any]) -> Source | None:
    """Find a tensor among a node's operands: (places, view steps from there). None if it is not
    there."""
    value, whole = traced.read(), traced.memory.value
    places = [k for k, v in enumerate(given) if v is value]
    if places:
        return places, []
    places = [k for k, v in enumerate(given) if v is whole]
    views = [(op, attributes) for op, operands, attributes in traced.views
             if not operands and op.view_inverse is not None]
    return (places, views) if places and len(views) == len(traced.views) else None


def eager_vjp(parent: Any, inputs: Sequence[Any], results: Sequence[Tensor]) -> EagerVjp | None:
    """Make the backward that runs the node of `results` again, on the way back to `inputs`. Return
    None where the node does not take the inputs as operands, or as views of them."""
    values = [parent.traced(x).read() for x in results]
    node = values[0].node
    if any(v.node is not node for v in values):
        return None
    edges = [edge_of(x) if x._requires_grad else None for x in inputs]
    sources: list[Source] = []
    for x, edge in zip(inputs, edges):
        found = None if edge is None else _source(parent.traced(x), node.inputs)
        if edge is not None and (found is None or not found[1] and found in sources):
            return None
        sources.append(found or ([], []))
    operands = [parent.tensor_of(v) if isinstance(v, Value) else v for v in node.inputs]
    return EagerVjp(node.op, node.attributes, node.regions, operands, sources,
                    [v.index for v in values], edges)
