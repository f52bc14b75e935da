"""Instructions: groups in order become kernel launches, library calls and host calls.

In: groups with loops and memory. Out: a `Program`. Called by `lower.py`. Groups with equal loops
over other buffers become segments of one kernel if nothing between them forbids it. All that a
caller can see is written after everything that may fail.

Before you add a rule here: `memory.py` already linked what must come before what. `_units` may only
join groups of which neither needs the other, and `contract` hands their links on. `_topological`
then moves visible writes back, as far as links allow; it does not make checks come first. An
instruction lists its operands with outputs last: `_lifetimes` and the runtime's memory plan rely on
it. `tests/lowering/test_schedule.py` shows mistakes of order and of segments,
`tests/golden/test_kernels.py` a changed number of kernels.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from tracejit.jit.ir.graph import Graph, Location, Node, Value
from tracejit.jit.lowering.emit import Partial
from tracejit.jit.lowering.extern import matmul_kernel
from tracejit.jit.lowering.fuse import NEAR, operations
from tracejit.jit.lowering.groups import Group, count
from tracejit.jit.lowering.index import product, resolved
from tracejit.jit.lowering.kernels import segment_key, segmented, single
from tracejit.jit.lowering.library import library_of
from tracejit.jit.lowering.library_collectives import MOST_ALOFT, WAITS, wait_kernel
from tracejit.jit.lowering.loops import WORK, Nest
from tracejit.jit.lowering.memory import Memory
from tracejit.jit.lowering.precedence import Ordered, contract, in_order, link, reaches
from tracejit.jit.lowering.printing import Printer, Text
from tracejit.jit.lowering.products import Folded, library_sizes
from tracejit.jit.lowering.program import Instruction, Program


class Unit(Ordered):
    """Instruction to be: a group, or several that are segments of one kernel."""

    def __init__(self, group: Group, rank: int):
        super().__init__(rank)
        self.groups = [group]
        self.texts: list[Text] = []

    @property
    def position(self) -> tuple[int, int]:
        return min((group.position, group.rank) for group in self.groups)


class Scheduler:
    """Writes kernels and instructions."""

    def __init__(
        self,
        graph: Graph,
        memory: Memory,
        nests: dict[Group, Nest],
        partials: dict[Value, Partial],
        folded: Folded,
        numerics: str,
        segments: bool,
    ):
        self.segments = segments
        self.graph, self.memory, self.nests = graph, memory, nests
        self.partials, self.folded, self.contract = partials, folded, numerics == "fast"
        self.program = Program(graph, buffers=memory.buffers)
        self.number = {node: k for k, node in enumerate(folded.nodes)}
        self.aloft: list[Instruction] = []  # collectives that were begun and not waited for

    def run(self) -> Program:
        program = self.program
        program.inputs = [self.memory.place[v] for v in self.graph.inputs]
        program.outputs = list(self.memory.outputs)
        for unit in self._units():
            self._instruction(unit)
        for begun in list(self.aloft):
            self._wait(begun)
        _lifetimes(program)
        return program

    # -- horizontal fusion ---------------------------------------------------------------------
    def _units(self) -> list[Unit]:
        units = _unit_each(self.memory.order)
        known: dict[tuple, list[Unit]] = {}
        left: list[Unit] = []
        for unit in units:
            group = unit.groups[0]
            nest = self.nests.get(group)
            key = None
            if nest is not None:
                unit.texts.append(self._text(group, nest))
                joins = self.segments and not self._is_sent(group)
                key = segment_key(unit.texts[0]) if joins else None
            if key is not None:
                alike = known.setdefault(key, [])
                found = next((u for u in alike[-NEAR:] if _are_independent(u, unit)), None)
                if found is not None:
                    found.groups += unit.groups
                    found.texts += unit.texts
                    contract(found, unit)
                    continue
                alike.append(unit)
            left.append(unit)
        return self._topological(in_order(left, lambda unit: unit.position))

    def _is_sent(self, group: Group) -> bool:
        """Return True if it goes to other processes: they should not wait for more."""
        nodes = [g.node for g in group.after if g.node is not None]
        return any(node.effect or node.op.name == "bucket" for node in nodes)

    def _topological(self, units: list[Unit]) -> list[Unit]:
        """Return the units so that each comes after those it needs, visible writes as late as
        possible."""
        number = {unit: k for k, unit in enumerate(units)}
        waits = {unit: len(unit.before) for unit in units}
        quiet: list[int] = []
        visible: list[int] = []

        def ready(unit: Unit) -> None:
            heapq.heappush(visible if self._visible(unit) else quiet, number[unit])

        for unit in units:
            if not waits[unit]:
                ready(unit)
        order: list[Unit] = []
        while quiet or visible:
            order.append(units[heapq.heappop(quiet or visible)])
            for later in order[-1].after:
                waits[later] -= 1
                if not waits[later]:
                    ready(later)
        return order

    def _visible(self, unit: Unit) -> bool:
        return any(
            self.memory.buffers[b].role == "input"
            for g in unit.groups
            for v in self._leaves(g)
            for b, _ in self.memory.targets[g, v]
        )

    def _leaves(self, group: Group) -> list[Any]:
        nest = self.nests.get(group)
        return list(group.stores) if nest is None else nest.leaves()

    # -- instructions --------------------------------------------------------------------------
    def _text(self, group: Group, nest: Nest) -> Text:
        return Printer(nest, self._buffer, lambda leaf: self.memory.targets[group, leaf]).run()

    def _buffer(self, leaf: Any) -> int:
        return self.memory.place[leaf]

    def _instruction(self, unit: Unit) -> None:
        group = unit.groups[0]
        if group.kind == "barrier":
            return
        if group.kind == "host":
            self._host(group)
        elif group.kind == "product":
            self._product(group)
        elif group.kind == "library":
            self._library(group)
        else:
            self._loops(unit)

    def _host(self, group: Group) -> None:
        node = group.node
        assert node is not None
        operands = [self.memory.place[v] for v in node.operand_values()]
        written = [self.memory.place[v] for v in node.outputs]
        self._add(
            Instruction(None, (*operands, *written), len(written), (), 1, 1, host=node), [node]
        )

    def _product(self, group: Group) -> None:
        node = group.node
        assert node is not None
        pair = self.folded.operands[node]
        kernel = matmul_kernel(node.outputs[0].dtype.name)
        operands = (*(self.memory.place[o.value] for o in pair), self.memory.place[node.outputs[0]])
        sizes = library_sizes(node, *pair)
        self.program.kernels[kernel.digest] = kernel
        self._add(
            # `extern.partition` chooses total and chunk when sizes are bound.
            Instruction(kernel, operands, 1, sizes, sizes[2], sizes[2], extern="matmul"), [node]
        )

    def _library(self, group: Group) -> None:
        node = group.node
        assert node is not None
        library = library_of(node)
        assert library is not None
        kernel = library.kernel(node)
        kernel = self.program.kernels.setdefault(kernel.digest, kernel)
        operands = [self.memory.place[v] for v in node.operand_values()]
        written = [self.memory.place[v] for v in node.outputs]
        sizes = tuple(resolved(s) for s in library.sizes(node))
        instruction = Instruction(
            kernel, (*operands, *written), len(written), sizes, 1, 1, extern=node.op.name,
            host=node,
        )  # fmt: skip
        self._add(instruction, [node])
        if node.effect:
            self.aloft.append(instruction)
            if len(self.aloft) > MOST_ALOFT:
                self._wait(self.aloft[0])

    def _wait(self, begun: Instruction) -> None:
        """Add the instruction that waits for a collective."""
        self.aloft.remove(begun)
        kernel = self.program.kernels.setdefault(wait_kernel().digest, wait_kernel())
        sizes = (len(begun.operands) - 1,)
        self.program.instructions.append(
            Instruction(
                kernel, begun.operands, begun.outputs, sizes, 1, 1, ops=begun.ops,
                locations=begun.locations, extern=WAITS,
            )
        )  # fmt: skip

    def _meets(self, instruction: Instruction, begun: Instruction) -> bool:
        """Return True if an instruction uses memory that a collective writes, or writes memory that
        it reads. A further collective may take its token."""
        first = len(begun.operands) - begun.outputs
        written = set(begun.operands[first:])
        if instruction.host is not None and instruction.host.effect:
            written.discard(begun.operands[-1])
        own = len(instruction.operands) - instruction.outputs
        return not written.isdisjoint(instruction.operands) or not set(
            begun.operands[:first]
        ).isdisjoint(instruction.operands[own:])

    def _loops(self, unit: Unit) -> None:
        nests = [self.nests[g] for g in unit.groups]
        nodes = self._nodes(unit.groups[0])
        label = _label(nodes)
        if len(unit.groups) == 1:
            kernel, operands, sizes = single(unit.texts[0], label, self.contract)
            total, chunk = nests[0].total, nests[0].chunk
        else:
            extents = [nest.total for nest in nests]
            kernel, operands, sizes = segmented(unit.texts, extents, label, self.contract)
            total, chunk = sizes[-1], WORK
        kernel = self.program.kernels.setdefault(kernel.digest, kernel)
        written = sum(p.written for t in unit.texts for p in t.pointers)
        locations = tuple(dict.fromkeys(x for t in unit.texts for x in t.locations))
        self._add(
            Instruction(
                kernel, tuple(operands), written, tuple(sizes), total, chunk, locations=locations
            ),
            nodes,
        )
        self._count(unit)

    def _nodes(self, group: Group) -> list[Node]:
        nest = self.nests[group]
        values = {
            *group.members,
            *(s.leaf.value for s in nest.stores if isinstance(s.leaf, Partial)),
        }
        found = {v.node for v in values} & self.number.keys()
        return sorted(found, key=self.number.__getitem__)  # type: ignore[arg-type]

    def _count(self, unit: Unit) -> None:
        """Count bytes moved. A buffer counts once, with its whole size, however often it is
        read."""
        instruction = self.program.instructions[-1]
        read, written = {}, {}
        for group in unit.groups:
            nest = self.nests[group]
            for scalar in nest.scalars:
                if scalar.kind == "load":
                    read[self._buffer(scalar.data[0])] = self._bytes(scalar.data[0])
            for store in nest.stores:
                for buffer, _ in self.memory.targets[group, store.leaf]:
                    written[buffer] = self._bytes(store.leaf)
        instruction.bytes_read = _sum(read.values())
        instruction.bytes_written = _sum(written.values())
        instruction.arithmetic = _sum(
            operations(node) * product([resolved(s) for s in _widest(node).shape])
            for group in unit.groups for node in self._nodes(group)
        )

    def _bytes(self, leaf: Any) -> Any:
        return count(leaf) * leaf.dtype.itemsize

    def _add(self, instruction: Instruction, nodes: Sequence[Node]) -> None:
        visible = any(
            self.program.buffers[b].role == "input"
            for b in instruction.operands[len(instruction.operands) - instruction.outputs :]
        )
        for begun in list(self.aloft):
            # a caller sees all that is written, or nothing if other processes are gone
            if visible or self._meets(instruction, begun):
                self._wait(begun)
        instruction.ops = tuple(n.op.name for n in nodes)
        if not instruction.locations:
            found: list[Location] = [n.location for n in nodes if n.location is not None]
            instruction.locations = tuple(dict.fromkeys(found))
        if instruction.kernel is None or instruction.extern:
            inputs = instruction.operands[: len(instruction.operands) - instruction.outputs]
            buffers = self.program.buffers
            instruction.bytes_read = _sum(
                buffers[b].numel * buffers[b].dtype.itemsize for b in inputs
            )
            instruction.bytes_written = _sum(
                buffers[b].numel * buffers[b].dtype.itemsize
                for b in instruction.operands[len(inputs) :]
            )
        self.program.instructions.append(instruction)


def _unit_each(groups: Sequence[Group]) -> list[Unit]:
    """Return a unit for each group, in this order, linked like the groups."""
    of = {group: Unit(group, k) for k, group in enumerate(groups)}
    for group, unit in of.items():
        for later in group.after:
            link(unit, of[later])
    return list(of.values())


def _are_independent(one: Unit, other: Unit) -> bool:
    """Return True if neither needs the other."""
    first, second = sorted((one, other), key=lambda unit: unit.rank)
    return not reaches([first], [second])


def _widest(node: Node) -> Any:
    """Return the value for each element of which a node computes: of a reduction, its operand."""
    operand = next(node.operand_values(), None) if node.op.kind == "reduction" else None
    return node.outputs[0] if operand is None else operand


def _sum(sizes: Any) -> Any:
    total: Any = 0
    for size in sizes:
        total = total + size
    return total


def _label(nodes: Sequence[Node]) -> str:
    """Return a kernel's name: its last three ops that are no movement, else copy."""
    names = dict.fromkeys(n.op.name for n in nodes if n.op.kind != "movement")
    return "_".join(list(names)[-3:]) or "copy"


def _lifetimes(program: Program) -> None:
    """Set the first and last instruction between which each temporary must keep its memory."""
    for k, instruction in enumerate(program.instructions):
        first = len(instruction.operands) - instruction.outputs
        for position, number in enumerate(instruction.operands):
            buffer = program.buffers[number]
            buffer.last_use = k
            if position >= first and buffer.role == "temporary" and not buffer.first_use:
                buffer.first_use = k


def schedule(
    graph: Graph,
    memory: Memory,
    nests: dict[Group, Nest],
    partials: dict[Value, Partial],
    folded: Folded,
    numerics: str,
    segments: bool = True,
) -> Program:
    """Return the program of these groups.

    segments  equal loops over other buffers may be one kernel
    """
    return Scheduler(graph, memory, nests, partials, folded, numerics, segments).run()
