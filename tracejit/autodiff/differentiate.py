"""Differentiate a recorded call: the tape runs backward over deferred tensors, into the same graph.

In: a recorder holding a forward recording, its results and the inputs that require grad. Out: a
`Joint`: tangents (new graph
inputs), gradients (values) and what must be saved. The rules are those of the eager tape: there is
one of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.autodiff.absent import is_affine
from tracejit.autodiff.closed_code import ClosedWatch
from tracejit.autodiff.partition import computed_again, residuals
from tracejit.autodiff.reach import freeing, groups, kept, reaching, retaining
from tracejit.autodiff.relaid import RelaidTape, relaid, runs_code
from tracejit.capture.breaks import Refused
from tracejit.capture.results import Unmodelled
from tracejit.eager.backward import grad_between
from tracejit.eager.tape import FREED
from tracejit.eager.tensor import Tensor
from tracejit.eager.uncertain import sure
from tracejit.ir.extract import extract
from tracejit.ir.graph import Graph, Node, Value


@dataclass
class Joint:
    """A differentiated recording.

    outputs   results that require grad
    inputs    tensors to which gradients flow
    tangents  graph inputs standing for the gradients of `outputs`
    grads     gradient values, None where an input is not reached
    saved     forward values the backward graph starts from
    written   graph inputs the call writes: what they were is gone after it
    backward  graph: saved + tangents -> the grads that are not None
    """

    graph: Graph
    outputs: list[Tensor]
    inputs: list[Tensor]
    tangents: list[Value]
    grads: list[Value | None]
    saved: list[Value]
    written: set[Value]
    backward: Graph
    reached: list[frozenset[int]]  # for each input the outputs whose gradients reach it
    groups: list[list[int]]  # outputs that share history: each group is freed by itself
    freeing: list[list[frozenset[int]]]  # in each group, by output: whose backward frees its
    tape: RelaidTape | None  # for derivatives of the gradients
    forward: set[Node]
    again: set[Value]  # inputs of which `backward` computes what `forward` did
    final: bool  # the gradients have no derivatives that anybody knows


def differentiate(
    recorder: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor]
) -> Joint | None:
    """The joint graph of a recording; None where its tape was already freed by a backward
    inside."""
    graph = recorder.graph
    forward = set(graph.nodes)
    if retaining(outputs, recorder.first_node):
        raise Unmodelled("retain_grad() of what the call made, for a later backward")
    deferred = list(recorder.deferred)
    tangents = [recorder.tangent(x) for x in outputs]
    quiet = [(x, x._hooks) for x in inputs]
    for x in inputs:
        x._hooks = None  # hooks of inputs run when the gradient arrives there, on each replay
    recorder.differentiating = True
    try:
        # The tape is kept: where this fails, the caller's own backward must fail in its own way.
        with ClosedWatch():
            found = [sure(g) for g in grad_between(outputs, inputs, tangents)]
    except (Exception, Refused) as error:
        dropped = {recorder.traced(t).read() for t in tangents}
        graph.inputs = [v for v in graph.inputs if v not in dropped]
        recorder.deferred[:] = deferred  # what hooks of modules keep of it cannot be computed
        if str(error) == FREED:
            return None
        fails = f"would fail: {type(error).__name__}: "
        why = f"its backward {'' if isinstance(error, Refused) else fails}{error}"
        raise Unmodelled(why) from error
    finally:
        recorder.differentiating = False
        for x, hooks in quiet:
            x._hooks = hooks
    tangent_values = [recorder.traced(t).read() for t in tangents]
    values = [None if g is None else recorder.traced(g).read() for g in found]
    real = [v for v in values if v is not None]
    saved = residuals(graph, tangent_values, real, _readable(recorder, outputs))
    together = groups(outputs, recorder.first_node)
    written = {memory.input for memory in recorder.written()}
    given = [*saved, *tangent_values]
    backward = extract(graph, f"{graph.name}_backward", given, real, copied=written)
    tape = relaid(recorder, outputs, inputs)
    if tape is not None and tape.choosy:
        tape.affine = is_affine(backward, backward.inputs[len(saved):])
    return Joint(
        graph,
        list(outputs),
        list(inputs),
        tangent_values,
        values,
        saved,
        written,
        backward,
        reaching(outputs, inputs),
        together,
        [freeing([outputs[k] for k in group], recorder.first_node) for group in together],
        tape,
        forward,
        computed_again(given, real, forward),
        tape is None and (recorder.runs_code or runs_code(outputs, recorder.first_node)),
    )


def _readable(recorder: Any, outputs: Sequence[Tensor]) -> set[Value]:
    """The inputs that a backward may read: numbers, and memory whose tensors the tape itself keeps.

    Other memory the caller may change before the backward, as with the plain function.
    """
    memories = {item.traced.memory.input for item in recorder.lifted_tensors()}
    found = {v for v in recorder.graph.inputs if v not in memories}
    for tensor in kept(outputs):
        item = recorder.lifted.get(id(tensor))
        traced = tensor._traced if item is None else item.traced
        if traced is not None and traced.memory.owner is not None:
            found.add(traced.memory.input)
    return found
