"""Memory of a captured call for its backward, and the compiled programs that this runs (C4).

In: the plan of a recorded call's gradients, and the tensors of one call. Out: `SavedCall`, which
nodes of the call share (`call_nodes.py`). Made by `attach_backward` and `native_history`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, cast

import numpy as np

from tracejit.core.eager.backward import task_between
from tracejit.core.eager.nodes import FREED, Edge, edge_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import (
    Saved,
    SavedResult,
    TensorLabel,
    alias,
    check_version,
    label_of_itself,
    modified,
    over_same_memory,
    version_of,
    versions_of,
)
from tracejit.core.eager.state import make, of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import Storage
from tracejit.core.memory.readers import Before
from tracejit.core.ops.types import dtype
from tracejit.jit.autodiff.eager_vjp import at, without_derivatives
from tracejit.jit.autodiff.freed import Freed
from tracejit.jit.autodiff.gradient_views import look
from tracejit.jit.autodiff.partial_eval import PartialEvaluator, UnknownInput
from tracejit.jit.autodiff.prune import prune
from tracejit.jit.autodiff.rebuilt_tape import CallTensors, RebuiltTape
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import at_size, interpret
from tracejit.jit.runtime.backward_plan import (
    BackwardPlan,
    BackwardVariant,
    FreeCondition,
    Key,
    Shown,
    VersionCheck,
)
from tracejit.jit.runtime.compiled_graph import BoundGraph

UNSEEN = (
    "tracejit: a tensor was written between a captured call and its backward, which runs a branch "
    "or a loop again and needs the old value. Write the tensor after the backward, or call the "
    "function without capture."
)

NOTHING: Mapping[int, Any] = {}  # `noted` and `old` of most calls


class SavedCall:
    """Call as its nodes keep it.

    given     its inputs
    inputs    the same, where those that the call wrote are as they were before
    made      what the program made and the backward reads
    versions  of the inputs that second derivatives read, and without a tape of `inner`
    inner     results that second derivatives are computed from
    noted     what tells of a write, by the check's number, where `versions` has no version for it
    old       copies of inputs, by number, from before somebody wrote them
    ends      edges to which gradients of the inputs go, as they were at the call
    nodes     weak references to the nodes of the stages; None until the only one runs
    freed     what of the call is freed, where its tape was laid again
    over      True: what the call kept is freed
    """

    __slots__ = ("plan", "bound", "given", "inputs", "made", "versions", "inner", "noted", "old",
                 "ends", "nodes", "freed", "over", "__weakref__")
    plan: BackwardPlan
    bound: BoundGraph
    given: Sequence[Any]
    inputs: Sequence[Any]
    made: Sequence[Tensor]
    versions: Sequence[int]
    inner: Sequence[Tensor]
    noted: Mapping[int, Any]
    old: Mapping[int, Tensor]
    ends: tuple[Edge, ...]
    nodes: list[weakref.ref | None] | None
    freed: Freed | None
    over: bool

    def __init__(self, plan: BackwardPlan, given: Sequence[Any], made: Sequence[Tensor],
                 bound: BoundGraph, ends: tuple[Edge, ...]):  # `native_history` does the same
        self.plan, self.bound, self.given, self.inputs = plan, bound, given, given
        self.made, self.ends, self.nodes = made, ends, None
        self.versions = self.inner = ()
        self.noted, self.old, self.freed, self.over = NOTHING, NOTHING, None, False

    def keep(self, roots: Sequence[Tensor], outputs: Sequence[Any]) -> None:
        """Keep what only some plans ask for: results that the backward reads, and written inputs as
        they were."""
        plan, given = self.plan, self.given
        if plan.lent:  # not the results themselves: results hold the call
            self.made = [*[over_same_memory(roots[k]) for k in plan.lent], *self.made]
        if plan.before:
            self.inputs = inputs = list(given)
            for number, output in plan.before:
                inputs[number] = _as_it_was(roots[output], given[number])
        self.inner = [alias(outputs[k]) for k in plan.inner]
        if plan.apart:
            self.noted = {n: self._saved(plan.noted[n], roots, outputs) for n in plan.apart}

    def _saved(self, check: VersionCheck, roots: Sequence[Tensor], outputs: Sequence[Any]
               ) -> Saved | SavedResult:
        """Return the object that notices a write to the memory of a check."""
        if check.input >= 0:
            return Saved(self.given[check.input])
        itself = outputs[check.result] if check.result >= 0 else None
        return SavedResult(roots[check.root], self._label(check, roots[check.root]), itself)

    def remember_versions(self) -> None:
        """Note the versions of the tensors that second derivatives start from."""
        plan = self.plan
        self.versions = versions_of(self.read() if plan.tape is None else plan.reading(self.given))

    def kept(self) -> Sequence[Any]:
        """Return the saved values, which the backward program reads."""
        return self.plan.kept((*self.given, *reversed(self.made)))

    def spent(self, stage: int, gone: int) -> SavedCall | None:
        """Return the rest of the call for a stage whose groups `gone` are freed.

        The rest gives gradients that need nothing of the call but flags. Return None where no
        gradient gets through.
        """
        plan, common = self.plan, self.plan.stages[stage]
        if plan.tape is not None and plan.tape.code_paths or not common.leads_on(gone):
            return None
        left = FreedCall(plan, (), (), self.bound, self.ends)
        left.nodes, left.freed, left.over = self.nodes, self.freed, True
        flags = {condition.flag for condition in common.free_conditions if condition is not None}
        kept = self.kept() if flags else ()
        left.flags = {k: kept[k] for k in flags}
        return left

    def about_to_write(self, storage: Storage, before: Before) -> None:
        """Copy the inputs in this memory that the backward computes values from again.

        The plain function kept those values; the replay computes them from the inputs as they are
        now.
        """
        for k in self.plan.remembers:
            x = self.given[k]
            if x._storage is storage and k not in self.old:
                kept = make(before.copy(), x._offset, x._shape, x._strides, x._dtype, x._device)
                self.old = {**self.old, k: kept}

    def check(self, noted: Iterable[int]) -> None:
        """Raise RuntimeError if memory of these checks was written since the call."""
        for k in noted:
            check = self.plan.noted[k]
            if check.input < 0:
                result = self.noted[k]
                if check.flag < 0 or not result.intact() and self._went(check):
                    result.unpack()
                continue
            x = self.given[check.input]
            known = (self.noted[k].version if k in self.noted
                     else self.versions[self.plan.versions[k]])
            version = version_of(x)
            if version != known:
                raise modified(self._label(check, x), version, known)

    def was(self, condition: FreeCondition) -> bool:
        """Return True if something was there to be freed."""
        return bool(self.kept()[condition.flag]) is condition.sense

    def _went(self, check: VersionCheck) -> bool:
        """Return True if the program took the branch in which the tape keeps a result."""
        return bool(self.kept()[check.flag]) is check.sense

    def _label(self, check: VersionCheck, x: Tensor) -> TensorLabel:
        """Return the error's description of a check's memory, in which `x` lies."""
        if check.label is None:
            return label_of_itself(x)
        return check.label._replace(shape=at_size(check.label.shape, self.bound.sizes))

    def moved(self, over_tensors: bool) -> bool:
        """Return True if an input that the backward computes from again has other contents now."""
        return any(not _same(self.old[k], self.given[k]) for k in self.plan.again[over_tensors]
                   if k in self.old)

    def read(self) -> list[Any]:
        """Return the tensors that second derivatives start from."""
        return [*self.plan.reading(self.inputs), *self.inner]

    def run(self, parts: Mapping[Any, list], wanted: Sequence[int], shown: Shown
            ) -> list[list[Any]]:
        """Return the gradients along the edges of nodes that follow each other.

        wanted, shown as for `CompiledBackward.apply_all`
        """
        if self.nodes is None:
            self.nodes = [weakref.ref(node) for node in parts]
        key = tuple([(node.stage, _bits(grads), mask)
                     for (node, grads), mask in zip(parts.items(), wanted)])
        variant = self.plan.variant(key, shown if shown and any(shown) else ())
        for node, frees in zip(parts, variant.frees):
            if node.gone(frees):
                raise RuntimeError(FREED)
            node.runs = frees
        if not self.over:
            self.check(variant.checked)
        plan, given = self.plan, list(parts.values())
        tracer: Any = active.tracer
        numbers = [plan.stages[key[n][0]].results[k] for n, k in variant.tangents]
        tangents = [_cast(given[n][k], plan.dtypes[t])
                    for (n, k), t in zip(variant.tangents, numbers)]
        if self.over:
            return self._looked(variant, self._left(variant.graph, tangents), given, tangents)
        mapped = tracer is not None and tracer.mapped
        differs = plan.tape is not None and plan.tape.differs(numbers)
        seen = active.anomaly and plan.tape is not None  # anomaly mode sees each node's gradients
        alone = not variant.exact and plan.tape is not None
        over_tensors = (
            active.grad_enabled or mapped or differs or seen or alone) and not plan.final
        if self.old and self.moved(over_tensors):
            if plan.tape is None or plan.tape.regions:
                raise RuntimeError(UNSEEN)
            over_tensors = True
        if over_tensors and alone and plan.tape is not None:
            return self._one_by_one(plan.tape, key, given)
        if over_tensors:
            (stage, _, edges), = key
            if plan.tape is None:
                return [self._interpreted(stage, numbers, tangents, variant.places[0])]
            return [self._laid(plan.tape, stage, edges, dict(zip(numbers, tangents)))]
        if not variant.graph.outputs and not variant.looks:
            return [[None] * len(row) for row in variant.places]
        if variant.segment is None and variant.graph.outputs:
            variant.segment = plan.compile(variant.graph)
            variant.segment.given_away = True
        if tracer is not None:  # the gradients' program runs between segments of the recording
            tracer.flush()
        made: list[Any] = []
        with nullcontext() if tracer is None else tracer.paused():
            values = [*self.kept(), *tangents]
            if variant.segment is not None:
                bound = variant.segment.bind_given(values, self.bound.sizes)
                made = variant.segment.run(values, bound)
            if variant.looks:
                return self._looked(variant, made, given, tangents)
        if active.grad_enabled:
            known = [edge_of(x) for x in tangents if x._requires_grad]
            without_derivatives(made, [*(e for node in parts for e in node.edges), *known])
        return [[None if k is None else made[k] for k in row] for row in variant.places]

    def _left(self, graph: Graph, tangents: list[Any]) -> list[Any]:
        """Return the gradients of a call whose history is freed. Here it raises RuntimeError."""
        raise RuntimeError(FREED)

    def _looked(self, variant: BackwardVariant, made: list[Any], given: list[list],
                tangents: list[Any]
                ) -> list[list[Any]]:
        """Return the program's results, and in `looks` views of them or of the gradients that
        arrived."""
        found = [[None if k is None else made[k] for k in row] for row in variant.places]
        known: dict[int, Any] = {}
        for (n, k), (source, steps, number) in variant.looks.items():
            if number not in known:
                base = made[source] if source >= 0 else tangents[-1 - source]
                if source < 0:
                    stage, result = variant.tangents[-1 - source]
                    arrived = given[stage][result]
                    base = arrived if arrived._dtype is base._dtype else base
                known[number] = look(base, steps, self.bound.sizes)
            found[n][k] = known[number]
        return found

    def _one_by_one(self, tape: RebuiltTape, key: Key, given: Sequence[list]) -> list[list[Any]]:
        """Return the gradients of each stage over its tape.

        A stage also gets the gradients that the stages before it gave.
        """
        plan = self.plan
        arriving = {s: list(grads) for (s, _, _), grads in zip(key, given)}
        wanted, rows = plan.wanted(key), []
        for s, grads in arriving.items():
            stage = plan.stages[s]
            tangents = {t: _cast(grad, plan.dtypes[t])
                        for t, grad in zip(stage.results, grads) if grad is not None}
            row = [None for _ in stage.edges]
            if tangents:
                row = self._laid(tape, s, wanted[s], tangents)
            for k, g in enumerate(stage.edges):
                target = plan.target(g, arriving)
                if target is not None and row[k] is not None:
                    below, at = target
                    known = arriving[below][at]
                    arriving[below][at] = row[k] if known is None else known + row[k]
                    row[k] = None
            rows.append(row)
        return rows

    def _laid(self, tape: RebuiltTape, stage: int, wanted: int, tangents: Mapping[int, Tensor]
              ) -> list[Any]:
        """Return the gradients of a stage over the call's own tape, laid again."""
        plan, tracer = self.plan, cast(Any, active.tracer)
        if tracer is not None and not tracer.mapped:
            tracer.flush()
        assert self.nodes is not None
        nodes: list[Any] = [None if at is None else at() for at in self.nodes]
        behind = [below(plan, nodes, self.ends, k) for k in range(len(plan.grads))]
        behind += [None if nodes[s] is None else (nodes[s], k) for s, k in plan.tops]
        if self.freed is None:
            self.freed = Freed([stage.parts for stage in plan.stages], self.nodes)
        call = CallTensors(self.given, [self.old.get(k, x) for k, x in enumerate(self.inputs)],
                           self.kept(), dict(zip(plan.read, self.versions)),
                           self.bound.sizes, self.freed)
        with _nobody_recording():
            results, boundaries = tape.lay(tangents, call, behind)
        goes = [boundaries[g] if wanted >> k & 1 else None
                for k, g in enumerate(plan.stages[stage].edges)]
        found = task_between(results, boundaries, list(tangents.values()),
                             create_graph=active.grad_enabled, wanted=[e for e in goes if e])
        return [None if e is None else found.targets[e] for e in goes]

    def _interpreted(self, stage: int, arrived: Sequence[int], tangents: list[Any],
                     places: list[int | None]) -> list[Any]:
        """Return the gradients as eager ops on the tape: the joint graph, op by op."""
        plan, graph = self.plan, self.plan.graph
        assert graph is not None
        for x, version in zip(self.read(), self.versions):
            check_version(x, version, None, 0)
        positions = range(len(graph.inputs))
        numbers: Sequence[int | None] = range(len(graph.outputs))
        absent = {graph.inputs[k] for t, k in enumerate(plan.tangents) if t not in arrived}
        if absent:
            graph, numbers, _ = prune(graph, [graph.inputs[k] for k in plan.tangents], absent)
        of_tangent = {plan.tangents[t]: x for t, x in zip(arrived, tangents)}
        rest = iter([of_array(x) if isinstance(x, np.ndarray) else x
                     for x in (*self.inputs, *self._with_history())])
        given = [of_tangent[k] if k in of_tangent else next(rest)
                 for k in positions if k in of_tangent or k not in plan.tangents]
        made = interpret(graph, given).outputs
        found = []
        for g, place in zip(plan.stages[stage].edges, places):
            number = None if place is None else numbers[plan.grads[g]]  # type: ignore[index]
            found.append(None if number is None else made[number])
        return found

    def _with_history(self) -> list[Any]:
        """Return the results in `inner` with their history, so that derivatives go through the
        call's nodes."""
        found = []
        for k, x in zip(self.plan.inner, self.inner):
            stage, number = self.plan.places[k]
            at = self.nodes[stage]  # type: ignore[index]
            node = None if at is None else at()
            again = alias(x)
            if node is not None:
                again._node, again._output_nr, again._requires_grad = node, number, True
            found.append(again)
        return found


class FreedCall(SavedCall):
    """Rest of a call whose history is freed.

    flags  position -> saved value that decides whether a group was there
    """

    __slots__ = ("flags",)
    flags: Mapping[int, Tensor]

    def _left(self, graph: Graph, tangents: list[Any]) -> list[Any]:
        """Return the gradients as eager ops on the tape.

        Raises RuntimeError where they need more of the call than its flags.
        """
        first = len(graph.inputs) - len(tangents)
        known = {**self.flags, **dict(enumerate(tangents, first))}
        given = {graph.inputs[k]: partial(known.get, k) for k in known}
        try:
            return PartialEvaluator(graph, given, self.bound.sizes).outputs()
        except UnknownInput:
            raise RuntimeError(FREED) from None


def _as_it_was(content: Tensor, x: Tensor) -> Tensor:
    """Return an input as it was before the call wrote it. Its gradient goes where the input's own
    goes."""
    return at(content, *edge_of(x)) if x._requires_grad else content


def _same(one: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have the same bits. Tensors outside the CPU count as different."""
    if one._device.type != "cpu" or one._shape != other._shape or one._dtype is not other._dtype:
        return False
    return one.array.tobytes() == other.array.tobytes()


def _cast(grad: Any, dtype: dtype) -> Any:
    """Return a gradient in this dtype, contiguous."""
    return (grad if grad._dtype is dtype else grad.to(dtype)).contiguous()


@contextmanager
def _nobody_recording() -> Iterator[None]:
    tracer, active.tracer = active.tracer, None
    try:
        yield
    finally:
        active.tracer = tracer


def _bits(grads: Sequence[Any]) -> int:
    return sum([1 << k for k, grad in enumerate(grads) if grad is not None])


def below(plan: BackwardPlan, nodes: Sequence[Any], ends: Sequence[Edge], gradient: int) -> Edge:
    """Return the edge along which a gradient goes: to an input's history, or to a lower stage."""
    if gradient < len(ends):
        return ends[gradient]
    stage, result = plan.cuts[gradient - len(ends)]
    return None if nodes[stage] is None else (nodes[stage], result)
