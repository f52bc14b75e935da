"""Add up products of all iterations after their loop: as one product.

In: a Graph. Out: the same Graph, where running sums of products have left the loops. Called by the
pipeline, for `numerics="fast"` alone: the order of additions changes. A loop's gradient is full of
such sums, one for each weight that its iterations multiply by.

    before                                      after
    %s, %g = for_loop(%zeros, %g0, %xs) {       %g, %ds = for_loop(%g0, %xs) {
        in: sum, g, x                               in: g, x
        %0 = ... g, x ...                           %0 = ... g, x ...
        %1 = matmul(permute(x), %0)                 return %0, %0
        %2 = add(sum, %1)                       }
        return %2, %0                           %1 = reshape(%xs, (T * N, K))
    }                                           %2 = reshape(%ds, (T * N, M))
                                                %s = matmul(permute(%1), %2)

The matrices of all iterations form one: they stand side by side along what the product adds over.

A sum leaves its loop if all this holds:

* The body reads it only to add to it, and does so in each iteration. Where a flag decides about it,
  the flag is known to be true each time.
* What is added consists of products of two matrices, their sums and views, which nothing else
  reads. A sum over rows leaves with a product that needs the same rows, as a bias does.
* Both matrices vary. An operand that the loop does not keep in any case is kept now, one row for
  each iteration. It has the shape of rows that the loop reads or keeps already. There is at most
  one such for each of these: so the memory of rows at most doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tracejit.core.ops.movement import permute, reshape
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import float32, float64
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_sizes
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.fold import constant
from tracejit.jit.passes.loop_flags import settle_choices

_VIEWS = ("permute", "reshape", "unsqueeze", "squeeze")


def after_loops(graph: Graph, numerics: str = "fast") -> Graph:
    """Move sums of products behind their loops."""
    for node in [n for n in graph.nodes if n.op.name == "for_loop"] * (numerics == "fast"):
        settle_choices(node)
        dce(node.regions[0])  # so that no dead node reads what may leave
        _Sums(graph, node).move()
    return graph


class _Sum(NamedTuple):
    """Running sum: its number among the carried values, and what each iteration adds."""

    number: int
    added: Value


class _Sums:
    """Running sums of one loop."""

    def __init__(self, graph: Graph, node: Node):
        self.graph, self.node, self.body = graph, node, node.regions[0]
        self.carried = node.attributes["carried"]
        self.rows = self.carried + node.attributes["scanned"]
        self.items = self.body.inputs[1 + self.carried : 1 + self.rows]
        self.users = self.body.users()
        self.kept: dict[Value, None] = {}  # what the loop keeps a row of for these sums
        self.results = set(self.body.outputs)
        self.varying = self._varying()

    def _varying(self) -> set[Value]:
        """Return what may differ between iterations."""
        found = set(self.body.inputs[: 1 + self.rows])
        for inner in self.body.nodes:
            if inner.regions or not found.isdisjoint(inner.operand_values()):
                found.update(inner.outputs)
        return found

    def move(self) -> None:
        """Move the sums that may leave, with those over rows that they need."""
        candidates = [s for k in range(self.carried) if (s := self._running_sum(k)) is not None]
        moved = [s for s in candidates if self._leaves(s.added, self._keeps)]
        if moved:
            needed = set(self.kept)
            moved += [s for s in candidates
                      if s not in moved and self._leaves(s.added, needed.__contains__)]
            self._write(moved)

    # -- which -----------------------------------------------------------------------------------
    def _running_sum(self, number: int) -> _Sum | None:
        """Return the carried value if the body does no more than add to it."""
        before, end = self.body.inputs[1 + number], self.body.outputs[number]
        alone = sum(x is end for x in self.body.outputs) == 1
        if before.dtype not in (float32, float64) or not alone:
            return None
        readers = set(self.users.get(before, ()))
        add = end.node
        if add is None or add.op.name != "add" or len(add.inputs) != 2 or readers != {add}:
            return None
        added = [x for x in add.inputs if x is not before]
        if len(added) != 1 or not isinstance(added[0], Value) or before in self.results:
            return None
        if self.users.get(end) or not same_sizes(added[0].shape, before.shape):
            return None
        return _Sum(number, added[0])

    def _leaves(self, value: Value, keeps: Callable[[Value], bool]) -> bool:
        """Return True if a value need not be computed in the loop. `keeps`: which rows there are,
        or will be."""
        node = value.node
        if node is None or value in self.results or len(self.users[value]) != 1:
            return False
        if node.op.name in _VIEWS:
            return self._leaves(node.inputs[0], keeps)
        if node.op.name == "add" and len(node.inputs) == 2:
            return all(isinstance(x, Value) and same_sizes(x.shape, value.shape)
                       and self._leaves(x, keeps) for x in node.inputs)
        if node.op.name == "sum" and keeps != self._keeps:
            return keeps(self._seen(node.inputs[0]))
        if node.op.name != "matmul" or value.ndim != 2 or not self.varying.issuperset(node.inputs):
            return False
        found = [self._seen(x) for x in node.inputs]
        before = dict(self.kept)
        if all(keeps(x) for x in found):
            return True
        self.kept = before
        return False

    def _seen(self, value: Value) -> Value:
        """Return the value to keep, in which this one is seen: a row, or what was turned."""
        while value.node is not None and value.node.op.name == "permute":
            value = value.node.inputs[0]
        source = value
        while source.node is not None and source.node.op.name in _VIEWS:
            source = source.node.inputs[0]
        return source if self._row(source) is not None else value

    def _row(self, value: Value) -> Value | None:
        """Return the rows of all iterations that a value of the body is one of, if there are
        any."""
        inside = (*self.items, *self.body.outputs[self.carried :])
        outside = (*self.node.inputs[self.carried : self.rows], *self.node.outputs[self.carried :])
        return next((y for x, y in zip(inside, outside) if x is value), None)

    def _keeps(self, value: Value) -> bool:
        """Return True if a row of the value may be kept for each iteration, and note that it is."""
        rows = {x for x in (*self.items, *self.body.outputs[self.carried :])
                if same_sizes(x.shape, value.shape)}
        new = [x for x in self.kept if x not in rows and same_sizes(x.shape, value.shape)]
        if value not in rows and value not in self.kept and len(new) >= len(rows):
            return False
        self.kept[value] = None
        return True

    # -- change ----------------------------------------------------------------------------------
    def _write(self, moved: list[_Sum]) -> None:
        with self.graph.inserting("after_loops: from a loop's body", like=self.node) as made:
            ends = {}
            for s in moved:
                end, start = self._after(s.added), self.node.inputs[s.number]
                zero = constant(start) == 0
                ends[self.node.outputs[s.number]] = end if zero else REGISTRY["add"](start, end)
        at = self.graph.nodes.index(self.node) + 1
        self.graph.substitute(ends)
        self.graph.nodes[at:at] = made

    def _after(self, value: Value) -> Value:
        """Return the sum of a value over all iterations."""
        node = value.node
        assert node is not None
        self.graph.location = node.location
        if node.op.name in _VIEWS:
            source = node.inputs[0].node
            if node.op.name == "permute" and source is not None and source.op.name == "matmul":
                if tuple(node.attributes["dims"]) == (1, 0):
                    return self._product(source, turned=True)
            return self.graph.append(node.op, (self._after(node.inputs[0]),), node.attributes)
        if node.op.name == "add":
            return self.graph.append(node.op, [self._after(x) for x in node.inputs], {})
        if node.op.name == "sum":
            dims = (0, *(d + 1 for d in node.attributes["dims"]))
            found = self.graph.append(node.op, (self._all(node.inputs[0]),),
                                      {**node.attributes, "dims": dims, "keepdim": False})
            return reshape(found, shape=value.shape)
        return self._product(node)

    def _product(self, node: Node, turned: bool = False) -> Value:
        """Return the sum of a product over all iterations, or its transpose."""
        left, right = node.inputs
        trips = self.node.attributes["trip_count"]
        (m, k), n = left.shape, right.shape[1]
        # Of the left matrices, columns of all iterations stand side by side.
        left = reshape(permute(self._all(left), (0, 2, 1)), (trips * k, m))
        right = reshape(self._all(right), (trips * k, n))
        first, second = (right, left) if turned else (left, right)
        return self.graph.append(node.op, (permute(first, (1, 0)), second), node.attributes)

    def _all(self, value: Value) -> Value:
        """Return the value of all iterations, along a new first dimension."""
        node, trips = value.node, self.node.attributes["trip_count"]
        known = self._row(value)
        if known is not None:
            return known
        if node is not None and node.op.name == "permute":
            dims = (0, *(d + 1 for d in node.attributes["dims"]))
            return permute(self._all(node.inputs[0]), dims)
        if node is not None and self._seen(value) is not value:
            return reshape(self._all(node.inputs[0]), (trips, *value.shape))
        kind = value.type._replace(shape=(trips, *value.shape))
        made = Value(self.graph, kind, self.node, len(self.node.outputs))
        self.body.outputs.append(value)
        self.node.outputs = (*self.node.outputs, made)
        return made
