"""How gradients flow through a replay: its results get one node on the tape, whose backward runs a
compiled program (C4).

In: the joint graph of a recorded call and the gradient graph made of it. Out: `attach_backward`,
which gives a replay's results their history. Called by `entry` after each run, and by
`entry_maker` for the recorded call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit.autodiff.absent import without
from tracejit.autodiff.relaid import RelaidTape
from tracejit.autodiff.run_again import without_derivatives
from tracejit.eager.backward import grad_between
from tracejit.eager.nodes import edge_of
from tracejit.eager.recording import active
from tracejit.eager.saved import SavedResult, check_version, version_of
from tracejit.eager.state import of_array
from tracejit.eager.tape import CustomNode, record_custom
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Graph, Value
from tracejit.ir.interpret import interpret
from tracejit.memory.storage import unseen
from tracejit.ops.types import dtype
from tracejit.runtime.segment import Bound, Segment


@dataclass
class Backward:
    """How gradients flow through a replay: one node on the tape (C4)."""

    graph: Graph | None  # joint, for higher orders where there is no `tape`
    tape: RelaidTape | None
    final: bool  # its gradients cannot be differentiated
    primals: int  # inputs of the call
    tangents: list[int]  # positions of tangents in its inputs
    grads: list[int | None]  # for each differentiable input: position in `segment`'s outputs
    wrt: list[int]  # graph inputs that receive gradients
    saved: list[tuple[str, int]]  # ("input", number) or ("output", number of the forward segment)
    before: list[tuple[int, int]]  # (input the program writes, output that holds what it was)
    read: list[int]  # the tensors among its inputs that it reads
    # those of which `backward`, or what is run instead, computes what the plain function kept
    again: list[list[int]]
    # of each group what must not be written: an input, or an output and what made it
    kept: list[list[tuple[int, int, str, int]]]
    reached: list[frozenset[int]]  # for each differentiable input the outputs that lead to it
    groups: list[list[int]]  # outputs whose history is one
    freeing: list[list[frozenset[int]]]  # in each group, by output: whose backward frees its
    backward: Graph  # saved values and tangents -> gradients
    dtypes: list[dtype]  # of the outputs
    compile: Callable[[Graph], Segment]
    segments: dict[tuple[int, ...], tuple[Segment, list[int | None]]] = field(default_factory=dict)

    def compiled(self, arrived: tuple[int, ...]) -> tuple[Segment, list[int | None]]:
        """The program for gradients of these outputs; the number of each gradient in it."""
        found = self.segments.get(arrived)
        if found is None:
            first = len(self.backward.inputs) - len(self.tangents)
            graph, places = _only(self.backward, self.backward.inputs[first:], arrived)
            found = self.segments[arrived] = self.compile(graph), places
        return found


def _only(
    graph: Graph, tangents: Sequence[Value], arrived: tuple[int, ...]
) -> tuple[Graph, list[int | None]]:
    if len(arrived) == len(tangents):
        return graph, list(range(len(graph.outputs)))
    return without(graph, tangents, {t for k, t in enumerate(tangents) if k not in arrived})


UNSEEN = (
    "tracejit: a tensor was written through .data between a captured call and its backward, which "
    "computes again from it what the plain function would have kept; run the function plainly, or "
    "write the tensor after the backward"
)


class CompiledBackward(CustomNode):
    """The history of a loss whose graph a backward inside the call has freed."""

    __slots__ = ()


def record_freed(tensor: Tensor) -> None:
    """Give a tensor such a history: a further backward raises, as in eager mode."""
    node = CompiledBackward((), None, (), 1)
    tensor._node, tensor._output_nr, tensor._requires_grad = node, 0, True


def attach_backward(
    plan: Backward,
    inputs: Sequence[Any],
    roots: Sequence[Tensor],
    outputs: Sequence[Any],
    bound: Bound,
) -> None:
    """Make `outputs` the results of one node whose backward runs the compiled backward graph."""
    primals = [inputs[k] for k in plan.wrt]
    edges = [edge_of(x) if x._requires_grad else None for x in primals]
    kept = [inputs[k] if kind == "input" else roots[k] for kind, k in plan.saved]
    everything = list(inputs)
    for number, output in plan.before:
        everything[number] = roots[output]
    versions = [version_of(everything[k]) for k in plan.read]
    moment = unseen.count

    def pulled_back(grads: Sequence[Any], create_graph: bool) -> list[Any]:
        arrived = tuple([k for k, grad in enumerate(grads) if grad is not None])
        tangents = [_cast(grads[k], plan.dtypes[k]) for k in arrived]
        recorder: Any = active.recorder
        mapped = recorder is not None and recorder.mapped
        choosy = plan.tape is not None and plan.tape.differs(arrived)
        over_tensors = (create_graph or mapped or choosy) and not plan.final
        if unseen.count != moment:
            for k in plan.again[over_tensors]:
                if unseen.since(moment, inputs[k]._storage):
                    raise RuntimeError(UNSEEN)
        if over_tensors:
            for k, version in zip(plan.read, versions):
                check_version(everything[k], version, None, 0)
            if plan.tape is not None:
                if recorder is not None and not mapped:
                    recorder.flush()
                of_results = dict(zip(arrived, tangents))
                with _nobody_recording():
                    results, ends = plan.tape.lay(of_results, inputs, everything, kept, primals,
                                                  edges, bound.sizes)
                return list(grad_between(results, ends, tangents, create_graph))
            made, places = _differentiable(plan, everything, arrived, tangents)
        else:
            segment, places = plan.compiled(arrived)
            if recorder is not None:  # its own program: it runs between segments
                recorder.flush()
            with nullcontext() if recorder is None else recorder.paused():
                given = [*kept, *tangents]
                made = segment.run(given, segment.bind_given(given, bound.sizes))
            if create_graph:
                known = [edge_of(x) for x in tangents if x._requires_grad]
                without_derivatives(made, [*edges, *known])
        return [
            None if k is None or places[k] is None or reached.isdisjoint(arrived)
            else made[places[k]]  # type: ignore[index]
            for k, reached in zip(plan.grads, plan.reached)
        ]

    before, active.grad_enabled = active.grad_enabled, True  # whatever it is when the call ends
    try:
        _record(plan, edges, outputs, pulled_back, inputs, roots)
    finally:
        active.grad_enabled = before


def _record(
    plan: Backward,
    edges: list[Any],
    outputs: Sequence[Any],
    pulled_back: Callable,
    inputs: Sequence[Any],
    roots: Sequence[Tensor],
) -> None:
    """One node on the tape for each group of outputs."""
    if len(plan.groups) == 1:
        record_custom("CompiledBackward", edges, outputs, pulled_back,
                      _noted(plan.kept[0], inputs, roots), plan.freeing[0])
        return
    for group, freeing, noted in zip(plan.groups, plan.freeing, plan.kept):
        backward = _of_group(pulled_back, group, len(outputs))
        met = [e if reached & set(group) else None for e, reached in zip(edges, plan.reached)]
        given = [outputs[k] for k in group]
        record_custom("CompiledBackward", met, given, backward, _noted(noted, inputs, roots),
                      freeing)


def _cast(grad: Any, dtype: dtype) -> Any:
    """A gradient in the dtype of what it is of, its elements in order."""
    return (grad if grad._dtype is dtype else grad.to(dtype)).contiguous()


@contextmanager
def _nobody_recording() -> Iterator[None]:
    recorder, active.recorder = active.recorder, None
    try:
        yield
    finally:
        active.recorder = recorder


def _noted(kept: list[tuple], inputs: Sequence[Any], roots: Sequence[Tensor]) -> list[Any]:
    """What a group's node keeps of this call."""
    return [inputs[k] if k >= 0 else SavedResult(roots[root], made, number)
            for k, root, made, number in kept]


def _of_group(pulled_back: Callable, group: list[int], count: int) -> Callable:
    """The backward of some of the outputs: nothing arrives at the others."""

    def backward(grads: tuple, create_graph: bool) -> list[Any]:
        given: list[Any] = [None] * count
        for k, grad in zip(group, grads):
            given[k] = grad
        return pulled_back(given, create_graph)

    return backward


def _differentiable(
    plan: Backward, inputs: list[Any], arrived: tuple[int, ...], tangents: list[Any]
) -> tuple[list[Any], list[int | None]]:
    """Gradients as eager ops on the tape: the joint graph, op by op."""
    assert plan.graph is not None
    graph, places = _only(plan.graph, [plan.graph.inputs[k] for k in plan.tangents], arrived)
    of_tangent = {plan.tangents[k]: tangent for k, tangent in zip(arrived, tangents)}
    rest = iter([of_array(x) if isinstance(x, np.ndarray) else x for x in inputs])
    given = [
        of_tangent[k] if k in of_tangent else next(rest)
        for k in range(len(plan.graph.inputs))
        if k in of_tangent or k not in plan.tangents
    ]
    return interpret(graph, given).outputs, places
