"""Engine that walks the tape backward from some results and delivers gradients.

In: roots with their gradients, from `backward()` and `grad()`. Out: `.grad` of leaves, or the
gradients asked for. A node runs once all its consumers have run; of nodes that are ready the newest
runs first. There is no recursion. Only ops on tensors are used, so a backward inside a captured
function is recorded like everything else.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.core.eager import anomaly, gathered
from tracejit.core.eager.accumulation import accumulate, run_tensor_hooks, summed
from tracejit.core.eager.conditional_grad import ConditionalGrad, added, grad_of, resolved
from tracejit.core.eager.hook_calls import replaced, run_hooks, run_prehooks
from tracejit.core.eager.nodes import AccumulateGrad, Node
from tracejit.core.eager.parts import Parts, part_of, resolved_parts, together
from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.sole_gradients import calibrate

_LEAVES = 1 << 62  # subtracted from a leaf's priority: it runs before all other nodes
Root = tuple[Node, int, Any]
TapeEdge = tuple[Node, int]


class Task:
    """Single run of the engine.

    targets   places whose gradients are asked for -> results; None: everything reachable runs
    sinks     nodes that run although nothing behind them is a target: AccumulateGrad nodes, which
              may add to `.grad`, and those of results that keep their gradients
    ends      nodes at which gradients arrive and stop: neither they nor their hooks run
    cuts      place -> function that gets the gradient there (or None) and returns the next one
    order     the targets in the order in which their gradients came
    """

    def __init__(self, roots: Sequence[Root], retain_graph: bool, create_graph: bool,
                 targets: dict[TapeEdge, Any] | None = None, sinks: frozenset[Node] = frozenset(),
                 ends: frozenset[Node] = frozenset(),
                 cuts: Mapping[TapeEdge, Callable[[Any], Any]] | None = None):
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.targets, self.sinks, self.ends, self.cuts = targets, sinks, ends, cuts
        self.order: list[TapeEdge] = []
        self.callbacks: list[Callable[[], Any]] = []  # for when the run is over
        self.seen_by_hooks: dict[Any, list] = {}  # gradients, for hooks on several tensors
        self.running: set[Node] | None = None
        self.through: dict[Node, int] = {}  # of parts of captured calls the results needed, as bits
        self.asked = frozenset(node for node, _ in targets or ())
        self.buffers: dict[Node, list] = {}
        self.gathered: dict[Node, gathered.Gathered] = {}  # of gradients in `buffers`
        self.plain = False
        self.waiting: dict[Node, int] = {}
        self.ready: list[tuple[int, Node]] = []
        self.pushed = 0
        # of nodes with partial edges: the edges that some result of this run leads to
        self.taken: dict[Node, set[int]] = {}
        self.reached = nodes = self._discover([root[:2] for root in roots])
        if targets is not None:
            self._find_needed(nodes)
            roots = [root for root in roots if self._leads(root[:2])]
            self.waiting, self.taken = {}, {}  # again, for the nodes that run
            self.running &= set(self._discover([root[:2] for root in roots]))  # type: ignore[operator]
        for node, number, grad in roots:
            self._add(node, number, grad)
        for node in dict.fromkeys(node for node, _, _ in roots):
            if not self.waiting.get(node):
                self._push(node)

    def _discover(self, roots: list[TapeEdge]) -> list[Node]:
        """List the nodes behind the roots. Count for each the consumers that must run before it
        (`waiting`).

        Once `running` is known, only nodes in it are entered.
        """
        seen: dict[Node, None] = {}
        stack = []
        for node, number in roots:
            if node not in seen or node.partial_edges:
                seen[node] = None
                stack.append((node, number))
        waiting, running = self.waiting, self.running
        while stack:
            node, number = stack.pop()
            if node in self.ends or not (running is None or node in running):
                continue
            for edge in self._new_edges(node, number) if node.partial_edges else node.edges:
                if edge is not None:
                    node = edge[0]
                    waiting[node] = waiting.get(node, 0) + 1
                    if (node not in seen or node.partial_edges) and (
                            running is None or self._leads(edge)):
                        seen[node] = None
                        stack.append(edge)
        return list(seen)

    def _new_edges(self, node: Node, number: int) -> list[Any]:
        """List the edges to which a result of the node leads, without those that other results led
        to."""
        taken = self.taken.setdefault(node, set())
        new = [k for k in node.edges_behind(number) if k not in taken]
        taken.update(new)
        return [node.edges[k] for k in new]

    def _edges(self, node: Node) -> Sequence[Any]:
        """List the edges of a node along which gradients may go in this run."""
        taken = self.taken.get(node) if node.partial_edges else None
        if taken is None:
            return node.edges
        return [edge if k in taken else None for k, edge in enumerate(node.edges)]

    def _find_needed(self, nodes: list[Any]) -> None:
        """Find the nodes that must run so that targets and sinks get their gradients."""
        self.running = running = set(self.sinks)
        for node in sorted(nodes, key=_age):
            if node in self.ends:
                continue
            # A stage of a captured call runs in parts: by result, not as a whole.
            if node.stage >= 0:
                self.through[node] = node.leading(self._wanted(node.edges))
                if self.through[node]:
                    running.add(node)
            elif any(e is not None and self._leads(e) for e in node.edges):
                running.add(node)

    def _leads(self, place: TapeEdge) -> bool:
        """Return True if the gradient at a place is needed: it is a target, or leads to one or to a
        sink."""
        node, number = place
        if node.stage < 0:
            return node in self.running or node in self.asked  # type: ignore[operator]
        through = self.through.get(node, 0)
        return place in self.targets or bool(through >> number & 1)  # type: ignore[operator]

    def reaches(self, place: TapeEdge) -> bool:
        """Return True if this run computes the gradient at a place."""
        return place[0] in self.reached if self.running is None else self._leads(place)

    def _push(self, node: Node) -> None:
        """Queue a node. Leaves come before all others, in the order in which they became ready; of
        other nodes the newest comes first."""
        self.pushed += 1
        leaf = type(node) is AccumulateGrad
        heapq.heappush(self.ready, (self.pushed - _LEAVES if leaf else -node.sequence, node))

    def _add(self, node: Node, number: int, grad: Any) -> None:
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * max(node.output_count, number + 1)
        held = buffer[number]
        if held is not None and (type(held) is Parts or type(grad) is Parts):
            buffer[number] = together(held, grad)
        elif type(held) is ConditionalGrad or held is not None and type(grad) is ConditionalGrad:
            buffer[number] = added(held, grad)
        else:
            buffer[number] = grad if held is None else self._sum(node, number, held, grad)

    def _sum(self, node: Node, number: int, held: Any, grad: Any) -> Any:
        """Add two gradients: in place where only this run holds the first one."""
        if not self.plain or active.tracer is not None or active.inference:
            return summed(held, grad)
        known = self.gathered.get(node)
        if known is not None and known.whole is held and known.takes(grad):
            known.add(grad)
            return held
        total = summed(held, grad)
        if gathered.may_receive(total) and gathered.is_large(total):
            self.gathered[node] = gathered.Gathered(total, number)
        return total

    def run(self) -> None:
        before = active.grad_enabled, active.partial, active.task
        active.grad_enabled, active.partial = self.create_graph, self.targets is not None
        active.task = self
        outermost = active.freeing is None
        if outermost:
            active.freeing = []
        plain = self.cuts is None and self.targets is None and not (self.ends or self.create_graph)
        self.plain = plain
        try:
            while self.ready:
                node = heapq.heappop(self.ready)[1]
                grads = self._taken(node)
                if plain and grads is not None:
                    if node.plain is not None and self._plainly(node, grads):
                        continue
                    if node.is_slice and self._gathers(node, grads):
                        continue
                if grads is None:
                    grads = [None] * node.output_count
                elif node.is_slice and active.tracer is not None and self._defers(
                        node, grads, active.tracer):
                    continue
                self._visit(node, grads)
            for callback in self.callbacks:  # the list may grow meanwhile
                callback()
        finally:
            active.grad_enabled, active.partial, active.task = before
            # A backward within a hook or a Function must not free what this one still reads.
            if outermost:
                freeing, active.freeing = active.freeing, None
                for free in freeing:  # type: ignore[union-attr]
                    free()

    def _plainly(self, node: Node, grads: list) -> bool:
        """Run a node the shorter way, if nobody looks on; return False for the general way."""
        if node.extras is not None or len(grads) != 1 or active.tracer is not None or (
                ever.anomaly and active.anomaly):
            return False
        results = None if grads[0] is None else type(node).plain(node, grads[0])
        if results is None:
            return False
        grads.clear()
        if not self.retain_graph:
            node.release()
        self._pass_on(node.edges, results, node.late)
        return True

    def _gathers(self, node: Any, grads: list) -> bool:
        """Add the gradient of a part to that of the whole, if nobody looks on. Return False for the
        general way."""
        if node.extras is not None or active.tracer is not None or ever.anomaly and active.anomaly:
            return False
        index = None if node.edges[0] is None else gathered.index_of(node, grads[0])
        if index is None:
            return False
        target, number = node.edges[0]
        held = self.buffers.get(target)
        known = self.gathered.get(target)
        results: list[Any] = [None]
        if held is None or held[number] is None:
            results = node.apply(grads)
            if known is None and gathered.may_receive(results[0]):
                self.gathered[target] = gathered.Gathered(results[0], number, index)
        elif known is None or known.number != number or known.whole is not held[number]:
            return False
        else:
            known.add(grads[0], index)
        grads.clear()
        if not self.retain_graph:
            node.release()
        self._pass_on(node.edges, results, node.late)
        return True

    def _defers(self, node: Any, grads: list, tracer: Any) -> bool:
        """Pass on the gradient of a part as such, if nobody looks on. Return False for the general
        way."""
        edge = node.edges[0]
        if edge is None or node.extras is not None or self.cuts is not None or active.anomaly:
            return False
        if self.running is not None and not self._only_runs(node) or tracer.tracks():
            return False
        part = part_of(node, grads[0])
        if part is None:
            return False
        tracer.applies(node)
        grads.clear()
        if not self.retain_graph:
            node.release()
        self._pass_on(node.edges, [part], node.late)
        return True

    def _only_runs(self, node: Node) -> bool:
        """Return True if a node runs, and nobody asks for the gradient there."""
        return node in self.running and node not in self.asked and node not in self.ends  # type: ignore[operator]

    def _taken(self, node: Node) -> Any:
        """Return the gradients that have arrived at a node, and let go of them; None: none has."""
        if self.gathered:
            self.gathered.pop(node, None)
        grads = self.buffers.pop(node, None)
        return None if grads is None else [resolved_parts(grad) for grad in grads]

    def _visit(self, node: Node, grads: list) -> None:
        if self.cuts is not None:
            cuts = [self.cuts.get((node, number)) for number in range(len(grads))]
            grads = [g if cut is None else cut(g) for g, cut in zip(grads, cuts)]
        if any(type(g) is ConditionalGrad for g in grads):
            grads = self._settled(node, resolved(grads))
        if type(node) is AccumulateGrad:
            self._sink(node, grads)
            return
        if node in self.ends:
            self._capture(node, grads)
            return
        runs = self.running is None or node in self.running
        if runs and self.targets is not None:
            self._capture(node, list(grads))
        if node.extras is not None:
            run_tensor_hooks(node, grads)
        if not runs:
            # as PyTorch: after hooks only where the node itself does not run
            self._capture(node, grads)
            return
        if node.call is not None:
            own = self._stops(node, grads) if node in self.sinks else 0
            self._run_parts(node, grads)
            if own and not self.retain_graph:
                node.release(own)  # type: ignore[call-arg]
            return
        results = self._apply(node, grads)
        if not self.retain_graph:
            node.release()
        self._pass_on(self._edges(node), results, node.late)

    def _stops(self, node: Any, grads: list) -> int:
        """Tell a stage of a captured call which results keep their gradients. Return what that
        frees, as bits."""
        found: int = node.stops([k for k, grad in enumerate(grads)
                                 if grad is not None and (node, k) in self.targets])  # type: ignore[operator]
        return found

    def _settled(self, node: Node, grads: list) -> list:
        """Return the gradients with which a node goes on, where some are conditional. They stay so
        at ends and if nobody can tell; at a leaf they arrive; else the flags are read."""
        doubtful = [k for k, g in enumerate(grads) if type(g) is ConditionalGrad]
        if not doubtful or node in self.ends:
            return grads
        if type(node) is AccumulateGrad:
            return [grad_of(g) for g in grads]
        asked = self.targets is not None and any((node, k) in self.targets for k in doubtful)
        if asked or not node.indifferent():
            active.tracer.undecided()  # type: ignore[union-attr]
            grads = resolved(grads)
        return grads

    def _apply(self, node: Node, grads: list) -> Sequence[Any]:
        if active.tracer is not None:
            active.tracer.applies(node)
        if all(g is None for g in grads):
            return [None] * len(node.edges)
        if node.extras is not None and node.extras.prehooks:
            grads = run_prehooks(node, grads)
            if all(g is None for g in grads):
                return [None] * len(node.edges)
        if any(type(g) is ConditionalGrad for g in grads):
            results: Sequence[Any] = node.apply_uncertain(grads)
        elif active.anomaly:
            results = anomaly.apply(node, grads)
        else:
            results = node.apply(grads)
        if node.extras is not None and node.extras.hooks:
            results = run_hooks(node, results, grads)
        return results if active.tracer is None else active.tracer.gave(grads, results)

    def _run_parts(self, first: Any, grads: list) -> None:
        """Run a stage of a captured call, and together with it the stages behind it where nobody
        looks in between."""
        extras = first.extras
        if extras is not None and any(g is not None for g in grads):
            grads = run_prehooks(first, grads)
        parts = {first: grads}
        alone = self.create_graph or active.anomaly or extras is not None or not first.joins
        stack = [] if alone else [first]
        while stack:
            for edge in self._edges(stack.pop()):
                node = None if edge is None else edge[0]
                if node is not None and node.call is first.call and node not in parts:
                    if self._follows(node, parts):
                        parts[node] = self._taken(node) or [None] * node.output_count
                        stack.append(node)
        if active.tracer is not None:
            for node in parts:
                active.tracer.applies(node)
        edges = [[None if e is None or e[0] in parts else e for e in self._edges(node)]
                 for node in parts]
        made: list[Sequence[Any]]
        if all(g is None for given in parts.values() for g in given):
            made = [[None] * len(node.edges) for node in parts]
        else:
            made = self._made(first, parts)
            if extras is not None and extras.hooks:
                made = [run_hooks(first, made[0], grads)]
            if not self.retain_graph:
                for node in parts:
                    node.release()
        for known, results in zip(edges, made):
            self._pass_on(known, results, in_order=True)

    def _follows(self, node: Node, parts: dict[Node, list]) -> bool:
        """Return True if all gradients of a node come from `parts`, which run now, or are there
        already.

        Return False where user code can look at them.
        """
        count = sum(e is not None and e[0] is node for part in parts for e in self._edges(part))
        return (
            count == self.waiting[node]
            and node.extras is None
            and node not in self.ends
            and (self.running is None or node in self.running and node not in self.asked)
            and not any(type(g) in (ConditionalGrad, Parts) for g in self.buffers.get(node, ()))
        )

    def _made(self, first: Any, parts: dict[Node, list]) -> list[Sequence[Any]]:
        """Compute the gradients that stages of a captured call give along the edges that need
        them."""
        wanted = [self._wanted(node.edges) for node in parts]
        shown = [self._shown(node.edges) for node in parts] if first.call and first.asks else ()
        if active.anomaly and not (first.call and first.watched):
            run = functools.partial(first.apply_all, parts, wanted, shown)
            return [anomaly.watched(first, lambda: run()[0])]
        return first.apply_all(parts, wanted, shown)

    def _wanted(self, edges: Sequence[Any]) -> int:
        """Return the edges along which gradients must go, as bits; -1: all."""
        if self.running is None:
            return -1
        mask = [e is not None and self._leads(e) for e in edges]
        if all(e is None or yes for e, yes in zip(edges, mask)):
            return -1
        return sum(1 << k for k, yes in enumerate(mask) if yes)

    def _shown(self, edges: Sequence[Any]) -> int:
        """Return the edges where user code may look at gradients, as bits. A leaf without hooks
        only adds them up."""
        found = 0
        for k, edge in enumerate(edges):
            if edge is not None:
                node = edge[0]
                plain = type(node) is AccumulateGrad and node.extras is None
                if not plain or node in self.asked or node.variable._hooks is not None:
                    found |= 1 << k
        return found

    def _pass_on(self, edges: Sequence[Any], results: Sequence[Any], late: int = -1,
                 in_order: bool = False) -> None:
        """Send a node's results along its edges. `in_order`: leaves get their gradients in the
        order of edges. Edge `late` leads to a leaf that gets its gradient after the others.

        A list of results is emptied on the way, so a leaf may take over a gradient that nobody else
        holds.
        """
        waiting, running = self.waiting, self.running
        given = results if type(results) is list else list(results)
        last = None
        for k, edge in enumerate(edges):
            if edge is None:
                continue
            node = edge[0]
            if given[k] is not None and (running is None or self._leads(edge)):
                self._add(node, edge[1], given[k])
            given[k] = None  # else the list would hold the gradient, and the leaf copy it
            left = waiting[node] = waiting[node] - 1
            if left or not (running is None or node in running or node in self.asked):
                continue
            if in_order and type(node) is AccumulateGrad:
                self._visit(node, self._taken(node) or [None])
            elif type(node) is not AccumulateGrad:
                heapq.heappush(self.ready, (-node.sequence, node))
            elif k == late:
                last = node
            else:
                self._push(node)
        if last is not None:
            self._push(last)

    def _capture(self, node: Node, grads: list) -> None:
        for number, grad in enumerate(grads):
            if (node, number) in self.targets:  # type: ignore[operator]
                self.targets[node, number] = grad  # type: ignore[index]
                self.order.append((node, number))

    def _sink(self, node: AccumulateGrad, grads: list) -> None:
        variable = node.variable
        grad = grads.pop()
        if grad is None:
            return
        hooks = variable._hooks
        if hooks is not None:
            for hook in tuple(hooks.before.values()):
                grad = replaced(grad, hook)
        if self.targets is not None:
            if (node, 0) in self.targets:
                self.targets[node, 0] = grad
                self.order.append((node, 0))
            if node not in self.sinks:
                return
        if node.extras is not None and node.extras.prehooks:
            grad = run_prehooks(node, [grad])[0]
        if not variable._requires_grad:  # the user froze it since
            return
        accumulate(variable, grad)
        if hooks is not None:
            returned = variable
            for hook in tuple(hooks.accumulated.values()):
                returned = replaced(returned, hook)
            if returned is not variable:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if node.extras is not None and node.extras.hooks:
            run_hooks(node, (), [grad])


def _age(node: Node) -> int:
    """Return the order of nodes, operands first. Sinks of leaves have the largest numbers, but no
    operands."""
    return -1 if type(node) is AccumulateGrad else node.sequence


calibrate(Task._sink)
