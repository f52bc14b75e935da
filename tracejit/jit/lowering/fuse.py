"""Fusion: decides which values share a kernel, which are stored, which are computed twice.

In: the nodes of a pure graph. Out: groups in an order that runs. Called by `lower.py`. Nodes are
placed from last to first, so all readers of a value are placed before it. A value read by one group
joins it, and each reading group computes a cheap value itself. Any other value is stored by a group
with the same loops. A choice here costs or saves time but never changes results: a group computes
what it stores from loads alone.

Before you add a rule here: `readers` already holds every group that reads the node's values. Look
them up again after a merge, which removes groups. Ask `reaches` or `can_merge` before you link or
merge: a circle fails in `precedence.py`. A group that computes a value has it in `members` and a
`_read` of its operands; any other group loads it. Keep values of `apart` out of the groups that
read them: `lower.py` fuses again with the reductions that `loops.py` found misplaced. Estimate
sizes by `typical`, not by the first call (`tests/runtime/test_first_sizes.py`). `_merge_scalars`
and `_merge_readers` come after all placing. `tests/lowering/test_fuse.py`, `test_schedule.py` and
`test_dependent_loops.py` show wrong groups.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from tracejit.jit.ir.graph import Node, Value
from tracejit.jit.ir.sizes import SizeLike, evaluate
from tracejit.jit.lowering.groups import (
    MEMBERS_CAP,
    Group,
    admit,
    can_merge,
    column_extents,
    count,
    dense_shape,
    fits,
    index_alike,
    is_full,
    key_of_columns,
    merge,
    prefix_length,
    take_rows,
)
from tracejit.jit.lowering.index import is_one, is_zero, product, resolved, same_size, size_key
from tracejit.jit.lowering.library import library_of
from tracejit.jit.lowering.precedence import in_order, link, reaches

CHEAP = 4  # operations, at most, of a value computed again rather than stored
# dtypes of scatters that are kernels
SCATTERED = ("float32", "float64", "int32", "int64")
WORTH_REPEATING = 32  # CHEAP if at most one large tensor is read
LIGHT = 12  # operations, at most, of a value computed where a condition holds
NEAR = 16  # groups that are tried, of many that might take a value or merge
REPEATED = 32  # times that a kernel's text may hold one value, in branches of branches
_FUNCTION = re.compile(r"[a-z]\w*(?=\()")
# functions that cost about as much as an addition
_LIGHT = {"abs", "min", "max", "sqrt", "floor", "ceil", "trunc", "rint", "bool", "int"}


def kind_of(node: Node, numerics: str) -> str:
    """Return a node's kind: element, row, column, full, scatter, product, library or host."""
    op = node.op
    if library_of(node) is not None:
        return "library"
    tensors = [*node.outputs, *node.operand_values()]
    if any(v.dtype.is_complex for v in tensors) or node.regions or len(node.outputs) != 1:
        return "host"
    if op.extern == "matmul":
        known = numerics == "fast" and node.outputs[0].dtype.name in ("float32", "float64")
        return "product" if known else "host"
    if node.may_fail and is_zero(count(node.outputs[0])):
        return "host"  # no loop would look at what may be wrong
    if op.element is not None or op.kind == "pointwise" and op.scalar is not None:
        return "element" if op.scalar is None or numerics == "fast" or op.exact else "host"
    if op.scatter is not None and numerics == "fast":
        return "scatter" if node.outputs[0].dtype.name in SCATTERED else "host"
    if op.kind == "reduction" and op.reduce is not None and numerics == "fast":
        return _reduction_kind(node)
    return "host"


def _reduction_kind(node: Node) -> str:
    shape = [resolved(s) for s in node.inputs[0].shape]
    dense = [d for d, s in enumerate(shape) if not is_one(s)]
    reduced = [d for d in node.attributes["dims"] if d in dense]
    if not reduced:
        return "element"
    if len(reduced) == len(dense):
        return "full"
    assert node.op.reduce is not None
    return "row" if dense[-1] in reduced or node.op.reduce.position else "column"


class Fuser:
    """Placement of nodes; `groups` is the result. Values in `results` must be stored. Values in
    `apart` must be stored by other groups than read them."""

    def __init__(
        self,
        nodes: Sequence[Node],
        operands: dict[Node, list[Value]],
        numerics: str,
        results: set[Value],
        apart: set[Value],
        inside: bool = False,
    ):
        self.nodes, self.numerics, self.results = nodes, numerics, set(results | apart)
        self.apart = set(apart)
        self.inside = inside
        self.operands = operands  # of products, views folded in
        self.groups: dict[Group, None] = {}
        self.readers: dict[Value, dict[Group, None]] = {}
        self.reads: dict[Group, dict[Value, None]] = {}  # group -> values it reads
        self.scalars: list[Group] = []  # the last ones whose loops are over one element
        self.unsorted: list[Group] = []  # new groups, whose loops were not looked at
        self.made = 0
        self.open: dict[Hashable, list[Group]] = {}  # that take more reductions, by their loops
        self.kinds = {node: kind_of(node, numerics) for node in nodes}
        self.users = _users(nodes)
        self.cost: dict[Value, int] = {}
        self.leaves: dict[Value, frozenset[Value]] = {}
        self.written: dict[Value, int] = {}
        for node in nodes:
            self._estimate(node)

    def run(self) -> list[Group]:
        for position in reversed(range(len(self.nodes))):
            node = self.nodes[position]
            read = any(v in self.results or v in self.readers for v in node.outputs)
            if read or node.effect:
                getattr(self, "_place_" + self.kinds[node])(node, position)
        self._merge_scalars()
        self._merge_readers()
        return in_order(list(self.groups), lambda group: group.position)

    # -- estimates -----------------------------------------------------------------------------
    def _estimate(self, node: Node) -> None:
        leaf = self.kinds[node] != "element"
        cost, leaves = operations(node), frozenset[Value]()
        for x in node.operand_values():
            cost += self.cost.get(x, 0 if is_one(count(x)) else 1)
            leaves |= self.leaves.get(x, frozenset() if is_one(count(x)) else frozenset([x]))
        for v in node.outputs:
            single = is_one(count(v))
            # An operand counts at each use, so costs could double with each op: hence the bound.
            self.cost[v] = (0 if single else 1) if leaf else min(cost, 1000)
            self.leaves[v] = frozenset() if single else frozenset([v]) if leaf else leaves
        if not leaf:
            self.written[node.outputs[0]] = self._bounded_text(node)

    def _bounded_text(self, node: Node) -> int:
        """Return about how often an operand's text occurs in that of the node's output.

        A branch computes what it needs for itself. So parts put into a whole again and again double
        the text each time. Another kernel stores an operand before that grows long.
        """
        branches = node.op.kind == "movement" and not node.op.views
        times = 1 + branches
        for x in node.operand_values():
            if branches and self.written.get(x, 1) > REPEATED:
                self.results.add(x)
                self.apart.add(x)
                self.written[x] = 1
            times += self.written.get(x, 1) - 1
        return times

    def _worth_repeating(self, v: Value) -> bool:
        if is_one(count(v)) or self.cost[v] <= CHEAP:
            return True
        if self.inside:  # its memory is near: that of one iteration
            return False
        size = typical(count(v))
        large = [x for x in self.leaves[v] if 4 * typical(count(x)) > size]
        return self.cost[v] <= WORTH_REPEATING and len(large) <= 1

    # -- placing -------------------------------------------------------------------------------
    def _new(self, kind: str, position: int, node: Node | None = None) -> Group:
        group = Group(kind, position, node, rank=-self.made)
        self.made += 1
        self.groups[group] = None
        self.unsorted.append(group)
        return group

    def _read(self, values: Iterable[Value], group: Group) -> None:
        known = self.reads.setdefault(group, {})
        for v in values:
            self.readers.setdefault(v, {})[group] = None
            known[v] = None

    def _link(self, v: Value, group: Group) -> None:
        for reader in self.readers.get(v, ()):
            link(group, reader)

    def _store(self, v: Value, group: Group) -> None:
        group.members.add(v)
        group.stores.append(v)
        self._link(v, group)

    def _place_host(self, node: Node, position: int) -> None:
        self._call("host", node, position, node.operand_values())

    def _place_library(self, node: Node, position: int) -> None:
        self._call("library", node, position, node.operand_values())

    def _place_product(self, node: Node, position: int) -> None:
        self._call("product", node, position, self.operands[node])

    def _call(self, kind: str, node: Node, position: int, operands: Iterable[Value]) -> None:
        group = self._new(kind, position, node)
        group.operands = list(operands)
        for v in node.outputs:
            self._store(v, group)
        self._read(group.operands, group)

    def _place_element(self, node: Node, position: int) -> None:
        v = node.outputs[0]
        readers = list(self.readers.get(v, []))
        # Calls read memory.
        calls = any(r.kind in ("host", "library", "product") for r in readers)
        if not calls and v not in self.results:
            homes = self._inline(v, readers)
            if homes is not None:
                for group in homes:
                    group.members.add(v)
                    self._read(node.operand_values(), group)
                return
            readers = list(self.readers[v])  # some may have been merged
        home = self._home(v, node, readers, lambda g: fits(v, g))
        if home is None:
            home = self._new("loop", position)
        admit(v, home)
        self._store(v, home)
        self._read(node.operand_values(), home)

    def _inline(self, v: Value, readers: list[Group]) -> list[Group] | None:
        """Return the groups that compute `v` for themselves; None if it must be stored."""
        full = any(len(r.members) >= MEMBERS_CAP for r in readers)
        if full and not is_one(count(v)):
            return None
        if len(readers) > 1 and not self._cheap(v):
            readers = self._merged(readers)
        if len(readers) > 1 and not self._worth_repeating(v):
            return None
        return readers if all(self._no_blow_up(v, r) for r in readers) else None

    def _cheap(self, v: Value) -> bool:
        return is_one(count(v)) or self.cost[v] <= CHEAP

    def _no_blow_up(self, v: Value, group: Group) -> bool:
        """Return True if the group's loops compute each element of `v` about once."""
        if self._cheap(v):
            return True
        numel = count(v)
        if any(same_size(numel, d) for d in group.domains):
            return True
        if any(prefix_length(s, numel) is not None for s in group.stores):
            return True
        return self._lies_once(v, group)

    def _lies_once(self, v: Value, group: Group) -> bool:
        """Return True if each element of `v` lies at few places of wholes that the group computes,
        which are not much larger."""
        users = self.users[v]
        if self.cost[v] > LIGHT or len(users) > 1 and not self._worth_repeating(v):
            return False
        numel = typical(count(v))
        for node in users:
            whole = node.outputs[0]
            if whole not in group.members:
                continue  # of another group
            around = node.op.embeds and typical(count(whole)) <= 2 * numel
            if not around and not same_size(count(whole), count(v)):
                return False
            if self.kinds[node] != "element" or not self._no_blow_up(whole, group):
                return False
        return True

    def _home(self, v: Value, node: Node, readers: list[Group], accepts: Any) -> Group | None:
        """Return a group that can store `v` without waiting for a group that needs it, or None."""
        candidates = dict.fromkeys(r for r in readers if r.kind == "loop")
        # A group that reads the same tensors then reads them once for both.
        for x in self._inlined_operands(node):
            if not is_one(count(x)):
                candidates.update(dict.fromkeys(list(self.readers.get(x, ()))[-NEAR:]))
        if is_one(count(v)):
            candidates.update(dict.fromkeys(self._scalar_groups()))
        if v in self.apart:
            candidates = {g: None for g in candidates if g not in readers}
        for group in _earliest(candidates):
            others = [r for r in readers if r is not group]
            if not self._delays(group, others) and not reaches(others, [group]):
                if accepts(group):
                    return group
        return None

    def _scalar_groups(self) -> list[Group]:
        """Return groups with loops over one element, as far as they are near in the program."""
        known = [g for g in (*self.scalars, *self.unsorted) if g in self.groups and _is_scalar(g)]
        self.scalars = known[-NEAR:]
        self.unsorted.clear()
        return self.scalars

    @staticmethod
    def _delays(group: Group, others: list[Group]) -> bool:
        """Return True if loops over one element would wait for what large ones need."""
        if not _is_scalar(group):
            return False
        left = [r for r in others if r not in group.after and not _is_scalar(r)]
        return len(left) > NEAR or any(not reaches([group], [r]) for r in left)

    def _inlined_operands(self, node: Node) -> list[Value]:
        """Return values that feed the node, through a few elementwise ops."""
        found = dict.fromkeys(node.operand_values())
        waiting = list(found)
        while waiting and len(found) < 12:
            x = waiting.pop(0)
            if x.node is not None and self.kinds.get(x.node) == "element":
                new = [y for y in x.node.operand_values() if y not in found]
                found.update(dict.fromkeys(new))
                waiting += new
        return list(found)

    # -- reductions ----------------------------------------------------------------------------
    def _place_row(self, node: Node, position: int) -> None:
        v, operand = node.outputs[0], node.inputs[0]
        shape = [resolved(s) for s in operand.shape]
        dims = node.attributes["dims"]
        rows = product([s for d, s in enumerate(shape) if d not in dims])
        inner = product([shape[d] for d in dims])
        dense = [d for d, s in enumerate(shape) if not is_one(s)]
        kept = [d for d in dense if d not in dims]
        self._place_rows(node, position, rows, inner, dense[: len(kept)] == kept, v)

    def _place_rows(
        self, node: Node, position: int, rows: Any, inner: Any, prefix: bool, v: Value
    ) -> Group:
        readers = list(self.readers.get(v, []))
        stored = v in self.results or any(r.kind != "loop" for r in readers)
        if not stored and len(readers) > 1:
            readers = self._merged(readers)
        if not stored and len(readers) == 1 and take_rows(readers[0], rows, inner, prefix):
            group = readers[0]
            group.members.add(v)
        else:
            found = self._home(v, node, readers, lambda g: take_rows(g, rows, inner, prefix))
            if found is None:
                found = self._new("loop", position)
                found.rows = rows
            group = found
            self._store(v, group)
        group.domains.append(rows * inner)
        if v not in group.finals:
            self._read(node.operand_values(), group)
        return group

    def _place_column(self, node: Node, position: int) -> None:
        v, key = node.outputs[0], key_of_columns(node)
        home = self._open(key, list(self.readers.get(v, ())))
        if home is None:
            home = self._new("column", position, node)
            home.column_key = key
            self.open.setdefault(key, []).append(home)
            home.domains.append(product(column_extents(node)))
        self._store(v, home)
        self._read(node.operand_values(), home)

    def _open(self, key: Hashable, readers: list[Group]) -> Group | None:
        """Return a group with these loops that takes one more reduction and waits for no reader, or
        None."""
        known = self.open.get(key, [])
        known[:] = [g for g in known if not is_full(g)][-NEAR:]
        return next((g for g in known if not reaches(readers, [g])), None)

    def _place_scatter(self, node: Node, position: int) -> None:
        group = self._new("scatter", position, node)
        v, source = node.outputs[0], node.op.scatter.source  # type: ignore[union-attr]
        group.domains += [count(v), count(node.inputs[source])]
        self._store(v, group)
        self._read(node.operand_values(), group)

    def _place_full(self, node: Node, position: int) -> None:
        v, operand = node.outputs[0], node.inputs[0]
        assert node.op.reduce is not None
        if node.op.reduce.position or self._of_rows(operand):
            if self._follows_reduction(operand):
                # In time: operands are placed later.
                self.results.add(operand)
            self._place_rows(node, position, 1, count(operand), True, v)
            return
        final = self._final(node, position)
        key = ("part", size_key(count(operand)))
        part = self._open(key, [final])
        if part is None:
            part = self._new("part", position, node)
            part.domains.append(count(operand))
            self.open.setdefault(key, []).append(part)
        part.members.add(v)
        part.stores.append(v)
        link(part, final)
        self._read(node.operand_values(), part)

    def _final(self, node: Node, position: int) -> Group:
        """Return the group of the second phase, which makes one element of the parts."""
        v = node.outputs[0]
        readers = list(self.readers.get(v, []))
        alone = v not in self.results and len(readers) == 1
        if alone and _is_scalar(readers[0]) and take_rows(readers[0], 1, 1, True):
            group = readers[0]
            group.members.add(v)
        else:
            found = self._home(
                v, node, readers, lambda g: _is_scalar(g) and take_rows(g, 1, 1, True)
            )
            if found is None:
                found = self._new("loop", position)
                found.rows = 1
            group = found
            self._store(v, group)
        group.finals.add(v)
        return group

    def _of_rows(self, operand: Value) -> bool:
        """Return True if one phase is enough: few elements, or one for each row of something
        larger.

        The first call's size is no reason: the kernel serves every size.
        """
        numel = count(operand)
        if type(numel) is int and numel <= 1 << 14:
            return True
        return len(dense_shape(operand)) == 1 and self._follows_reduction(operand)

    def _follows_reduction(self, operand: Value) -> bool:
        """Return True if `operand` is a row or column reduction, or elementwise ops lead from one
        to it."""
        stack = [operand]
        seen: set[Value] = set()
        while stack:
            x = stack.pop()
            if x.node is None or x in seen or len(seen) > 40:
                continue
            seen.add(x)
            kind = self.kinds.get(x.node, "host")
            if kind in ("row", "column"):
                return True
            if kind == "element":
                stack.extend(x.node.operand_values())
        return False

    # -- merging -------------------------------------------------------------------------------
    def _merged(self, readers: list[Group], alike: bool = False) -> list[Group]:
        """Merge readers that can be merged and return those left; `alike`: only if they index
        alike."""
        left = dict.fromkeys(readers)
        apart: set[tuple[Group, Group]] = set()  # since the last two were merged
        for k, a in enumerate(readers):
            for b in readers if len(readers) <= NEAR else readers[k + 1 : k + NEAR]:
                if a not in left or b not in left or a is b or alike and not index_alike(a, b):
                    continue
                if (b, a) not in apart and can_merge(a, b) and not self._stay_apart(a, b):
                    self._merge(a, b)
                    del left[b]
                    apart.clear()
                else:
                    apart.add((a, b))
        return list(left)

    def _stay_apart(self, a: Group, b: Group) -> bool:
        """Return True if one reads a value of the other that its own loops would compute again and
        again."""
        return any(
            v in self.apart and reader in self.readers.get(v, ())
            for group, reader in ((a, b), (b, a))
            for v in group.stores
        )

    def _merge(self, a: Group, b: Group) -> None:
        merge(a, b)
        del self.groups[b]
        for v in self.reads.pop(b, ()):
            known = self.readers[v]
            # `_merged` tries readers in their order, so it is kept; for many that takes too long.
            if a in known or len(known) > NEAR:
                del known[b]
                known[a] = None
            else:
                self.readers[v] = {a if g is b else g: None for g in known}
            self.reads.setdefault(a, {})[v] = None

    def _merge_scalars(self) -> None:
        scalars = [g for g in self.groups if _is_scalar(g)]
        self._merged(scalars)

    def _merge_readers(self) -> None:
        for v in list(self.readers):
            if not is_one(count(v)) and len(self.readers[v]) > 1:
                self._merged([r for r in self.readers[v] if r.kind == "loop"], alike=True)


def _earliest(candidates: dict[Group, None]) -> list[Group]:
    """Return the candidates; of many, those that others are likely to depend on."""
    found = list(candidates)
    return found if len(found) <= NEAR else heapq.nsmallest(NEAR, found, key=lambda g: g.rank)


def _is_scalar(group: Group) -> bool:
    """Return True if the group's loops are over one element."""
    if group.kind != "loop":
        return False
    return (group.numel is None or is_one(group.numel)) and (
        group.rows is None or is_one(group.rows)
    )


def typical(size: SizeLike) -> int:
    """Return a size with 1000 for each symbol: kernels must not depend on the sizes of the first
    call."""
    try:
        return evaluate(size, defaultdict(lambda: 1000))
    except ZeroDivisionError:
        return 1000


def _users(nodes: Sequence[Node]) -> dict[Value, list[Node]]:
    found: dict[Value, list[Node]] = defaultdict(list)
    for node in nodes:
        for x in dict.fromkeys(node.operand_values()):
            found[x].append(node)
    return found


def operations(node: Node) -> int:
    """Return the arithmetic for one element, in additions, about."""
    op = node.op
    if op.kind == "random":
        return 50
    if op.scalar is None:
        return 0
    functions = _FUNCTION.findall(op.scalar.replace("{dtype}", ""))
    return 1 + sum(12 for f in functions if f not in _LIGHT) + 3 * op.scalar.count("/")
