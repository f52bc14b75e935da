"""The gradient of a loop is a loop that runs the other way.

In: a recorded loop body about to become a node. Out: what the forward loop keeps of each iteration
(`residuals`), the body of the gradient loop, and the node of the tape that runs it. Gradients of
what iterations carry go from each iteration to the one before; those of what all iterations read
are summed up; those of scanned slices are stacked. Called through `capture.region` by `loops.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.autodiff.partition import residuals
from tracejit.autodiff.pull_back import ControlBackward, pull_back
from tracejit.autodiff.reach import leaves, reaching
from tracejit.capture.breaks import Refused
from tracejit.capture.loop_body import Peel
from tracejit.capture.loop_exit import RETURNED
from tracejit.eager.tape import record_custom
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Graph, Value
from tracejit.ops.creation import zeros_of
from tracejit.ops.record import REGISTRY
from tracejit.ops.types import FLOATING


def gradient_of(node: Any) -> LoopGradient | None:
    """The gradient of a loop; None where no gradient flows through it."""
    made = LoopGradient(node)
    return made if made.found else None


class LoopGradient:
    """Built before the node is: its `residuals` are further outputs of the body."""

    def __init__(self, node: Any):
        self.node, self.body, self.region = node, node.body, node.region
        self.residuals: list[Value] = []
        self.slots = [c for c in node.carried if c.slot is not None and _differentiable(c.slot)]
        self.stacked = [k for k, t in enumerate(node.stacked) if _tracked(t)]
        outputs = [c.slot.end for c in self.slots if c.slot.end._requires_grad]
        outputs += [node.stacked[k] for k in self.stacked]
        self.scans = [s for s in self.body.scans if s.origin is not None]
        invariant = [s for s in node.invariant if s.origin is not None]
        outer = self.region.outer_tensors()
        wrt = [*(c.slot.origin for c in self.slots), *(s.origin for s in self.scans),
               *(s.origin for s in invariant), *outer]
        self.found = bool(outputs and wrt)
        if self.found:
            self._masks(outputs, wrt, invariant, outer)
            tangents, grads = pull_back(self.region, outputs, wrt)
            self._arrange(tangents, grads, [*(s.outer for s in invariant), *outer])

    def _masks(self, outputs: list[Any], wrt: list[Any], invariant: list[Any],
               outer: list[Any]) -> None:
        """Which results reach which inputs, through any number of iterations."""
        direct = reaching(outputs, wrt)
        numbers = {id(c): k for k, c in enumerate(
            [c for c in self.slots if c.slot.end._requires_grad])}
        arrives = [set(d) for d in direct]  # the results an input reaches
        for _ in self.slots:
            for k, c in enumerate(self.slots):
                own = numbers.get(id(c))
                for found in arrives:
                    if own in found:  # what reaches this variable reaches what it reaches later
                        found |= arrives[k]
        count = len(self.slots)
        for k, c in enumerate(self.slots):  # after no iteration a variable is its own result
            if self.body.trip is None and id(c) in numbers:
                arrives[k].add(numbers[id(c)])
        self.arrives = [frozenset(a) for a in arrives]
        self._check_histories(outputs, direct, [
            *(None for _ in self.slots), *(s.whole for s in self.scans),
            *(s.outer for s in invariant), *(None for _ in outer)])
        self.scan_arrives = self.arrives[count:count + len(self.scans)]
        self.sum_arrives = self.arrives[count + len(self.scans):]

    def _check_histories(self, outputs: list[Any], direct: list[frozenset[int]],
                         beyond: list[Tensor | None]) -> None:
        """Which leaves a result reaches must not depend on how often the body ran.

        direct  for what an iteration starts from and reads, the outputs that it reaches
        beyond  for the same, the tensor outside whose history goes on from there
        """
        first = self.node.parent.root.first_node
        count = len(self.slots)
        own = [leaves([x], first) | leaves([b for b, numbers in zip(beyond, direct)
                                            if b is not None and k in numbers], first)
               for k, x in enumerate(outputs)]
        starts = [leaves([c.slot.outer], first) for c in self.slots]
        numbers = {id(c): k for k, c in enumerate(
            [c for c in self.slots if c.slot.end._requires_grad])}

        def after(before: list[set]) -> list[set]:
            """What outputs reach, given what variables reached before the iteration."""
            return [mine.union(*(before[j] for j in range(count) if k in direct[j]))
                    for k, mine in enumerate(own)]

        reached = [starts]  # by variables, after so many iterations
        stacked = []  # by elements of lists, in each
        for _ in range(count + 1):
            found = after(reached[-1])
            stacked.append(found[len(numbers):])
            reached.append([found[numbers[id(c)]] if id(c) in numbers else set()
                            for c in self.slots])
        if any(x != stacked[0] for x in stacked):
            raise Peel("what an element of a list has for history differs between iterations")
        if reached[-1] != reached[-2]:
            raise Refused("which tensors receive a gradient differs from iteration to iteration")
        self._check_claims(reached)
        self._check_settled(reached)

    def _check_claims(self, reached: list[list[set]]) -> None:
        """Sides of branches in the body must lead to the same leaves, in each iteration."""
        first = self.node.parent.root.first_node
        fixed = [(s.origin, s.outer) for s in self.node.invariant if s.origin is not None]
        fixed += [(s.origin, s.whole) for s in self.scans]
        known = {origin._node: leaves([outer], first, True) for origin, outer in fixed}
        for before in reached:
            known |= {c.slot.origin._node: found for c, found in zip(self.slots, before)}
            for claim in self.region.claims:
                one, other = (set().union(*(known.get(n, {n}) for n in side)) for side in claim)
                self.node.parent.same_leaves(one, other)
        self.region.claims.clear()

    def _check_settled(self, reached: list[list[set]]) -> None:
        body = self.body
        least = 1 if body.trip is not None or body.counted and body.before is None else 0
        names = body.variables.live | body.variables.loose
        needed = least
        for k, c in enumerate(self.slots):
            seen = [x[k] for x in reached]
            if c.slot.name not in names and c.slot.name != RETURNED:
                continue
            begin = max(least, 1 if c.slot.filled else 0)
            differing = [n for n in range(begin, len(seen)) if seen[n] != seen[-1]]
            needed = max([needed, *(n + 1 for n in differing)])
        if needed == least:
            return
        if body.trip is None or not body.trip >= needed:
            raise Refused("a tensor receives a gradient only if the body runs often enough")

    def _arrange(self, tangents: list[Value], grads: list[Value | None],
                 summed: list[Tensor]) -> None:
        """Which gradient is carried, stacked or summed; what is kept for it."""
        graph = self.region.graph
        rest = iter(tangents)
        self.bars = [next(rest) if c.slot.end._requires_grad else graph.input(c.input.type)
                     for c in self.slots]
        self.stacked_bars = list(rest)
        count, scans = len(self.slots), len(self.scans)
        self.carried_grads = [self._or_zeros(g, c.input) for g, c in zip(grads, self.slots)]
        self.scan_grads = [self._or_zeros(g, s.input)
                           for g, s in zip(grads[count:], self.scans)]
        sums = zip(summed, grads[count + scans:], self.sum_arrives)
        self.sums = [(x, g) for x, g, _ in sums if g is not None]
        arriving = zip(grads[count + scans:], self.sum_arrives)
        self.sum_arrives = [a for g, a in arriving if g is not None]
        wanted = [g for g in grads if g is not None]
        self._keep(residuals(graph, tangents, wanted))

    def _or_zeros(self, grad: Value | None, like: Value) -> Value:
        return zeros_of(like, like.type) if grad is None else grad

    def _keep(self, saved: list[Value]) -> None:
        """Sort what the gradient reads: the same for all iterations, scanned, or kept of each."""
        node, body = self.node, self.body
        captured = {inner: key for key, inner in self.region.captured.items()}
        for _, inner in node.memories:  # its content differs from iteration to iteration
            captured.pop(inner.input, None)
        for slot in node.invariant:
            captured[slot.input] = node.parent.traced(slot.outer).read()
        scanned = {s.input: s for s in body.scans}
        self.same = [(v, captured[v]) for v in saved if v in captured]
        self.read_scans = [scanned[v] for v in saved if v in scanned and body.trip is not None]
        known = {v for v, _ in self.same} | {s.input for s in self.read_scans}
        self.index = body.position if body.trip is not None else None
        self.residuals = [v for v in saved if v not in known and v is not self.index]
        if body.trip is None and not self.residuals:
            self.residuals = [node.carried[0].input]

    # -- after the node is made ------------------------------------------------------------------
    def attach(self, node: Any, stacked: Sequence[Tensor], kept: Sequence[Tensor]) -> None:
        """Put the gradient loop on the tape."""
        parent = node.parent
        sums = [Sum(self.region.graph, x, g) for x, g in self.sums]
        same = [parent.holding(key) for _, key in self.same]
        bars = list(self.slots)
        numbers = {id(c): k for k, c in enumerate(
            [c for c in bars if c.slot.end._requires_grad])}
        first: list[Any] = [numbers.get(id(c), c.input.type) for c in bars]
        first += [s.input.type for s in sums]
        carried = len(first)
        inputs = [*self.bars, *(s.input for s in sums)]
        outputs = [*self.carried_grads, *(s.end for s in sums)]
        attributes: dict[str, Any] = {"carried": carried}
        if self.body.trip is None:
            op, before = REGISTRY["unwind_loop"], [node.count, kept[0]]
            inputs += [*self.residuals, *(v for v, _ in self.same)]
            operands = [*before, *first, *same]
        else:
            op = REGISTRY["for_loop"]
            start = len(numbers)
            scanned = [*(start + k for k in range(len(self.stacked_bars))), *kept,
                       *(s.whole for s in self.read_scans)]
            inputs = [self.index, *inputs, *self.stacked_bars, *self.residuals,
                      *(s.input for s in self.read_scans), *(v for v, _ in self.same)]
            outputs += self.scan_grads
            operands = [*first, *scanned, *same]
            attributes |= {"trip": self.body.trip, "scanned": len(scanned), "reverse": True}
        region = self.region.region(inputs, outputs)
        region.name = f"{self.region.name}_backward"
        self._record(op, attributes, region, operands, sums, stacked)

    def _record(self, op: Any, attributes: dict, region: Graph, operands: list[Any],
                sums: list[Sum], stacked: Sequence[Tensor]) -> None:
        results = [c.result for c in self.slots if c.slot.end._requires_grad]
        results += [stacked[k] for k in self.stacked]
        parent = self.node.parent
        types = [parent.traced(x).read().type for x in results]
        inputs = [*(c.slot.outer for c in self.slots), *(s.tensor for s in sums),
                  *(s.whole for s in self.scans)]
        if self.body.trip is None:
            inputs = inputs[:len(self.slots) + len(sums)]
        reached = [*self.arrives[:len(self.slots)], *self.sum_arrives, *self.scan_arrives]
        backward = ControlBackward(op, attributes, (region,), operands, types,
                                   list(range(len(inputs))), reached[:len(inputs)])
        record_custom("LoopBackward", inputs, results, backward)


class Sum:
    """The gradient of what all iterations read: summed up from one to the next."""

    def __init__(self, graph: Graph, tensor: Tensor, grad: Value):
        self.tensor = tensor
        self.input = graph.input(grad.type, source="sum")
        self.end = graph.append(REGISTRY["add"], (self.input, grad), {})


def _tracked(x: Any) -> bool:
    return isinstance(x, Tensor) and x._requires_grad and x._dtype.category >= FLOATING


def _differentiable(slot: Any) -> bool:
    return slot.is_tensor and slot.origin is not None and slot.start._dtype.category >= FLOATING
