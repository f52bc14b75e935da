"""Plan of gradients through replays of a call: the program that a backward of some stages runs.

In: the joint graph of a recorded call and the gradient graph made of it. Out: a `BackwardPlan`.
Made by `backward_maker`, used by `attach_backward`, `call_nodes` and `later_backward`.

A plan makes a `BackwardVariant` for each set of results where gradients arrive and edges where they
are wanted. A variant has the program to run, the memory to check, and the bits of what is freed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from tracejit.core.eager.nodes import nobody
from tracejit.core.eager.saved import TensorLabel
from tracejit.core.ops.types import dtype
from tracejit.jit.autodiff.freed import Part
from tracejit.jit.autodiff.gradient_views import GradientView, Step, chain, seen_from
from tracejit.jit.autodiff.joining import joined
from tracejit.jit.autodiff.prune import Pruned, prune
from tracejit.jit.autodiff.rebuilt_tape import RebuiltTape
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Location, Value
from tracejit.jit.runtime.compiled_graph import CompiledGraph

# A way through something, as bits: results of a stage that lead to it, edges that it leads to.
PathMask = tuple[int, int]
Key = tuple[tuple[int, int, int], ...]  # stages, each with the results and the edges asked for
Shown = tuple[int, ...]  # for each stage of a key the edges at which user code may look, as bits
EVERYTHING = -1


@dataclass
class BackwardStage:
    """Part of a call that becomes one node on the tape.

    results  numbers of the tangents that stand for its gradients
    edges    numbers of the gradients that it gives
    reached  for each edge the results that lead to it, as bits
    freed    the way through each group of parts that a backward frees together
    parts    for each group its parts of the tape
    own      for each result the groups that are freed with the node that made it, as bits
    kept     (number in the plan's `noted`, the ways through what needs the check)
    line     of the user's program, which made one of the results

    `own_kept` has for each result the checks of the node that made it, as numbers in `noted`.
    `free_conditions` tells for each group whether it was there; None: always.
    """

    results: list[int]
    edges: list[int]
    reached: list[int]
    freed: list[PathMask]
    parts: list[list[Part]]
    free_conditions: list[FreeCondition | None]
    own: list[int]
    own_kept: list[list[int]]
    kept: list[tuple[int, list[PathMask]]]
    line: Location | None = None

    def leads_on(self, gone: int) -> bool:
        """Return True if a gradient gets through the stage after the groups `gone` (bits) were
        freed."""
        freed = [way for k, way in enumerate(self.freed) if gone >> k & 1]
        return any(
            mask >> r & 1 and not any(above >> r & 1 and below >> k & 1 for above, below in freed)
            for k, mask in enumerate(self.reached) for r in range(len(self.results)))


class FreeCondition(NamedTuple):
    """Condition that something was there to be freed: the position of a saved value, and the truth
    it must have."""

    flag: int
    sense: bool


class VersionCheck(NamedTuple):
    """Memory that must not be written before the backward: an input's, or an output's of the
    program.

    input   number of the input, or -1
    root    number of the output, or -1
    label   description for the error; None: the input describes itself
    result  number of the result that the tape keeps itself, or -1
    flag    position of the saved value that decides whether the tape keeps the memory, or -1
    sense   truth that this value must have
    line    of the user's program, whose op keeps the memory for its backward
    """

    input: int
    root: int = -1
    label: TensorLabel | None = None
    result: int = -1
    flag: int = -1
    sense: bool = True
    line: Location | None = None


@dataclass
class BackwardVariant:
    """Program of one backward.

    checked   numbers of the checks to make first
    frees     for each stage the groups that the backward frees, as bits
    tangents  (stage in the key, result): where the program's gradients arrive
    places    for each stage, for each edge: the program's output that goes there, or None
    looks     (stage in the key, edge) -> (source, steps, number): a view that goes there instead.
              source: an output, or -1 - a position in `tangents`; one number, one tensor
    exact     False: zeros stand for gradients that do not arrive, where results may show it
    """

    graph: Graph
    checked: list[int]
    frees: list[int]
    tangents: list[tuple[int, int]]
    places: list[list[int | None]]
    looks: dict[tuple[int, int], tuple[int, list[Step], Any]] = field(default_factory=dict)
    segment: CompiledGraph | None = None
    exact: bool = True


def _picker(numbers: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that takes these elements of a sequence."""
    return itemgetter(*numbers) if len(numbers) > 1 else lambda given: [given[k] for k in numbers]


@dataclass
class BackwardPlan:
    """Plan of the gradients through a replay. The results get a node for each stage (C4)."""

    # joint graph, for second derivatives where there is no `tape`; its last inputs are `inner`
    graph: Graph | None
    tape: RebuiltTape | None
    final: bool  # the gradients cannot be differentiated
    tangents: list[int]  # positions of tangents in the joint graph's inputs
    grads: list[int | None]  # for each gradient: its number in the outputs of both graphs
    views: list[GradientView | None]  # for each gradient; None: memory of its own
    viewed: bool  # some gradient may be a view
    wrt: list[int]  # graph inputs that get the first gradients
    cuts: list[tuple[int, int]]  # (stage, result) that the other gradients go to
    saved: list[tuple[str, int]]  # ("input", number) or ("output", number of the forward segment)
    shared: set[int]  # positions in `saved` of memory of results
    before: list[tuple[int, int]]  # (input the program writes, output with its old content)
    read: list[int]  # tensors among the inputs that second derivatives read
    # inputs that values are computed from again, which the plain function kept: by `backward`, and
    # by what runs for derivatives
    again: list[list[int]]
    remembers: list[int]  # all inputs in `again`
    noted: list[VersionCheck]
    held: dict[int, int]  # position of a saved caller's tensor -> number in `noted`
    stages: list[BackwardStage]  # lowest first
    places: list[tuple[int, int]]  # for each result with history: its stage, and its number there
    tops: list[tuple[int, int]]  # (stage, result) that no gradient of another stage goes to
    inner: list[int]  # results that gradients are computed from
    backward: Graph  # saved values and tangents -> gradients
    dtypes: list[dtype]  # of the tangents
    compile: Callable[[Graph], CompiledGraph]
    variants: dict[Key | tuple[Key, Shown], BackwardVariant] = field(default_factory=dict)

    # The last call: a reference that is alive while its `ends` are right; its snapshot; the
    # inputs with gradients that the snapshot does not cover; the native maker of its nodes.
    last: tuple[Callable[[], Any], Any, tuple[int, ...], Any] = (nobody, None, (), None)
    lay: Any = None  # native maker of the nodes, made for the first snapshot
    hidden: tuple[Any, int] | None = None  # last look, if NumPy can write no covered input

    def __post_init__(self) -> None:
        self.ends = {number: k for k, number in enumerate(self.wrt)}
        self.sought, self.reading = _picker(self.wrt), _picker(self.read)
        # A call keeps the outputs from `first` on, which are no results, and in front of them those
        # results in `lent` that the backward reads.
        own = {self.saved[n][1] for n in self.shared}
        made = {k for kind, k in self.saved if kind == "output"} - own
        self.lent, self.first = sorted(own), min(made, default=sys.maxsize)
        at = {k: n for n, k in enumerate(self.lent)}
        at |= {k: len(own) + k - self.first for k in made}
        # Picks the saved values from (*inputs, *reversed(kept outputs)): a negative number counts
        # from the end, whatever the number of inputs.
        self.kept = _picker([k if kind == "input" else -1 - at[k] for kind, k in self.saved])
        # `straight`: one stage, whose edges are the ends. `outer`: picks a stage's edges from the
        # ends, None where some edge goes to another stage.
        number = len(self.wrt)
        self.straight = [s.edges for s in self.stages] == [list(range(number))]
        self.outer = [_picker(s.edges) if all(k < number for k in s.edges) else None
                      for s in self.stages]
        written = {number for number, _ in self.before}
        place = {number: k for k, number in enumerate(self.read) if number not in written}
        # Checks of inputs find their version among those of `read`; a call notes the others itself.
        self.versions = {n: place[k] for n, check in enumerate(self.noted)
                         if (k := check.input) in place}
        self.apart = [n for n in range(len(self.noted)) if n not in self.versions]
        self.numbers = [*range(len(self.stages))]
        self.keeps = bool(self.lent or self.before or self.inner or self.apart)
        self.remembered = frozenset(self.remembers)

    def variant(self, key: Key, shown: Shown = ()) -> BackwardVariant:
        """Return the variant that runs the stages of the key in its order, and make it the first
        time.

        At the edges `shown` the variant gives gradients that are views as views.
        """
        at = (key, shown) if shown else key
        found = self.variants.get(at)
        if found is None:
            found = self.variants[at] = self._variant(key)
            if shown:
                self._look(found, key, shown)
        return found

    def _variant(self, key: Key) -> BackwardVariant:
        arrived, wanted = self._arrived(key), self.wanted(key)
        inside, taken = set(arrived), set()
        outputs: list[int] = []
        places: list[list[int | None]] = []
        for s, _, _ in key:
            places.append([])
            stage = self.stages[s]
            for k, g in enumerate(stage.edges):
                comes = stage.reached[k] & arrived[s] and wanted[s] >> k & 1
                if not comes or self.target(g, inside) or g in taken or self.grads[g] is None:
                    places[-1].append(None)
                    continue
                taken.add(g)
                places[-1].append(len(outputs))
                outputs.append(g)
        tangents = [(n, k) for n, (s, mask, _) in enumerate(key)
                    for k in range(len(self.stages[s].results)) if mask >> k & 1]
        numbers = [self.stages[key[n][0]].results[k] for n, k in tangents]
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        graph, left, exact = self._graph(sorted(numbers), inside, outputs)
        places = [[None if k is None else left[k] for k in row] for row in places]
        checked = {number for s, _, _ in key for number, ways in self.stages[s].kept
                   if any(_goes(way, arrived[s], wanted[s]) for way in ways)}
        checked |= {self.held[k] for k in read_inputs(graph) if k in self.held}
        frees = [sum(1 << k for k, way in enumerate(self.stages[s].freed)
                     if _goes(way, arrived[s], wanted[s])) for s, _, _ in key]
        return BackwardVariant(graph, sorted(checked), frees, [tangents[k] for k in order], places,
                               exact=exact)

    def _look(self, variant: BackwardVariant, key: Key, shown: Shown) -> None:
        """Let a variant give views at these edges, and each tensor once, as the plain backward
        does."""
        arrived = self._arrived(key)
        given = {g for s in arrived for g in self.stages[s].edges}
        fed = {self.stages[s].results[k]: g
               for g, (s, k) in enumerate(self.cuts, len(self.wrt)) if s in arrived and g in given}
        came = [self.stages[key[n][0]].results[k] for n, k in variant.tangents]
        graph, _ = copy_graph(variant.graph)
        number: dict[Any, int] = {}
        outputs: list[Value] = []
        for n, row in enumerate(variant.places):
            for k, place in enumerate(row):
                if place is None:
                    continue
                value = graph.outputs[place]
                g = self.stages[key[n][0]].edges[k]
                view = None
                if shown[n] >> k & 1:
                    view = self._resolved(g, fed, came) or self._left(g, value, came)
                base = None if view is None else seen_from(value, view.steps)
                if view is None or base is None or view.tangent < 0 and base.node is None:
                    row[k] = number.setdefault(g, len(outputs))
                    outputs += [value] * (len(number) - len(outputs))
                    continue
                at = -1 - (came.index(view.tangent) if view.tangent >= 0 else 0)
                if view.tangent < 0:
                    at = number.setdefault((view.memory, base), len(outputs))
                    outputs += [base] * (len(number) - len(outputs))
                row[k] = None
                variant.looks[n, k] = at, view.steps, view.first
        graph.outputs = outputs
        variant.graph = graph

    def _left(self, g: int, value: Value, came: list[int]) -> GradientView | None:
        """Return the last term of a sum as a view, where the others do not arrive; None for any
        other value."""
        if not is_sum(self.backward.outputs[self.grads[g]]) or is_sum(value):  # type: ignore[index]
            return None
        base, steps = chain(value)
        tangents = value.graph.inputs[len(value.graph.inputs) - len(came):]
        number = next((n for n, t in zip(came, tangents) if t is base), -1)
        return GradientView(number, None, steps, value)

    def _resolved(self, g: int, fed: dict[int, int], came: list[int]) -> GradientView | None:
        """Return the view that a gradient is, also through stages that run in the same program.

        fed   tangent -> the gradient of another stage that becomes it
        came  tangents whose gradients arrive from outside
        """
        view = self.views[g]
        if view is None or view.tangent < 0:
            return view
        if view.tangent not in fed:
            return view if view.tangent in came else None
        if view.tangent in came:  # gradients from outside and of another stage are added
            return view._replace(tangent=-1, memory=("sum", view.tangent))
        above = self._resolved(fed[view.tangent], fed, came)
        if above is None:
            return view._replace(tangent=-1, memory=("above", view.tangent))
        first = view.first if view.steps else above.first
        return above._replace(steps=[*above.steps, *view.steps], first=first)

    def target(self, gradient: int, inside: Collection[int]) -> tuple[int, int] | None:
        """Return the running stage to which a gradient goes, and its result; None if it goes to no
        running stage."""
        cut = gradient - len(self.wrt)
        return self.cuts[cut] if cut >= 0 and self.cuts[cut][0] in inside else None

    def _arrived(self, key: Key) -> dict[int, int]:
        """Return for each stage the results at which gradients arrive, from outside or from other
        stages."""
        found = {s: mask for s, mask, _ in key}
        for s in found:
            for k, g in enumerate(self.stages[s].edges):
                target = self.target(g, set(found))
                if target is not None and self.stages[s].reached[k] & found[s]:
                    found[target[0]] |= 1 << target[1]
        return found

    def wanted(self, key: Key) -> dict[int, int]:
        """Return for each stage the edges to which gradients must go, those to other stages
        included."""
        found = {s: mask for s, _, mask in key}
        for s in reversed(found):
            for k, g in enumerate(self.stages[s].edges):
                target = self.target(g, set(found))
                if target is None:
                    continue
                below, at = target
                reached = self.stages[below].reached
                found[s] &= ~(1 << k)
                if any(mask >> at & 1 and found[below] >> j & 1 for j, mask in enumerate(reached)):
                    found[s] |= 1 << k
        return found

    def _graph(
        self, arriving: list[int], inside: set[int], outputs: list[int]
    ) -> Pruned:
        """Make the program for these tangents and gradients, and find the number of each gradient
        in it."""
        graph = self.backward
        first = len(graph.inputs) - len(self.tangents)
        tangents: Sequence[Value] = graph.inputs[first:]
        sent = {}
        for cut, (s, k) in enumerate(self.cuts):
            at = self.grads[len(self.wrt) + cut]
            if s in inside and at is not None:
                sent[tangents[self.stages[s].results[k]]] = graph.outputs[at]
        values: dict[Value, Value] = {}
        if sent and len(inside) > 1:
            graph, values = joined(graph, sent, [tangents[t] for t in arriving])
            tangents = graph.inputs[first:]
        numbers: list[int | None] = list(range(len(graph.outputs)))
        exact = True
        absent = {t for k, t in enumerate(tangents) if k not in arriving}
        if absent:
            graph, numbers, exact = prune(graph, tangents, absent)
        left = [numbers[self.grads[g]] for g in outputs]  # type: ignore[index]
        real = [k for k in left if k is not None]
        if real != list(range(len(graph.outputs))):
            graph, _ = copy_graph(graph)
            graph.outputs = [graph.outputs[k] for k in real]
        place = iter(range(len(real)))
        return Pruned(graph, [None if k is None else next(place) for k in left], exact)


def is_sum(value: Value) -> bool:
    """Return True if a gradient is added up of terms, some of which may not arrive."""
    return value.node is not None and value.node.op.name == "add"


def _goes(way: PathMask, arrived: int, wanted: int) -> bool:
    """Return True if a backward runs something with this way through it.

    arrived, wanted  results with gradients and edges asked for, as bits. All edges: also what leads
                     to none of them
    """
    return bool(way[0] & arrived and (way[1] & wanted or wanted < 0))


def read_inputs(graph: Graph) -> set[int]:
    """Return the numbers of the inputs that the outputs are computed from."""
    number = {v: k for k, v in enumerate(graph.inputs)}
    found: set[int] = set()
    seen: set[Value] = set()
    stack = list(graph.outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in number:
            found.add(number[value])
        elif value.node is not None:
            stack += value.node.operand_values()
    return found
