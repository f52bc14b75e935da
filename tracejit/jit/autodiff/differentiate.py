"""Differentiate a recorded call: the tape runs backward over deferred tensors, into the same graph.

In: a tracer with a forward recording, its results and the inputs that require grad. Out: a
`JointGraph`: tangents (new graph inputs), gradients (values) and the values to save. The engine
runs the rules of the eager tape. Called by `jit/runtime/build.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tracejit import logs
from tracejit.core.eager.backward import task_between
from tracejit.core.eager.conditional_grad import ConditionalGrad, grad_of
from tracejit.core.eager.nodes import edge_of
from tracejit.core.eager.tape import FREED
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.autodiff.gradient_views import GradientView, gradient_views
from tracejit.jit.autodiff.partition import computed_again, residuals
from tracejit.jit.autodiff.pure_backward import ClosedWatch
from tracejit.jit.autodiff.reach import (
    TapeEdge,
    deciding,
    ends_at,
    kept,
    kept_one_way,
    retaining,
)
from tracejit.jit.autodiff.rebuilt_tape import RebuiltTape, rebuilt_tape, runs_code
from tracejit.jit.autodiff.stages import Stage, TapeCut
from tracejit.jit.autodiff.tangents import TangentTracker
from tracejit.jit.autodiff.vjp import must_be_dense
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.epilogue import NotCacheable
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.printer import print_graph


@dataclass
class JointGraph:
    """Differentiated recording.

    outputs   results that require grad
    inputs    tensors to which gradients flow, in the order in which the engine reached them
    tangents  graph inputs for gradients that arrive: at places of `outputs`, then at other cuts
    grads     gradient values: of `inputs`, then of the cuts; None where nothing arrives
    views     for each gradient what it is a view of
    saved     forward values that the backward graph starts from
    written   graph inputs that the call writes: their old content is gone after it
    live      value that the tape keeps -> its memory, which others see: results', or the caller's
              that the call wrote
    backward  graph: (saved, tangents) -> the grads that are not None
    stages    of the history, lowest first; their places and edges are `places` and `ends`
    places    where the tangents arrive, in their order
    ends      where the grads go, in their order
    tops      places of results that no other result was computed from
    """

    graph: Graph
    outputs: list[Tensor]
    inputs: list[Tensor]
    tangents: list[Value]
    grads: list[Value | None]
    views: list[GradientView | None]
    saved: list[Value]
    written: set[Value]
    live: dict[Value, FunctionalStorage]
    backward: Graph
    stages: list[Stage]
    places: list[TapeEdge]
    ends: list[TapeEdge]
    tops: list[TapeEdge]
    tape: RebuiltTape | None  # for derivatives of the gradients
    forward: set[Node]
    again: set[Value]  # inputs of which `backward` computes what `forward` did
    final: bool  # the gradients cannot be differentiated


_VERSIONS = re.compile(r" is at version \d+; expected version \d+ instead")


class _Uncut(Exception):
    """Signal that the history must not be cut: a gradient arrives at a cut under a condition."""


def differentiate(
    tracer: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor],
    results: Collection[FunctionalStorage] = (),
) -> JointGraph | None:
    """Make the joint graph of a recording. Return None if a backward inside the call freed its
    tape.
    `results`: memory that the call made and gives away.

    Raises NotCacheable where no later backward can be made.
    """
    if retaining(outputs, tracer.first_node):
        raise NotCacheable("the function calls retain_grad() on a tensor it made, and backward() "
                           "may run after the call")
    if any(ends_at(edge_of(x)[0], tracer.first_node) for x in outputs):
        raise NotCacheable("a result has autograd history from before the call")
    deferred, forward = list(tracer.deferred), set(tracer.graph.nodes)
    run = _Differentiation(tracer, outputs, inputs, results, forward, True)
    try:
        return run.joint()
    except _Uncut:
        run.forget(deferred)
    return _Differentiation(tracer, outputs, inputs, results, forward, False).joint()


class _Differentiation:
    """Single run of the engine over the tape of a recording. `cut`: cut it where one result was
    computed from another."""

    def __init__(self, tracer: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor],
                 results: Collection[FunctionalStorage], forward: set[Node], cut: bool):
        self.tracer, self.outputs, self.inputs = tracer, outputs, inputs
        self.results = results
        self.forward, self.cut = forward, cut
        self.ends = [edge_of(x) for x in inputs]
        tops, ends = [edge_of(x) for x in outputs], set(self.ends)
        self.tape_cut = TapeCut(tops, ends, tracer.first_node, cut)
        self.cuts = self.tape_cut.in_order()
        self.tangents: dict[TapeEdge, Tensor] = {}
        self.given: set[Value] = set()  # graph inputs of tangents
        self.arrived: dict[TapeEdge, Any] = {}

    def joint(self) -> JointGraph | None:
        """Run the engine and make the joint graph; see `differentiate`. Raises _Uncut."""
        tracer = self.tracer
        deferred = list(tracer.deferred)
        quiet = [(x, x._hooks) for x in self.inputs]
        for x in self.inputs:
            x._hooks = None  # hooks of inputs run when the gradient arrives there, on each replay
        tracer.differentiating, tracer.tangent_tracker = True, TangentTracker(tracer)
        watch = ClosedWatch()
        try:
            # The tape is kept: if this fails, the caller's own backward must raise its own error.
            with watch:
                task = self._run()
        except (Exception, RegionRefused) as error:
            if isinstance(error, _Uncut):
                raise
            self.forget(deferred)
            if str(error) == FREED:
                return None
            fails = f"would fail: {type(error).__name__}: "
            said = _VERSIONS.sub(" was written since", str(error))  # versions differ by call
            said = said if isinstance(error, RegionRefused) else f"{fails}{said}"
            raise NotCacheable(f"the result's backward {said}") from error
        finally:
            watch.end()
            tracer.differentiating, tracer.tangent_tracker = False, None
            for x, hooks in quiet:
                x._hooks = hooks
        # A replay's gradient is the caller's tensor, which the program must not write.
        if any(tracer.traced(t).memory.mutations for t in self.tangents.values()):
            self.forget(deferred)
            raise NotCacheable("the result's backward writes to the gradient that it receives")
        return self._joint(task)

    def forget(self, deferred: list[Any]) -> None:
        """Undo this run: restore `deferred`, the recording's deferred tensors, and drop the
        tangents."""
        graph = self.tracer.graph
        graph.inputs = [v for v in graph.inputs if v not in self.given]
        self.tracer.deferred[:] = deferred  # what hooks kept of this run has no value

    def _run(self) -> Any:
        cuts = self.tape_cut.cuts
        for x in self.outputs:
            if edge_of(x) not in self.tangents:
                self.tangents[edge_of(x)] = self._tangent(x)
        tops = {edge_of(x): x for x in self.outputs if edge_of(x) not in cuts}
        task = task_between(
            list(tops.values()), self.ends, [self.tangents[place] for place in tops],
            {place: partial(self._arrive, place) for place in self.cuts},
        )
        found = map(grad_of, (*task.targets.values(), *self.arrived.values()))
        must_be_dense(found, "gives a sparse gradient")
        return task

    def _arrive(self, place: TapeEdge, grad: Any) -> Any:
        """Record the gradient that arrives at a cut. Return the tangent with which the engine goes
        on there."""
        if type(grad) is ConditionalGrad:
            raise _Uncut
        self.arrived[place] = grad
        if place not in self.tangents and grad is not None:
            self.tangents[place] = self._tangent(grad)
        return self.tangents.get(place)

    def _tangent(self, like: Tensor) -> Tensor:
        given = self.tracer.tangent(like)
        self.given.add(self.tracer.traced(given).read())
        tangent: Tensor = self.tracer.tangent_tracker.starts(given)
        return tangent

    def _joint(self, task: Any) -> JointGraph:
        tracer, graph = self.tracer, self.tracer.graph
        when = {place: k for k, place in enumerate(task.order)}
        inputs = sorted(self.inputs, key=lambda x: when.get(edge_of(x), len(when)))
        found = [grad_of(task.targets[edge_of(x)]) for x in inputs]
        found += [self.arrived.get(place) for place in self.cuts]
        tangents = [tracer.traced(t).read() for t in self.tangents.values()]
        views = gradient_views(tracer, found, list(self.tangents.values()))
        values = [None if g is None else tracer.traced(g).read() for g in found]
        real = [v for v in values if v is not None]
        written = {memory.input for memory in tracer.written()}
        unsure = [(memory, x.flag) for x in kept_one_way(self.outputs, tracer.first_node)
                  if (memory := _memory(tracer, x.tensor)) and memory in self.results]
        readable, live = _readable(tracer, self.outputs, self.results,
                                   {memory for memory, _ in unsure})
        saved = residuals(graph, tangents, real, readable, live, self.forward)
        decide = [*(flag for _, flag in unsure if flag is not None),
                  *deciding(self.outputs, tracer.first_node)]
        flags = [tracer.traced(flag).read() for flag in decide]
        saved = list(dict.fromkeys([*saved, *flags]))
        name = f"{graph.name}_backward"
        given = [*saved, *tangents]
        backward = extract(graph, name, given, real, copied=written,
                           lying={v: m.input for v, m in live.items()
                                  if m.input_tensor is not None})
        if logs.enabled("joint"):
            self._emit(real)
        ends = [*(edge_of(x) for x in inputs), *self.cuts]
        stages = self.tape_cut.stages({place: k for k, place in enumerate(ends)})
        places = list(self.tangents)
        tops = [place for place in places if self.cut and place not in self.tape_cut.cuts]
        tape = rebuilt_tape(tracer, places, [*ends, *tops])
        coded = tracer.runs_code or runs_code(self.outputs, tracer.first_node)
        return JointGraph(graph, list(self.outputs), inputs, tangents, values, views, saved,
                          written, live, backward, stages, places, ends, tops, tape, self.forward,
                          computed_again(given, real, self.forward), tape is None and coded)


    def _emit(self, grads: Sequence[Value]) -> None:
        """Write the graph of the results and the gradients to the log."""
        graph = self.tracer.graph
        values = [self.tracer.traced(x).read() for x in self.outputs]
        joint = extract(graph, f"{graph.name}_joint", graph.inputs, [*values, *grads])
        logs.emit("joint", print_graph(joint))


def _memory(tracer: Any, tensor: Tensor) -> FunctionalStorage | None:
    item = tracer.lifted.get(id(tensor))
    traced = tensor._traced if item is None else item.traced
    return None if traced is None else traced.memory


def _readable(
    tracer: Any, outputs: Sequence[Tensor], results: Collection[FunctionalStorage],
    unsure: Collection[FunctionalStorage]
) -> tuple[set[Value], dict[Value, FunctionalStorage]]:
    """Find the inputs that a backward may read: numbers, and unwritten memory whose tensors the
    tape keeps. Return them, and {value: memory} for what the call left in other such memory.

    The caller may change all other memory before the backward, also results that the tape keeps
    only on one way of the program (`unsure`).
    """
    memories = {item.traced.memory.input for item in tracer.lifted_tensors()}
    found = {v for v in tracer.graph.inputs if v not in memories}
    live: dict[Value, FunctionalStorage] = {}
    others: set[Value] = set()  # kept in memory that may change: must be saved
    for tensor in kept(outputs, results=True):
        memory = _memory(tracer, tensor)
        if memory is None:
            continue
        if memory.input_tensor is not None and not memory.mutations:
            found.add(memory.input)
        elif (memory.value.node is None or tracer.sharing.partners(memory)
              or memory.input_tensor is None
              and (memory not in results or memory.strides is not None or memory in unsure)
              or live.setdefault(memory.value, memory) is not memory):
            others.add(memory.value)
    return found, {value: memory for value, memory in live.items() if value not in others}
