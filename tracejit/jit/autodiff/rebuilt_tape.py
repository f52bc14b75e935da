"""Tape of a recorded call that can be laid again over the tensors of a replay.

In: the nodes behind a recording's results, while they hold deferred tensors.
Out: a `RebuiltTape`, which makes the same nodes over concrete tensors, for second derivatives. Only
the tape shows what `detach()`, grad modes, custom Functions and hooks do to them, not the graph.
Made by `differentiate.py`, used by `jit/runtime/later_backward.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.eager.function import FunctionNode
from tracejit.core.eager.history import CopySlices, Overwrite
from tracejit.core.eager.nodes import AccumulateGrad, Edge, Node, edge_of
from tracejit.core.eager.saved import PACKED, Saved, SavedOutput, Unsaved, alias
from tracejit.core.eager.state import of_array
from tracejit.core.eager.tape import CustomNode, OpNode, refresh
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.memory import CPU
from tracejit.core.ops.stacks import may_hold_handles, stack_run
from tracejit.core.ops.types import TensorType
from tracejit.jit.autodiff.branch_freed import BranchFreed
from tracejit.jit.autodiff.eager_vjp import EagerVjp, TapeBoundary, at
from tracejit.jit.autodiff.freed import WHOLE, Freed, Part, laid_class
from tracejit.jit.autodiff.gradient_views import Step, chain, look
from tracejit.jit.autodiff.partition import computed_again
from tracejit.jit.autodiff.reach import TapeEdge, connected, places_behind, places_from
from tracejit.jit.autodiff.vjp import ControlFlowVjp
from tracejit.jit.capture.breaks import CaptureError, RegionRefused
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import at_size, interpret

Rebuilder = Callable[["_Laid"], Any]


class NotRebuilt(Exception):
    """Error for a tape that holds something which cannot be made for another call."""


class CallTensors(NamedTuple):
    """Tensors of one call, for which a tape is laid.

    inputs    of the call, as they are now; `before`: as they were at the call
    saved     what the call saved for its backward
    versions  that inputs had at the call, by number of the input
    freed     record of the freed parts of the call's history
    """

    inputs: Sequence[Any]
    before: Sequence[Any]
    saved: Sequence[Any]
    versions: Mapping[int, int]
    sizes: Mapping[str, int]
    freed: Freed


class NodeRebuilder(NamedTuple):
    """Description of a node to make. An edge leads to (node, output), or to a boundary: (-1 -
    number, 0)."""

    kind: Any
    edges: list[tuple[int, int] | None]
    extras: Any
    fields: dict[str, Rebuilder]


class RebuiltTape:
    """Description of a recorded call's tape; `lay` makes its nodes for another call.

    values   of the recorded graph that nodes keep; empty after `end`
    inputs   of the graph that nodes keep as the caller's own tensor; empty after `end`
    tensors  what makes each tensor that nodes keep
    nodes    what makes each node; `order`: their numbers, operands first
    outputs  (node, output) of each place where gradients arrive
    code_paths  for each node that runs user code, for each of its outputs: the places that lead to
             it, where gradients arrive; the code was recorded with gradients from all of them
    seen     number of a value that is a view of an unwritten input -> (input, view steps)
    regions  True if branches or loops are run again
    boundaries  for each place where gradients end the number of its boundary
    graph    from the call's inputs and the saved values `made` to `values`
    """

    def __init__(self, reader: _Reader, outputs: list[tuple[int, int]],
                 code_paths: list[list[frozenset[int]]]):
        self.values, self.inputs = reader.values, reader.inputs
        self.tensors, self.nodes = reader.tensors, reader.nodes
        self.order = sorted(range(len(self.nodes)), key=lambda k: reader.ages[k])
        self.outputs, self.code_paths, self.boundaries = outputs, code_paths, reader.ends
        self.regions = reader.regions
        self.seen: dict[int, tuple[int, list[Step]]] = {}
        self.recorded = reader.found
        self.graph: Graph | None = None
        self.numbers: list[int] = []
        self.made: list[int] = []

    def end(self, graph: Graph, number: Mapping[Value, int], saved: Sequence[Value],
            forward: Collection[Any], unwritten: Collection[Value]
            ) -> tuple[set[Value], set[Value], set[Value]]:
        """Finish the description when the recording ends: make `graph`, from the call's inputs
        (`number`) and the values it saved. `unwritten`: tensor inputs that the call does not write.

        Return three sets of inputs: those that the tape reads; those that `graph` reads; those from
        which it computes again what `forward` nodes computed.
        """
        self.made = [k for k, v in enumerate(saved) if v.node is not None]
        given = [*number, *(saved[k] for k in self.made)]
        made = extract(graph, f"{graph.name}_again", given, self.values)
        read = {v for node in made.nodes for v in node.operand_values()} | set(made.outputs)
        started = {v for v, again in zip(given, made.inputs) if again in read and v.node is None}
        self.graph, self.numbers = made, [number[v] for v in self.inputs]
        for k, value in enumerate(self.values):
            base, steps = chain(value)
            if base in number and base in unwritten:
                self.seen[k] = number[base], steps
        again = computed_again(given, self.values, forward)
        used = started.union(self.inputs)
        self.values, self.inputs, self.recorded = [], [], {}  # they hold the recording
        return used, started, again

    def part(self, part: Any) -> Part:
        """Return the key of a part of the recording's tape that is freed by itself."""
        node, result = part if type(part) is tuple else (part, WHOLE)
        return self.recorded[node], result

    def differs(self, arrived: Collection[int]) -> bool:
        """Return True if user code would notice that gradients arrive at these results only."""
        return any(len({results.isdisjoint(arrived) for results in ways}) > 1
                   for ways in self.code_paths)

    def lay(self, tangents: Mapping[int, Tensor], call: CallTensors, behind: Sequence[Edge]
            ) -> tuple[list[Tensor], list[TapeEdge]]:
        """Lay the tape for a call. Return the tensors at whose places the `tangents` arrive, and
        the boundaries.

        tangents  number of the place -> gradient there
        behind    for each boundary the edge along which its gradient went at the time of the call
        """
        assert self.graph is not None
        found = _values(self.graph, [*call.before, *(call.saved[k] for k in self.made)], call.sizes)
        for k, (number, steps) in self.seen.items():
            found[k] = alias(look(call.inputs[number], steps, call.sizes))
        laid = _Laid(self.tensors, [call.inputs[k] for k in self.numbers], found, call)
        boundaries = laid.boundaries = {k: TapeBoundary((behind[k],))
                                        for k in dict.fromkeys(self.boundaries)}
        kinds = [laid_class(rebuilder.kind) for rebuilder in self.nodes]
        laid.nodes = [kind.__new__(kind) for kind in kinds]
        # `Node.__init__` gives the sequence number by which the engine orders nodes.
        for k in self.order:
            edges = [None if e is None else (boundaries[-1 - e[0]], 0) if e[0] < 0
                     else (laid.nodes[e[0]], e[1]) for e in self.nodes[k].edges]
            Node.__init__(laid.nodes[k], tuple(edges))
            laid.nodes[k].extras = self.nodes[k].extras
        # Fields may refer to any node, so all nodes exist first.
        for rebuilder, node in zip(self.nodes, laid.nodes):
            for name, made in rebuilder.fields.items():
                setattr(node, name, made(laid))
        for number, node in enumerate(laid.nodes):
            call.freed.add(node, number)
        places = [self.outputs[k] for k in tangents]
        results = [at(like, laid.nodes[node], number)
                   for like, (node, number) in zip(tangents.values(), places)]
        return results, [(boundaries[k], 0) for k in self.boundaries]


class _Laid:
    """Tape of one call while it is laid."""

    def __init__(self, rebuilders: Sequence[Rebuilder], inputs: Sequence[Any],
                 values: Sequence[Any], call: CallTensors):
        self.rebuilders, self.inputs, self.values = rebuilders, inputs, values
        self.sizes = call.sizes
        self.versions = {_counter(call.inputs[k]): version for k, version in call.versions.items()}
        self.nodes: list[Any] = []
        self.boundaries: dict[int, TapeBoundary] = {}
        self.made: dict[int, Any] = {}

    def saved(self, number: int) -> Saved:
        """Make the record of a saved tensor, with the version that the tensor had in the call."""
        made = Saved(self.tensor(number))
        made.version = self.versions.get(_counter(made.tensor), made.version)
        return made

    def tensor(self, number: int) -> Any:
        """Return the tensor with this number, the same object for all nodes that keep it."""
        if number not in self.made:
            self.made[number] = self.rebuilders[number](self)
        return self.made[number]


def _counter(x: Tensor) -> Any:
    """Return the object that counts writes to a tensor's memory."""
    return counting_family(x) or x._storage


def _values(graph: Graph, given: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    """Compute the graph's outputs as tensors. An output that is an input is an alias of it, not a
    copy."""
    arrays = [x.array if isinstance(x, Tensor) else np.asarray(x) for x in given]
    number = {v: k for k, v in enumerate(graph.inputs)}
    made: list[Any] = []
    with stack_run() as stacks:
        for value, array in zip(graph.outputs, interpret(graph, arrays, symbols=sizes).outputs):
            x = given[number[value]] if value in number else None
            if isinstance(x, Tensor):
                made.append(alias(x))
                continue
            made.append(of_array(array if array.flags.owndata else array.copy(),
                                 value.type.device or CPU))
            if may_hold_handles(value.type):
                stacks.keep(made[-1]._storage)
    return made


def rebuilt_tape(tracer: Any, places: Sequence[TapeEdge], ends: Sequence[TapeEdge]
                 ) -> RebuiltTape | None:
    """Describe the tape from `places` to `ends`, which may be places as well. Return None if a node
    cannot be made again."""
    try:
        return _Reader(tracer, ends).tape(places)
    except (NotRebuilt, RegionRefused, CaptureError):
        return None


class _Reader:
    """Reader of a recording's nodes."""

    def __init__(self, tracer: Any, ends: Sequence[TapeEdge]):
        self.tracer = tracer
        self.values: list[Value] = []
        self.inputs: list[Value] = []
        self.tensors: list[Rebuilder] = []
        self.nodes: list[NodeRebuilder] = []
        self.ages: list[int] = []
        self.held: dict[int, tuple[Any, int]] = {}  # tensors, by id
        self.found: dict[Node, int] = {}
        self.left: list[Node] = []
        self.regions = False
        self.boundaries: dict[TapeEdge, int] = {}
        for k, end in enumerate(ends):
            self.boundaries.setdefault(end, k)
        self.ends = [self.boundaries[end] for end in ends]

    def tape(self, starts: Sequence[TapeEdge]) -> RebuiltTape:
        places = [(self.node(node), number) for node, number in starts]
        made: dict[int, NodeRebuilder] = {}
        while self.left:
            node = self.left.pop()
            made[self.found[node]] = NodeRebuilder(type(node), [self.place(e) for e in node.edges],
                                                   node.extras, self.fields(node))
        self.nodes = [made[k] for k in range(len(made))]
        return RebuiltTape(self, places, self.code_paths(starts))

    def code_paths(self, starts: Sequence[TapeEdge]) -> list[list[frozenset[int]]]:
        """List, for each node that runs user code and each of its outputs, the starts that lead
        there."""
        found: dict[Node, dict[int, set[int]]] = {}
        for k, start in enumerate(starts):
            for node, number in [start, *places_from(connected(start), self.boundaries)]:
                if node in self.found and _runs_code(node):
                    found.setdefault(node, {}).setdefault(number, set()).add(k)
        return [[frozenset(way) for way in ways.values()] for ways in found.values()]

    def place(self, edge: Any) -> tuple[int, int] | None:
        """Return where an edge leads: (node, output), or a boundary. None if it leads to a leaf or
        an older node at which no gradient is taken."""
        if edge is None:
            return None
        if edge in self.boundaries:
            return -1 - self.boundaries[edge], 0
        if type(edge[0]) is AccumulateGrad or edge[0].sequence < self.tracer.first_node:
            return None
        return self.node(edge[0]), edge[1]

    def node(self, node: Node) -> int:
        if node not in self.found:
            self.found[node] = len(self.found)
            self.ages.append(node.sequence)
            self.left.append(node)
        return self.found[node]

    def fields(self, node: Any) -> dict[str, Rebuilder]:
        """Return the makers of a node's attributes, by name."""
        if isinstance(node, OpNode):
            kept = ("op", "operands", "outputs", "attributes", "needed", "keeps")
            # Sizes of a laid node are plain numbers.
            return self.parts(node, kept) | {"symbolic": _constant(False)}
        if isinstance(node, FunctionNode):
            return self.parts(node, tuple(node.__dict__))
        if isinstance(node, CopySlices):
            return self.parts(node, ("steps", "base_type", "source_type"))
        if isinstance(node, Overwrite):
            return self.parts(node, ("type",))
        if isinstance(node, CustomNode) and isinstance(node.backward, ControlFlowVjp):
            names = ("saved", "output_count", "frees", "over")
            return self.parts(node, names) | {"backward": self.control(node, node.backward),
                                              "freeing": self.branch_freed(node.freeing)}
        raise NotRebuilt

    def branch_freed(self, freed: BranchFreed) -> Rebuilder:
        first = self.rebuilder(freed.first)
        return lambda laid: BranchFreed(freed.branches, freed.count, first(laid))

    def control(self, node: Node, backward: ControlFlowVjp) -> Rebuilder:
        """Describe the backward of a branch or a loop: `EagerVjp`, which runs the node again."""
        self.regions = True
        again, number = backward.again, self.found[node]
        if again is None:
            raise NotRebuilt
        op, regions, sources, numbers = again.op, again.regions, again.sources, again.numbers
        attributes, operands = self.rebuilder(again.attributes), self.rebuilder(again.operands)
        return lambda laid: EagerVjp(op, attributes(laid), regions, operands(laid), sources,
                                     numbers, laid.nodes[number].edges, laid.sizes)

    def parts(self, x: Any, names: Sequence[str]) -> dict[str, Rebuilder]:
        return {name: self.rebuilder(getattr(x, name)) for name in names}

    def rebuilder(self, x: Any) -> Rebuilder:
        """Return a function that makes, for another call, the counterpart of `x`."""
        kind = type(x)
        if kind is Saved or kind is SavedOutput:
            return self.saved(x)
        if kind is Unsaved:
            return _unsaved(x)
        if isinstance(x, Tensor):
            number = self.tensor(x)
            return lambda laid: laid.tensor(number)
        if isinstance(x, SymNumber):
            return self.number(x)
        if kind is TensorType:
            return lambda laid: x._replace(shape=at_size(x.shape, laid.sizes))
        if kind in (tuple, list):
            parts = [self.rebuilder(y) for y in x]
            return lambda laid: kind([part(laid) for part in parts])
        if kind is dict:
            entries = {key: self.rebuilder(y) for key, y in x.items()}
            return lambda laid: {key: made(laid) for key, made in entries.items()}
        if isinstance(x, Node):
            raise NotRebuilt
        return lambda laid: at_size(x, laid.sizes)

    def saved(self, x: Any) -> Rebuilder:
        if x.version == PACKED:
            raise NotRebuilt
        if type(x) is Saved:
            number = self.tensor(x.tensor)
            return lambda laid: laid.saved(number)
        made = x.node()
        if made is None:
            raise NotRebuilt
        output, value = x.number, self.value(x.tensor)
        if (made, output) in self.boundaries:
            boundary = self.boundaries[made, output]
            return lambda laid: SavedOutput(laid.values[value], laid.boundaries[boundary], 0)
        node = self.node(made)
        return lambda laid: SavedOutput(laid.values[value], laid.nodes[node], output)

    def value(self, x: Tensor) -> int:
        """Add the value of a tensor to `values`; return its number there."""
        self.values.append(self.tracer.traced(x).read())
        return len(self.values) - 1

    def number(self, x: Any) -> Rebuilder:
        """Describe a number that may differ from call to call."""
        value = x.hint if self.tracer.sym_env.is_concretized(x) else x.graph_value(self.tracer)
        if not isinstance(value, Value):
            return _constant(value)
        self.values.append(value)
        number = len(self.values) - 1
        return lambda laid: laid.values[number].item()

    def tensor(self, x: Any) -> int:
        """Return the number of a kept tensor in `tensors`."""
        known = self.held.get(id(x))
        if known is None:
            known = self.held[id(x)] = x, len(self.tensors)
            self.tensors.append(_constant(None))  # its place, as `kept` may add others
            self.tensors[known[1]] = self.kept(x)
        return known[1]

    def kept(self, x: Any) -> Rebuilder:
        if x._traced is None:
            item = self.tracer.lifted.get(id(x))
            if item is None:
                raise NotRebuilt
            self.inputs.append(item.value)
            number = len(self.inputs) - 1
            return lambda laid: laid.inputs[number]
        refresh(x)
        number = self.value(x)
        place = self.place(edge_of(x)) if x._requires_grad else None
        if place is None:
            return lambda laid: alias(laid.values[number])
        if place[0] < 0:
            boundary = -1 - place[0]
            return lambda laid: at(laid.values[number], laid.boundaries[boundary], 0)
        node, output = place
        return lambda laid: at(laid.values[number], laid.nodes[node], output)


def runs_code(outputs: Sequence[Tensor], first_node: int) -> bool:
    """Return True if any of the call's own nodes has hooks or is a custom Function's."""
    places = places_behind(outputs)
    return any(_runs_code(node) for node, _ in places if node.sequence >= first_node)


def _runs_code(node: Node) -> bool:
    extras = node.extras
    hooked = extras is not None and (extras.hooks or extras.prehooks or extras.tensor_hooks)
    return isinstance(node, FunctionNode) or bool(hooked)


def _constant(x: Any) -> Rebuilder:
    return lambda laid: x


def _unsaved(x: Unsaved) -> Rebuilder:
    dtype, shape, device = x.dtype, x.shape, x.device

    def made(laid: _Laid) -> Unsaved:
        again = Unsaved.__new__(Unsaved)
        again.dtype, again.shape, again.device = dtype, at_size(shape, laid.sizes), device
        return again

    return made
