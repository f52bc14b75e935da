"""Instructions: groups in order become kernel launches, library calls and host calls.

In: groups with loops and memory. Out: a `Program`. Called by `lower.py`. Groups with equal loops
over other buffers become segments of one kernel where nothing between them forbids it; everything
written that a caller can see comes after everything that may fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.ir.graph import Graph, Location, Node, Value
from tracejit.lowering.emit import Partial
from tracejit.lowering.extern import matmul_kernel
from tracejit.lowering.fuse import in_order, operations
from tracejit.lowering.groups import Group, count, reaches
from tracejit.lowering.index import product, resolved
from tracejit.lowering.kernels import segment_key, segmented, single
from tracejit.lowering.library import library_of
from tracejit.lowering.loops import WORK, Nest
from tracejit.lowering.memory import Memory
from tracejit.lowering.printing import Printer, Text
from tracejit.lowering.products import Folded, library_sizes
from tracejit.lowering.program import Instruction, Program


@dataclass
class Unit:
    """One instruction to be: a group, or several that are segments of one kernel."""

    groups: list[Group]
    texts: list[Text]


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
    ):
        self.graph, self.memory, self.nests = graph, memory, nests
        self.partials, self.folded, self.contract = partials, folded, numerics == "fast"
        self.program = Program(graph, buffers=memory.buffers)
        self.number = {node: k for k, node in enumerate(folded.nodes)}

    def run(self) -> Program:
        program = self.program
        program.inputs = [self.memory.place[v] for v in self.graph.inputs]
        program.outputs = list(self.memory.outputs)
        for unit in self._units():
            self._instruction(unit)
        _lifetimes(program)
        return program

    # -- horizontal fusion ---------------------------------------------------------------------
    def _units(self) -> list[Unit]:
        units: list[Unit] = []
        known: dict[tuple, list[Unit]] = {}
        for group in self.memory.order:
            nest = self.nests.get(group)
            text = self._text(group, nest) if nest is not None else None
            key = segment_key(text) if text is not None else None
            if key is not None:
                found = next((u for u in known.get(key, []) if self._joins(group, u)), None)
                if found is not None and text is not None:
                    found.groups.append(group)
                    found.texts.append(text)
                    self._fuse_order(found)
                    continue
            unit = Unit([group], [] if text is None else [text])
            units.append(unit)
            if key is not None:
                known.setdefault(key, []).append(unit)
        return self._ordered(units)

    def _joins(self, group: Group, unit: Unit) -> bool:
        """Whether no group of the unit needs this one or the other way round."""
        return not reaches(unit.groups, group) and not reaches([group], *unit.groups)

    def _fuse_order(self, unit: Unit) -> None:
        """From now on who depends on one of them depends on all of them."""
        members = set(unit.groups)
        after = set().union(*(g.after for g in members))
        for g in self.memory.order:
            if not g.after.isdisjoint(members):
                g.after |= members
        for g in members:
            g.after = set(after)

    def _ordered(self, units: Sequence[Unit]) -> list[Unit]:
        unit_of = {g: unit for unit in units for g in unit.groups}
        found = {id(unit_of[g]): unit_of[g] for g in in_order(self.memory.order)}
        return self._topological(list(found.values()), unit_of)

    def _topological(self, units: list[Unit], unit_of: dict[Group, Unit]) -> list[Unit]:
        """The units so that each comes after those it needs, visible writes as late as possible."""
        waits = {id(u): 0 for u in units}
        later = {
            id(u): {id(unit_of[h]) for g in u.groups for h in g.after} - {id(u)} for u in units
        }
        for targets in later.values():
            for target in targets:
                waits[target] += 1
        by_id = {id(u): u for u in units}
        order: list[Unit] = []
        left = list(units)
        while left:
            ready = [u for u in left if not waits[id(u)]]
            chosen = next((u for u in ready if not self._visible(u)), ready[0])
            left.remove(chosen)
            order.append(chosen)
            for target in later[id(chosen)]:
                waits[id(by_id[target])] -= 1
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
        return list(group.stores) if nest is None else [s.leaf for s in nest.stores]

    # -- instructions --------------------------------------------------------------------------
    def _text(self, group: Group, nest: Nest) -> Text:
        return Printer(nest, self._buffer, lambda leaf: self.memory.targets[group, leaf]).run()

    def _buffer(self, leaf: Any) -> int:
        return self.memory.place[leaf]

    def _instruction(self, unit: Unit) -> None:
        group = unit.groups[0]
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
        self._add(
            Instruction(
                kernel, (*operands, *written), len(written), sizes, 1, 1, extern=node.op.name,
                host=node,
            ),
            [node],
        )  # fmt: skip

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
        """Bytes moved: what is read in full counts in full, a row vector once."""
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


def _widest(node: Node) -> Any:
    """What a node computes for each element of: a reduction, of its operand."""
    operand = next(node.operand_values(), None) if node.op.kind == "reduction" else None
    return node.outputs[0] if operand is None else operand


def _sum(sizes: Any) -> Any:
    total: Any = 0
    for size in sizes:
        total = total + size
    return total


def _label(nodes: Sequence[Node]) -> str:
    """A kernel's name, from the ops that compute most of it."""
    names = dict.fromkeys(n.op.name for n in nodes if n.op.kind != "movement")
    return "_".join(list(names)[-3:]) or "copy"


def _lifetimes(program: Program) -> None:
    """Between which instructions each temporary must keep its memory."""
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
) -> Program:
    """The program of these groups."""
    return Scheduler(graph, memory, nests, partials, folded, numerics).run()
