"""Memory of stored values: outputs, inputs updated in place, temporaries.

In: groups with their loops, and what the graph writes. Out: `Memory`: groups in an order that keeps
what is still read, buffers, and the targets of each store. Called by `lower.py`. An input is
updated in place if its group reads it only where it writes it. All other groups that read it, or
may fail, must be able to run before. Otherwise the value gets memory of its own and a copy at the
end.

Before you add a rule here: outputs get buffers first, writes follow in the graph's order, then
comes the order of groups, targets last. A write in place links all other readers of the input, and
the barrier after all that may fail, before its group. Each later write asks `reaches` with these
links. Among a group's targets the first is where readers find the value. `stash.py` keeps values of
earlier loops there. A group reads an input that it writes in place only at the element written,
since its loops run in any order. The writes in `tests/lowering/test_schedule.py` show mistakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.lowering.groups import Group, count
from tracejit.jit.lowering.index import product, resolved, same_size
from tracejit.jit.lowering.loops import Nest, lay_out
from tracejit.jit.lowering.partial_writes import Part, whole_of
from tracejit.jit.lowering.precedence import in_order, link, reaches
from tracejit.jit.lowering.program import Buffer
from tracejit.jit.lowering.repeated_checks import repeated

# (buffer number, value or part whose strides say where an element lies; None: contiguous)
Target = tuple[int, Any]


@dataclass
class Memory:
    """`place[v]` is where readers find a value; `targets[group, v]` where a group stores it."""

    order: list[Group]
    buffers: list[Buffer] = field(default_factory=list)
    place: dict[Any, int] = field(default_factory=dict)
    targets: dict[tuple[Group, Any], list[Target]] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)

    def new(self, dtype: Any, numel: Any, role: str, index: int = 0) -> int:
        self.buffers.append(Buffer(dtype, numel, role, index))
        return len(self.buffers) - 1


class _Assignment:
    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[Value],
        writes: Sequence[tuple[Any, Value]],
        groups: list[Group],
        nests: dict[Group, Nest],
    ):
        self.graph, self.writes, self.groups, self.nests = graph, writes, groups, nests
        self.outputs = outputs
        self.memory = Memory([])
        # A part stores partials under the name of the value that another group stores.
        self.home = {v: g for g in groups if g.kind != "part" for v in g.stores}
        self.extra: dict[Value, list[Target]] = {}
        self.readers: dict[Any, list[Group]] = {}
        for group in groups:
            for v in dict.fromkeys(self._reads(group)):
                self.readers.setdefault(v, []).append(group)
        self.failing = dict.fromkeys(g for g in groups if self._may_fail(g))
        self.ranks = itertools.count(1 + max((g.rank for g in groups), default=0))
        self.settled = self._barrier()

    def _barrier(self) -> Group | None:
        """Make a group that does nothing, after all that may fail; None if nothing may."""
        if not self.failing:
            return None
        # other processes are met when no check can fail any more
        meeting = dict.fromkeys(g for g in self.failing if g.node is not None and g.node.effect)
        checking = [g for g in self.failing if g not in meeting] if meeting else []
        idle = repeated(checking)
        for group in [g for g in checking if g not in idle]:
            for one in meeting:
                if not reaches([one], [group]):
                    link(group, one)
        barrier = Group("barrier", len(self.graph.nodes) + 1, rank=next(self.ranks))
        self.groups.append(barrier)
        for group in self.failing:
            link(group, barrier)
        return barrier

    def _reads(self, group: Group) -> list[Any]:
        nest = self.nests.get(group)
        if nest is not None:
            return [s.data[0] for s in nest.scalars if s.kind == "load"]
        assert group.node is not None
        return list(group.operands)

    def run(self) -> Memory:
        memory, graph = self.memory, self.graph
        for k, v in enumerate(graph.inputs):
            memory.place[v] = memory.new(
                v.dtype, product([resolved(s) for s in v.shape]), "input", k
            )
        self._outputs()
        for target, v in self.writes:
            if not self._in_place(target, v):
                self._copy(v, (memory.place[whole_of(target)], target), whole_of(target))
        memory.order = in_order(self.groups, lambda group: group.position)
        for group in memory.order:
            for leaf in self._leaves(group):
                self._targets(group, leaf)
        return memory

    # -- outputs -------------------------------------------------------------------------------
    def _outputs(self) -> None:
        memory = self.memory
        written = {whole_of(target) for target, _ in self.writes}
        for k, v in enumerate(self.outputs):
            known = memory.place.get(v)
            # Returned before, or an input that keeps its content.
            if known is not None and (v.node is not None or v not in written):
                memory.outputs.append(known)
                continue
            buffer = memory.new(v.dtype, count(v), "output", k)
            memory.outputs.append(buffer)
            if v.node is None:
                self._copy(v, (buffer, None), None)
            else:
                memory.place[v] = buffer

    # -- writes --------------------------------------------------------------------------------
    def _in_place(self, target: Any, v: Value) -> bool:
        """Let the group of `v` store it straight into the input, if that is right. Return True if
        so."""
        whole = whole_of(target)
        group = self.home[v]
        nest = self.nests.get(group)
        if nest is None or not all(
            same_size(resolved(a), resolved(b)) for a, b in zip(target.shape, v.shape)
        ):
            return False
        if v.ndim != target.ndim or not self._same_elements(nest, target, v):
            return False
        before = [r for r in self.readers.get(whole, []) if r is not group]
        before += [self.settled] if self.settled is not None else []
        # A group that may fail writes nothing that a caller sees.
        if group in self.failing or reaches([group], before):
            return False
        for g in before:
            link(g, group)
        self.extra.setdefault(v, []).append((self.memory.place[whole], target))
        return True

    def _may_fail(self, group: Group) -> bool:
        nest = self.nests.get(group)
        if nest is None:
            return group.kind == "host" or group.node is not None and group.node.effect
        return bool(nest.emission.messages)

    def _same_elements(self, nest: Nest, target: Any, v: Value) -> bool:
        """Return True if the nest reads the input only at the element it is about to store
        there."""
        store = next(s for s in nest.stores if s.leaf is v)
        address, whole = nest.emission.address(target, store.place).key, whole_of(target)
        reads = [s.data[1].key for s in nest.scalars if s.kind == "load" and s.data[0] is whole]
        return all(key == address for key in reads)

    def _copy(self, v: Value, target: Target, written: Value | None) -> None:
        """Add a group that copies `v`, after all that may fail and all that read the target."""
        group = Group("loop", len(self.graph.nodes) + 1, rank=next(self.ranks))
        group.stores, group.numel = [v], count(v)
        if isinstance(target[1], Part) and v.ndim > 1:  # a part lies in rows, not in one piece
            group.rows = product([resolved(s) for s in v.shape[:-1]])
        self.nests[group] = lay_out(group, self.graph, {})
        self.groups.append(group)
        self.memory.targets[group, v] = [target]
        if v in self.home:
            link(self.home[v], group)
        if written is not None:
            for g in self.readers.get(written, []):
                link(g, group)
            if self.settled is not None:
                link(self.settled, group)
        self.readers.setdefault(v, []).append(group)

    # -- targets -------------------------------------------------------------------------------
    def _leaves(self, group: Group) -> list[Any]:
        nest = self.nests.get(group)
        return list(group.stores) if nest is None else nest.leaves()

    def _targets(self, group: Group, leaf: Any) -> None:
        memory = self.memory
        if (group, leaf) in memory.targets:
            return
        targets = list(self.extra.get(leaf, []))
        place = memory.place.get(leaf)
        if place is not None:
            targets.insert(0, (place, None))
        elif targets and self._plain(targets[0]):
            memory.place[leaf] = targets[0][0]
        # Strides do not matter if nothing reads it.
        elif targets and not self.readers.get(leaf):
            memory.place[leaf] = targets[0][0]
        else:
            memory.place[leaf] = memory.new(
                leaf.dtype, product([resolved(s) for s in leaf.shape]), "temporary"
            )
            targets.insert(0, (memory.place[leaf], None))
        memory.targets[group, leaf] = targets

    def _plain(self, target: Target) -> bool:
        return target[1] is None or target[1].contiguous


def assign_memory(
    graph: Graph,
    outputs: Sequence[Value],
    writes: Sequence[tuple[Any, Value]],
    groups: list[Group],
    nests: dict[Group, Nest],
) -> Memory:
    """Choose buffers and targets; add groups that copy, and order between groups."""
    return _Assignment(graph, outputs, writes, groups, nests).run()
