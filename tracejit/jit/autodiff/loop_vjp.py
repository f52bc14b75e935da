"""Gradient of a loop: a loop over the iterations in reverse order.

In: a traced loop body, before the loop's node is made.
Out: what the forward loop saves of each iteration (`residuals`), the body of the gradient loop, and
the node of the tape that runs it. Gradients of carried variables go from each iteration to the one
before. Those of what all iterations read are summed up; those of scanned slices are stacked. Called
through `capture.subgraph` by `loops.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.conditional_grad import either, if_true
from tracejit.core.eager.saved import alias, label_of_itself
from tracejit.core.eager.tape import record_custom
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import zeros_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import FLOATING, TensorType, bool_
from tracejit.jit.autodiff.branch_freed import BranchFreed
from tracejit.jit.autodiff.outer_saves import (
    BranchSaves,
    Decide,
    InnerSave,
    OuterSave,
    OuterSaves,
    SavePredicate,
)
from tracejit.jit.autodiff.partition import residuals
from tracejit.jit.autodiff.reach import freed_within, kept, leaves, memory_kept, reaching
from tracejit.jit.autodiff.rerun_loop import RerunLoop
from tracejit.jit.autodiff.vjp import ArrivalFlag, ControlFlowVjp, vjp
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.inputs import LiftedInput
from tracejit.jit.capture.loop_attempts import PeelIteration
from tracejit.jit.capture.loop_exit import RETURNED
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import Start
from tracejit.jit.ir.graph import Graph, Value


def gradient_of(node: Any) -> LoopGradient | None:
    """Make the gradient of a loop. Return None if no gradient flows through it."""
    made = LoopGradient(node)
    return made if made.found else None


class LoopGradient:
    """Gradient of a loop, made before the loop's node: `residuals` become further outputs of its
    body."""

    def __init__(self, node: Any):
        self.node, self.body, self.region = node, node.body, node.region
        self.residuals: list[Value] = []
        self.sum_arrives: list[frozenset[int]] = []  # `arrives` of what is summed
        self.carried_vars = [c for c in node.carried
                             if c.var is not None and _differentiable(c.var)]
        self.stacked = [k for k, t in enumerate(node.stacked) if _tracked(t)]
        outputs = [c.var.end for c in self.carried_vars if c.var.end._requires_grad]
        outputs += [node.stacked[k] for k in self.stacked]
        self.scans = [s for s in self.body.scans if s.origin is not None]
        invariant = [s for s in node.invariant if s.origin is not None]
        outer = self.region.outer_tensors()
        wrt = [*(c.var.origin for c in self.carried_vars), *(s.origin for s in self.scans),
               *(s.origin for s in invariant), *outer]
        self.found = bool(outputs and wrt)
        if self.found:
            freed = freed_within(self.region, outputs)  # one part: results may swap
            self.freed = {frozenset(range(len(outputs)))} if freed else set()
            self.outputs, self.invariant = outputs, invariant
            self.memories = memory_kept(self.region, outputs)
            self._check_written(outputs)
            self._masks(outputs, wrt, invariant, outer)
            self._plan(outputs, wrt, [*(s.outer for s in invariant), *outer])

    @property
    def surely_runs(self) -> bool:
        """True if every call runs the body at least once."""
        return not self.region.may_run_zero_times

    def _plan(self, outputs: list[Any], wrt: list[Any], summed: list[Tensor]) -> None:
        """Make one or two `LoopVjp`: plain, if gradients may arrive alike in all iterations, and
        with flags, if they may not. The flags tell in each iteration which gradients arrive."""
        places = len(self.carried_vars), len(self.scans)
        plain = LoopVjp(self.region, places, outputs, wrt, summed)
        self.plans = [plain] if self._alike(plain) else []
        self.covers = reaching(outputs, outputs)
        if not self.plans or any(len(c) < len(outputs) for c in self.covers):
            self.plans.append(LoopVjp(self.region, places, outputs, wrt, summed, True))
        arriving = zip(plain.summed, self.sum_arrives)
        self.sum_arrives = [a for (_, g, _), a in arriving if g is not None]
        self._keep(list(dict.fromkeys(v for plan in self.plans for v in plan.saved)))

    def _alike(self, plan: LoopVjp) -> bool:
        """Return True if the same gradients arrive in each iteration whenever those of all results
        do."""
        rest = [c for c in (*plan.scan_conditions, *(c for _, _, c in plan.summed))
                if c is not False]
        tracked = [c.var.end._requires_grad for c in self.carried_vars]
        return (all(c is True for c in rest) and not (rest and not self.surely_runs)
                and all(c is True if goes else c is False or self.surely_runs
                        for c, goes in zip(plan.carried_conditions, tracked)))

    def _check_written(self, outputs: list[Any]) -> None:
        """Raise RegionRefused if an iteration writes memory that the one before keeps for its
        gradient."""
        region = self.region
        lasting = {region.traced(s.start).memory for s in self.body.carried_vars if s.is_tensor}
        written = {m for m in lasting | set(region.copies) if m.mutations}
        for x in kept(outputs, results=True) if written else ():
            item = region.lifted.get(id(x))
            traced = x._traced if item is None else item.traced
            if traced is not None and traced.memory in written:
                raise RegionRefused("an iteration writes a tensor that the gradient of the "
                                    "previous one needs")

    def _masks(self, outputs: list[Any], wrt: list[Any], invariant: list[Any],
               outer: list[Any]) -> None:
        """Find which results reach which inputs, through any number of iterations."""
        direct = reaching(outputs, wrt)
        numbers = {id(c): k for k, c in enumerate(
            [c for c in self.carried_vars if c.var.end._requires_grad])}
        arrives = [set(d) for d in direct]  # the results an input reaches
        for _ in self.carried_vars:
            for k, c in enumerate(self.carried_vars):
                own = numbers.get(id(c))
                for found in arrives:
                    if own in found:  # goes on in the next iteration
                        found |= arrives[k]
        count = len(self.carried_vars)
        for k, c in enumerate(self.carried_vars):  # after no iteration a variable is its own result
            if not self.surely_runs and id(c) in numbers:
                arrives[k].add(numbers[id(c)])
        self.arrives = [frozenset(a) for a in arrives]
        self.later = self.arrives[:count]  # by any number of iterations
        least = self._check_histories(outputs, direct, [
            *(None for _ in self.carried_vars), *(s.whole for s in self.scans),
            *(s.outer for s in invariant), *(None for _ in outer)])
        if least > 1:
            self.arrives[:count] = _after(least, direct[:count], [
                numbers.get(id(c)) for c in self.carried_vars])
        self.scan_arrives = self.arrives[count:count + len(self.scans)]
        self.sum_arrives = self.arrives[count + len(self.scans):]

    def _check_histories(self, outputs: list[Any], direct: list[frozenset[int]],
                         beyond: list[Tensor | None]) -> int:
        """Refuse loops whose results reach different leaves as iterations differ. Return the number
        of iterations from which on the leaves stay the same; the body surely runs so often.

        direct  for what an iteration starts from and reads, the outputs that it reaches
        beyond  for the same, the tensor outside whose history goes on from there
        """
        first = self.node.parent.root.first_node
        count = len(self.carried_vars)
        own = [leaves([x], first) | leaves([b for b, numbers in zip(beyond, direct)
                                            if b is not None and k in numbers], first)
               for k, x in enumerate(outputs)]
        starts = [leaves([c.var.outer], first) for c in self.carried_vars]
        numbers = {id(c): k for k, c in enumerate(
            [c for c in self.carried_vars if c.var.end._requires_grad])}

        def after(before: list[set]) -> list[set]:
            """Return the leaves of the outputs, given those of the variables before the
            iteration."""
            return [mine.union(*(before[j] for j in range(count) if k in direct[j]))
                    for k, mine in enumerate(own)]

        reached = [starts]  # by number of iterations: leaves of each variable
        stacked = []  # by iteration: leaves of the elements of lists
        for _ in range(count + 1):
            found = after(reached[-1])
            stacked.append(found[len(numbers):])
            reached.append([found[numbers[id(c)]] if id(c) in numbers else set()
                            for c in self.carried_vars])
        if any(x != stacked[0] for x in stacked):
            raise PeelIteration(
                "different iterations append tensors with different leaves")
        if reached[-1] != reached[-2]:
            raise RegionRefused(
                "different iterations give gradients to different tensors")
        self._check_claims(reached)
        return self._check_settled(reached)

    def _check_claims(self, reached: list[list[set]]) -> None:
        """Require that both sides of each branch in the body lead to the same leaves, in every
        iteration."""
        first = self.node.parent.root.first_node
        fixed = [(s.origin, s.outer) for s in self.node.invariant if s.origin is not None]
        fixed += [(s.origin, s.whole) for s in self.scans]
        known = {origin._node: leaves([outer], first, True) for origin, outer in fixed}
        for before in reached:
            known |= {c.var.origin._node: found for c, found in zip(self.carried_vars, before)}
            for sides in self.region.leaf_constraints:
                one, other = (set().union(*(known.get(n, {n}) for n in side)) for side in sides)
                self.node.parent.same_leaves(one, other)
        self.region.leaf_constraints.clear()

    def _check_settled(self, reached: list[list[set]]) -> int:
        body = self.body
        names = body.variables.live_out | body.variables.upward_exposed
        names |= {name for contents in body.contents for name in contents.names.values()}
        least = needed = int(self.surely_runs)
        for k, c in enumerate(self.carried_vars):
            seen = [x[k] for x in reached]
            if c.var.name not in names and c.var.name != RETURNED:
                continue
            begin = max(least, 1 if c.var.filled else 0)
            differing = [n for n in range(begin, len(seen)) if seen[n] != seen[-1]]
            needed = max([needed, *(n + 1 for n in differing)])
        if needed > least and (body.trip_count is None or not body.trip_count >= needed):
            raise RegionRefused("a tensor gets a gradient only after several iterations")
        return needed

    def _keep(self, saved: list[Value]) -> None:
        """Sort the values that the gradient reads: same for all iterations, scanned, or saved of
        each."""
        node, body = self.node, self.body
        captured = {inner: key for key, inner in self.region.captured.items()}
        for _, inner in node.memories:  # the body writes it: never the same
            captured.pop(inner.input, None)
        for var in node.invariant:
            captured[var.input] = node.parent.traced(var.outer).read()
        scanned = {s.input: s for s in body.scans}
        self.same = [(v, captured[v]) for v in saved if v in captured]
        self.read_scans = [scanned[v] for v in saved
                           if v in scanned and body.trip_count is not None]
        known = {v for v, _ in self.same} | {s.input for s in self.read_scans}
        self.index = body.position if body.trip_count is not None else None
        self.residuals = [v for v in saved if v not in known and v is not self.index]
        # `unwind_loop` counts by what it pops from a stack: one value must lie there.
        if body.trip_count is None and not self.residuals:
            self.residuals = [node.carried[0].input]

    # -- after the node is made ------------------------------------------------------------------
    def attach(self, node: Any, stacked: Sequence[Tensor], kept: Sequence[Tensor]) -> None:
        """Put the gradient loop on the tape. `stacked`: what iterations append to lists or store,
        stacked; `kept`: the stacked `residuals`."""
        inputs = [*(c.var.outer for c in self.carried_vars),
                  *(x for x, g, _ in self.plans[0].summed if g is not None),
                  *(s.whole for s in self.scans if self.body.trip_count is not None)]
        reached = [*self.arrives[:len(self.carried_vars)], *self.sum_arrives, *self.scan_arrives]
        inputs = [x if goes else alias(x) for x, goes in zip(inputs, reached)]  # no edge
        results = [c.result for c in self.carried_vars if c.var.end._requires_grad]
        results += [stacked[k] for k in self.stacked]
        types = [node.parent.traced(x).read().type for x in results]
        backward = None
        for plan in reversed(self.plans):  # the last is what the first falls back on
            backward = self._backward(plan, kept, types, len(inputs), backward)
        backward.kept = self._kept(results)  # type: ignore[union-attr]
        backward.leads_to(node.parent, inputs, results,  # type: ignore[union-attr]
                          not self.region.runs_code)
        record_custom("LoopBackward", inputs, results, backward,  # type: ignore[arg-type]
                      freeing=self._freed())

    def _freed(self) -> BranchFreed:
        """Make the record of what a backward frees: nothing if the body did not run."""
        sure = not self.region.may_run_zero_times
        return BranchFreed([self.freed] if sure else [self.freed, ()], len(self.outputs),
                           None if sure else self.node.count)

    def _kept(self, results: list[Tensor]) -> OuterSaves:
        """List the memory outside, and that of results, which the history of iterations keeps."""
        node, body, region, parent = self.node, self.body, self.region, self.node.parent
        places: list[tuple[Any, Tensor, int | None]] = [
            (x, r, -1) for x, r in zip(self.outputs, results)]
        # With `b = a` in the body, b's result is a at the start of the last iteration (-1), so at
        # the end of the one before (-2).
        for c in self.carried_vars:
            places += [(c.var.start, r, -1) for x, r in zip(self.outputs, results)
                       if x is c.var.start]
            places += [(c.var.end, r, -2) for x, r in zip(self.outputs, results)
                       if x is c.var.start]
            places.append((c.var.start, c.var.outer, None if c.var.end is c.var.start else 0))
        places += [(s.start, s.outer, None) for s in self.invariant]
        places += [(s.item, s.source, None) for s in body.scans]
        rows = {id(s.item) for s in body.scans}
        places += [(item, item.tensor, None) for item in region.lifted.values()]
        found = []
        for x, other, iteration in places:
            traced: Any = x.traced if type(x) is LiftedInput else region.traced(x)
            memory = traced.memory
            if memory in self.memories:
                within = self._within(memory, iteration)
                inner = x.tensor if type(x) is LiftedInput else x
                itself = None if id(x) in rows else within.seen_as(inner, other)
                own = any(other is r for r in results)  # the node must not hold its result
                found.append(OuterSave(memory, within, alias(other) if own else other, itself))
        first = node.count if region.may_run_zero_times else None
        tests = [t for x in found for some in x.within.when.values() if some for t in some]
        decide: Decide | None = None
        held: list[Any] = []
        if tests:
            op, given, attributes, graph = node.parts([v for t in tests for v in t.values])
            decide = RerunLoop(op, attributes, graph, tests)
            held = [parent.tensor_of(v) if isinstance(v, Value) else v for v in given]
        others = [] if first is None else [BranchSaves([])]
        return OuterSaves([BranchSaves(found, decide), *others], first, held)

    def _within(self, memory: FunctionalStorage, iteration: int | None) -> InnerSave:
        """Return how history keeps memory in `iteration` (None: any; negative: from the end)."""
        tracked = [k for k, c in enumerate(self.carried_vars) if c.var.end._requires_grad]
        when: dict[int, list[SavePredicate] | None] = {}
        for number, tests in self.memories[memory].when.items():
            later = self.later[tracked[number]] if number < len(tracked) else frozenset()
            for k in {number, *later}:
                before = when.get(k, [])
                when[k] = None if before is None or tests is None else [
                    *before, *(test._replace(iteration=iteration) for test in tests)]
        within = self.memories[memory]
        if within.label.made == Start.__name__:
            made = [label_of_itself(c.var.end, within.label.shape) for c in self.carried_vars
                    if c.var.start is within.tensor]  # the iteration before made it
            within = within._replace(label=made[0] if made else within.label._replace(made=""))
        return within._replace(when=when)

    def _backward(self, plan: LoopVjp, kept: Sequence[Tensor], types: list[TensorType], count: int,
                  masked: ControlFlowVjp | None) -> ControlFlowVjp:
        """Make the backward that runs a plan.

        kept    stacked `residuals`
        count   number of inputs of the tape's node
        masked  backward that runs where zeros for gradients that do not arrive could be noticed
        """
        node, body, graph = self.node, self.body, self.region.graph
        sums = [GradSum(graph, x, g, c) for x, g, c in plan.summed if g is not None]
        tracked = [c.var.end._requires_grad for c in self.carried_vars]
        start = sum(tracked)
        numbers = iter(range(start))
        bars, first = [], []
        for c, goes in zip(self.carried_vars, tracked):
            number = next(numbers) if goes else None
            bars.append(graph.input(c.input.type) if number is None else plan.tangents[number])
            first.append(c.input.type if number is None else number)
        carried_grads = [_or_zeros(g, c.input) for g, c in zip(plan.carried, self.carried_vars)]
        scan_grads = [_select(graph, c, _or_zeros(g, s.input), None)
                      for g, s, c in zip(plan.scans, self.scans, plan.scan_conditions)]
        first += [s.input.type for s in sums]
        inputs = [*bars, *(s.input for s in sums)]
        outputs = [*carried_grads, *(s.end for s in sums)]
        if plan.flags:
            self._add_flags(plan, first, inputs, outputs, sums)
        attributes: dict[str, Any] = {"carried": len(first)}
        same: list[Any] = [node.parent.tensor_of(key) for _, key in self.same]
        if body.trip_count is None:
            op = REGISTRY["unwind_loop"]
            inputs += [*self.residuals, *(v for v, _ in self.same)]
            operands = [node.count, kept[0], *first, *same]
        else:
            op = REGISTRY["for_loop"]
            stacked = range(start, len(plan.tangents))
            scanned = [*stacked, *kept, *(s.whole for s in self.read_scans)]
            inputs = [self.index, *inputs, *plan.tangents[start:], *self.residuals,
                      *(s.input for s in self.read_scans), *(v for v, _ in self.same),
                      *plan.flags[start:]]
            outputs += scan_grads
            operands = [*first, *scanned, *same, *(ArrivalFlag(k) for k in stacked if plan.flags)]
            attributes |= {"trip_count": body.trip_count, "scanned": len(scanned), "reverse": True}
        region = self.region.region(inputs, outputs)
        region.name = f"{self.region.name}_backward"
        reached = [*self.arrives[:len(self.carried_vars)], *self.sum_arrives,
                   *self.scan_arrives][:count]
        made = len(self.carried_vars) + len(sums)
        places = [k if k < made else k - made + len(first) for k in range(count)]
        told = [made + k if plan.flags else None for k in range(count)]
        return ControlFlowVjp(op, attributes, (region,), operands, types, places, reached,
                              ArrivalRule(reached, told), self.covers, masked)

    def _add_flags(self, plan: LoopVjp, first: list[Any], inputs: list[Value], outputs: list[Value],
                   sums: list[GradSum]) -> None:
        """Carry a flag beside each gradient that says whether it arrives: iterations may differ in
        that."""
        graph, kind = self.region.graph, plan.flags[0].type
        numbers = iter(range(len(self.carried_vars)))
        for c in self.carried_vars:
            number = next(numbers) if c.var.end._requires_grad else None
            inputs.append(graph.input(kind) if number is None else plan.flags[number])
            first.append(kind if number is None else ArrivalFlag(number))
        outputs += [_held(graph, c, kind) for c in plan.carried_conditions]
        for condition in [*(s.condition for s in sums), *plan.scan_conditions]:
            before = graph.input(kind)
            first.append(kind)
            inputs.append(before)
            outputs.append(graph.append(
                REGISTRY["logical_or"], (before, _held(graph, condition, kind)), {}))


def _after(least: int, direct: Sequence[frozenset[int]], own: Sequence[int | None]
           ) -> list[frozenset[int]]:
    """Find the results that the variables before the loop reach if it runs at least `least` times.

    direct  the results that a variable reaches through one iteration
    own     the number of each variable's own result, or None
    """
    carried_vars = {number for number in own if number is not None}
    found: list[set[int]] = [set() for _ in direct]
    through = list(direct)
    # A path through more iterations passes a variable twice: a shorter one leads there, too.
    for count in range(1, least + 2 * len(direct) + 2):
        # Early iterations give elements of lists, but no final value of a variable.
        for arrives, reached in zip(found, through):
            arrives |= reached if count >= least else reached - carried_vars
        through = [frozenset().union(*(through[k] for k, number in enumerate(own) if number in d))
                   for d in direct]
    return [frozenset(arrives) for arrives in found]


class LoopVjp:
    """Gradient through one iteration.

    tangents  gradients of what the iteration gives
    flags     when the tangents arrive; empty: always
    carried   gradients of the carried variables; None where nothing arrives
    scans     the same of scanned slices
    summed    (tensor, gradient, condition) of what every iteration reads
    """

    def __init__(self, region: Any, places: tuple[int, int], outputs: list[Any], wrt: list[Any],
                 read: list[Tensor], flagged: bool = False):
        kind = TensorType(bool_, (), region.traced(outputs[0]).read().type.device)
        self.flags = [region.graph.input(kind, source="arrives") for _ in outputs if flagged]
        self.tangents, grads, conditions = vjp(region, outputs, wrt, self.flags)
        count, end = places[0], sum(places)
        self.carried, self.scans = grads[:count], grads[count:end]
        self.carried_conditions, self.scan_conditions = conditions[:count], conditions[count:end]
        self.summed = list(zip(read, grads[end:], conditions[end:]))
        wanted = [g for g in (*grads, *conditions) if isinstance(g, Value)]
        self.saved = residuals(region.graph, [*self.tangents, *self.flags], wanted)


class GradSum:
    """Running sum of the gradient of a tensor that every iteration reads."""

    def __init__(self, graph: Graph, tensor: Tensor, grad: Value, condition: Any):
        self.tensor, self.condition = tensor, condition
        self.input = graph.input(grad.type, source="sum")
        total = graph.append(REGISTRY["add"], (self.input, grad), {})
        self.end = _select(graph, condition, total, self.input)


class ArrivalRule:
    """Rule for when the gradients that a loop gives arrive.

    reached  for each input the tangents that reach it
    told     for each input the number of the result that says so, where the loop computes it
    """

    def __init__(self, reached: Sequence[frozenset[int]], told: Sequence[int | None]):
        self.reached, self.told = reached, told

    def __call__(self, operands: Sequence[Any], conditions: Sequence[Any], made: Sequence[Tensor]
                 ) -> list[Any]:
        found = [either(*(conditions[k] for k in sorted(reached))) for reached in self.reached]
        return [c if number is None or c is False else if_true(made[number])
                for c, number in zip(found, self.told)]


def _or_zeros(grad: Value | None, like: Value) -> Value:
    return zeros_of(like, like.type) if grad is None else grad


def _select(graph: Graph, condition: Any, value: Value, other: Value | None) -> Value:
    """Return `value` if the condition holds, else `other` (None: zeros)."""
    if condition is True:
        return value
    rest = zeros_of(value, value.type) if other is None else other
    if condition is False:
        return rest
    return graph.append(REGISTRY["where"], (condition, value, rest), {})


def _held(graph: Graph, condition: Any, kind: TensorType) -> Value:
    """Return a condition, which may be a bool, as a value of the graph."""
    if isinstance(condition, Value):
        return condition
    attributes = {"shape": (), "value": condition, "dtype": bool_, "device": kind.device}
    return graph.append(REGISTRY["full"], (), attributes)


def _tracked(x: Any) -> bool:
    return isinstance(x, Tensor) and x._requires_grad and x._dtype.category >= FLOATING


def _differentiable(var: Any) -> bool:
    return var.is_tensor and var.origin is not None and var.start._dtype.category >= FLOATING
