"""Maker of the plan of a recorded call's gradients, from its joint graph.

In: a tracer and what `differentiate` gave of its recording. Out: a `BackwardPlan`, and the values
that the forward program keeps for it. Called by `build`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracejit.core.eager.nodes import Node, edge_of
from tracejit.core.eager.saved import Saved, SavedOutput
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.autodiff.differentiate import JointGraph
from tracejit.jit.autodiff.outer_saves import SaveRecord
from tracejit.jit.autodiff.reach import flag_of, operand_of, records
from tracejit.jit.autodiff.stages import Stage
from tracejit.jit.capture.location import forward_lines
from tracejit.jit.capture.storage import FunctionalStorage, FunctionalTensor
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Location, Value
from tracejit.jit.runtime.backward_plan import (
    BackwardPlan,
    BackwardStage,
    FreeCondition,
    PathMask,
    VersionCheck,
    is_sum,
)
from tracejit.jit.runtime.compiled_graph import CompiledGraph


def backward_plan(
    tracer: Any,
    joint: JointGraph,
    primal: dict[Value, int],
    roots: dict[FunctionalStorage, int],
    compile: Callable[[Graph], CompiledGraph],
) -> tuple[list[Value], BackwardPlan]:
    """Return what the forward program must also return for the backward, and the plan of the
    backward.

    primal  the call's inputs -> their numbers
    roots   memory made by the call -> the number of the output that it is
    """
    real = [k for k, g in enumerate(joint.grads) if g is not None]
    grads = [real.index(k) if k in real else None for k in range(len(joint.grads))]
    result_of = {place: k for k, place in enumerate(joint.places)}
    end_of = {place: k for k, place in reversed([*enumerate(joint.ends)])}
    at = {place: (s, k) for s, stage in enumerate(joint.stages)
          for k, place in enumerate(stage.places)}
    cuts = [at[place] for place in joint.ends[len(joint.inputs):]]
    whole, tape, once_more = None, joint.tape, joint.again
    inner: list[int] = []
    freed = [_freed(tracer, stage, joint.saved) for stage in joint.stages]
    parts = [[[] if tape is None else [*map(tape.part, found.parts)] for found in some]
             for some in freed]
    tensors = [item.value for item in tracer.lifted_tensors()]
    sources = tracer.input_sources()
    unwritten = [v for v in tensors if v not in joint.written and isinstance(sources[v], Tensor)]
    if tape is None:
        whole, inner = _whole(tracer, joint)
        read = {v for node in whole.nodes for v in node.operand_values()}
        used = {v for v, again in zip(joint.graph.inputs, whole.inputs) if again in read}
        started = used
    else:
        used, started, once_more = tape.end(joint.graph, primal, joint.saved, joint.forward,
                                            set(unwritten))
    before = [v for v in joint.graph.inputs if v in joint.written and v in started]
    kept = list(dict.fromkeys([*joint.saved, *before]))
    extra, places = _saved(kept, primal, roots, joint)
    place = dict(zip(kept, places))
    again = {primal[v] for v in tensors if v in joint.again}
    noted = _Noted(tracer, primal, roots, joint)
    line_of = {at[edge_of(x)][0]: _line(tracer, x) for x in reversed(joint.outputs)}
    stages = [
        BackwardStage(
            [result_of.get(p, -1) for p in stage.places],
            [end_of[e] for e in stage.edges],
            stage.reached,
            [found.way for found in freed[k]],
            parts[k],
            [found.condition for found in freed[k]],
            _own(stage, freed[k]),
            [noted.by(node) for node, _ in stage.places],
            noted.of(stage),
            line_of.get(k),
        )
        for k, stage in enumerate(joint.stages)
    ]
    saved = [place[v] for v in joint.saved]
    both = [[primal[v] for v in unwritten if v in found] for found in (joint.again, once_more)]
    number = {v: k for k, v in enumerate(joint.graph.inputs)}
    plan = BackwardPlan(
        whole,
        tape,
        joint.final,
        [number[t] for t in joint.tangents],
        grads,
        joint.views,
        any(view is not None for view in joint.views)
        or len(joint.tangents) > 1 and any(map(is_sum, joint.backward.outputs)),
        [primal[tracer.lifted[id(x)].value] for x in joint.inputs],
        cuts,
        saved,
        {k for k, (kind, number) in enumerate(saved) if kind == "output" and number < len(roots)},
        [(primal[v], place[v][1]) for v in before],
        [primal[v] for v in tensors if v in used],
        both,
        sorted({k for numbers in both for k in numbers}),
        noted.items,
        {position: noted.held(k) for position, (kind, k) in enumerate(saved)
         if kind == "input" and k in again and (tape is None or tape.regions)},
        stages,
        [at[edge_of(x)] for x in joint.outputs],
        [at[place] for place in joint.tops],
        inner,
        joint.backward,
        [t.type.dtype for t in joint.tangents],
        compile,
    )
    return extra, plan


class _Freed(NamedTuple):
    """Parts of a stage's history that a backward frees together.

    way        results that lead through the parts, edges that they lead to, as bits
    condition  None: the parts are always there
    """

    way: PathMask
    condition: FreeCondition | None
    parts: list[Any]


def _freed(tracer: Any, stage: Stage, saved: list[Value]) -> list[_Freed]:
    number = {v: k for k, v in enumerate(saved)}
    found: dict[tuple, _Freed] = {}
    for part, way in stage.freed.items():
        flag = flag_of(part)
        condition = None if flag is None else FreeCondition(
            number[tracer.traced(flag[0]).read()], flag[1])
        key = way, condition
        found.setdefault(key, _Freed(way, condition, [])).parts.append(part)
    return list(found.values())


def _own(stage: Stage, freed: list[_Freed]) -> list[int]:
    """Return for each result the `freed` entries that hold parts of the node that made it, as
    bits."""
    found: dict[Any, int] = {}
    for k, some in enumerate(freed):
        for part in some.parts:
            node = part[0] if type(part) is tuple else part
            found[node] = found.get(node, 0) | 1 << k
    return [found.get(node, 0) for node, _ in stage.places]


def _whole(tracer: Any, joint: JointGraph) -> tuple[Graph, list[int]]:
    """Return the joint graph, and the numbers of the results that gradients are computed from.

    These results are inputs of the graph: derivatives of the gradients go through them.
    """
    graph, given = joint.graph, [tracer.traced(x).read() for x in joint.outputs]
    name, gradients = f"{graph.name}_joint", [g for g in joint.grads if g is not None]
    made = extract(graph, name, [*graph.inputs, *given], gradients)
    read = {v for node in made.nodes for v in node.operand_values()}
    found = [k for k, v in enumerate(made.inputs[len(graph.inputs):]) if v in read]
    return extract(graph, name, [*graph.inputs, *(given[k] for k in found)], gradients), found


def _saved(
    saved: list[Value], primal: dict[Value, int], roots: dict[FunctionalStorage, int],
    joint: JointGraph
) -> tuple[list[Value], list[tuple[str, int]]]:
    """Return the saved values that become further outputs, and where each saved value is found
    after the run."""
    extra: list[Value] = []
    found: list[tuple[str, int]] = []
    others = {*primal, *(memory.value for memory in roots)}  # memory that may be written later
    for value in saved:
        memory = joint.live.get(value)
        if memory is not None and memory.input_tensor is None:
            found.append(("output", roots[memory]))
        elif memory is not None or value in primal and value not in joint.written:
            found.append(("input", primal[value if memory is None else memory.input]))
        else:
            found.append(("output", len(roots) + len(extra)))
            extra.append(
                value.graph.append(REGISTRY["clone"], (value,), {})
                if value in others
                else value
            )
    return extra, found


def _line(tracer: Any, result: Tensor) -> Location | None:
    """Return the line of the user's program that made a result."""
    node = tracer.traced(result).memory.value.node
    return None if node is None else node.location


class _Noted:
    """List of the memory that must not be written before a backward, each with its number."""

    def __init__(self, tracer: Any, primal: dict[Value, int], roots: dict[FunctionalStorage, int],
                 joint: JointGraph):
        self.tracer, self.primal, self.roots = tracer, primal, roots
        self.outputs = joint.outputs
        self.saved: dict[Value | None, int] = {v: k for k, v in enumerate(joint.saved)}
        self.items: list[VersionCheck] = []
        self.numbers: dict[tuple[FunctionalStorage, int, bool], int] = {}
        # without flags: one memory may be kept always and on one way
        self.known: dict[FunctionalStorage, VersionCheck] = {}
        self.found: dict[Node, list[int]] = {}
        nodes = {node for stage in joint.stages for node in stage.nodes}
        for node in sorted(nodes, key=lambda node: -node.sequence):  # newest first, as a backward
            self.by(node)

    def of(self, stage: Stage) -> list[tuple[int, list[PathMask]]]:
        """Return for each check of a stage its number, and the ways through the nodes that need
        it."""
        found: dict[int, list[PathMask]] = {}
        for node, way in stage.nodes.items():
            for number in self.by(node):
                found.setdefault(number, []).append(way)
        return [(number, list(dict.fromkeys(ways))) for number, ways in found.items()]

    def by(self, node: Node) -> list[int]:
        """Return the numbers of the checks that a node of the tape needs."""
        if node not in self.found:
            # The first record of a memory labels it: a region's own, before those of inner nodes.
            found = sorted(records(node), key=lambda record: not isinstance(record, SaveRecord))
            numbers = [self._number(record) for record in found]
            self.found[node] = [number for number in numbers if number is not None]
        return self.found[node]

    def _number(self, record: Saved | SavedOutput | SaveRecord) -> int | None:
        item = self.tracer.lifted.get(id(record.tensor))
        traced = getattr(record.tensor, "_traced", None) if item is None else item.traced
        if traced is None:
            return None
        memory = traced.memory
        if counting_family(record.tensor) is not None and not (
                self.tracer.counts_outside(record.tensor)):
            return None  # of the call's own `.data`: only the call can write it
        if memory.input_tensor is None and memory not in self.roots:
            return None
        if memory not in self.known:
            self.known[memory] = self._check(record, traced, item is not None)
        check = self.known[memory]
        if isinstance(record, SaveRecord) and not record.always:
            flag = self._flag(record)
            if flag < 0:
                return None
            check = check._replace(flag=flag, sense=record.sense)
        if (memory, check.flag, check.sense) not in self.numbers:
            self.numbers[memory, check.flag, check.sense] = len(self.items)
            self.items.append(check)
        return self.numbers[memory, check.flag, check.sense]

    def _flag(self, record: SaveRecord) -> int:
        """Return the position of the saved value that alone decides whether a record is kept, or
        -1.
        """
        value = None if record.flag is None else self.tracer.traced(record.flag).read()
        return self.saved.get(value, -1)

    def _check(
        self, record: Saved | SavedOutput | SaveRecord, traced: FunctionalTensor, given: bool
    ) -> VersionCheck:
        """Make the check of a record's memory. `given`: the record is of the caller's tensor, or of
        what a region keeps of it."""
        itself, label, memory = operand_of(record), record.label(traced.shape), traced.memory
        line = None if isinstance(record, SaveRecord) else forward_lines.get(record)
        if memory.input_tensor is not None:
            whole = given and itself is not None
            named = None if whole else label
            return VersionCheck(self.primal[memory.input], label=named, line=line)
        result = next((k for k, x in enumerate(self.outputs) if x is itself), -1)
        return VersionCheck(-1, self.roots[memory], label, result, line=line)

    def held(self, number: int) -> int:
        """Return the number of the check of an input, which is added if need be.

        The backward computes again from this input what the tape does not keep.
        """
        for k, item in enumerate(self.items):
            if item.input == number:
                return k
        known = [check for check in self.known.values() if check.input == number]
        self.items.append(known[0] if known else VersionCheck(number))
        return len(self.items) - 1
