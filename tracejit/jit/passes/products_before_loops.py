"""Multiply before a loop what needs no other iteration: the rows of all iterations in one product.

In: a Graph. Out: the same Graph, where products of rows with what all iterations read have left the
loops. Called by the pipeline, for `numerics="fast"` alone: a product of more rows may add in
another order.

    before                                      after
    %h, %k = for_loop(%h0, %xs, %w, %u) {       %0 = reshape(%xs, (T * N, K))
        in: h, x, w, u                          %1 = matmul(%0, permute(%w))
        %0 = matmul(x, permute(w))              %k = reshape(%1, (T, N, M))
        %1 = matmul(h, permute(u))              %2 = clone(permute(%u))
        ... %0, %1 ...                          %h = for_loop(%h0, %k, %2) {
        return %2, %0                               in: h, k, u
    }                                               %1 = matmul(h, u)
                                                    ... k, %1 ...
                                                    return %2
                                                }

A product leaves its loop only if it, or a sum made of it, is kept for all iterations anyway, as a
loop that gets a gradient does: then nothing more is kept. A matrix that stays in the loop's
products is turned once, before the loop: BLAS would turn it in each iteration.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.movement import reshape
from tracejit.core.ops.types import float32, float64
from tracejit.jit.ir.graph import Graph, Node, Value

_TYPES = (float32, float64)


def products_before_loops(graph: Graph, numerics: str = "fast") -> Graph:
    """Move products and turned matrices that need no other iteration before their loops."""
    for node in [n for n in graph.nodes if n.op.name == "for_loop"] * (numerics == "fast"):
        _Loop(graph, node).move()
    return graph


class _Loop:
    """Loop, and what of its body is known before it."""

    def __init__(self, graph: Graph, node: Node):
        self.graph, self.node, self.body = graph, node, node.regions[0]
        self.carried = node.attributes["carried"]
        self.beside = self.carried + node.attributes["scanned"]
        operands = zip(self.body.inputs[1 + self.carried :], node.inputs[self.carried :])
        self.outer: dict[Value, Any] = dict(operands)  # value of the body -> that of all iterations
        self.rows = set(self.body.inputs[1 + self.carried : 1 + self.beside])
        self.same = set(self.body.inputs[1 + self.beside :])
        self.made: list[Node] = []

    def move(self) -> None:
        """Move what may be moved, and drop outputs that are rows known before the loop."""
        moved = self._moved()
        with self.graph.inserting("products: from a loop's body", like=self.node) as made:
            turned = self._turned(moved)
            for inner in self.body.nodes:
                if inner in moved:
                    self.graph.location = inner.location
                    self.outer[inner.outputs[0]] = self._of_all(inner)
        if not made:
            return
        at = self.graph.nodes.index(self.node)
        self.graph.nodes[at:at] = made
        self.body.nodes = [x for x in self.body.nodes if x not in moved]
        self._read([x.outputs[0] for x in self.body.nodes if x in turned], "captured")
        left = {x for inner in self.body.nodes for x in inner.operand_values()}
        left.update(self.body.outputs)
        self._read([x.outputs[0] for x in moved if x.outputs[0] in left], "row")
        self._rows_as_results()

    # -- which -----------------------------------------------------------------------------------
    def _moved(self) -> dict[Node, None]:
        """Return the nodes to move, in order: products whose rows the loop keeps, and sums of
        these."""
        able: dict[Value, Node] = {}
        turned: dict[Value, Node] = {}
        for inner in self.body.nodes:
            if len(inner.outputs) != 1 or inner.stays or inner.regions:
                continue
            (end,) = inner.outputs
            if inner.op.kind == "movement" and self.same.issuperset(inner.operand_values()):
                turned[end] = inner
                self.same.add(end)
            elif self._is_product_of_rows(inner) or self._is_sum_of_rows(inner, able):
                able[end] = inner
        wanted: set[Node] = set()
        for end in self.body.outputs[self.carried :]:
            wanted |= self._needed(end, able, turned)
        return {inner: None for inner in self.body.nodes if inner in wanted}

    def _is_product_of_rows(self, inner: Node) -> bool:
        if inner.op.name != "matmul" or inner.outputs[0].dtype not in _TYPES:
            return False
        left, right = inner.inputs
        return left.ndim == 2 and left in self.rows and right in self.same

    def _is_sum_of_rows(self, inner: Node, able: dict[Value, Node]) -> bool:
        """Return True for a sum of products and what they may be added to, row by row."""
        end, operands = inner.outputs[0], list(inner.operand_values())
        return (
            inner.op.name == "add" and len(operands) == len(inner.inputs) and end.dtype in _TYPES
            and any(x in able for x in operands)
            and all(x.dtype is end.dtype and (x in self.same or x.ndim == end.ndim
                                              and (x in able or x in self.rows))
                    for x in operands)
        )  # fmt: skip

    def _needed(self, end: Value, able: dict[Value, Node], turned: dict[Value, Node]) -> set[Node]:
        """Return the nodes that a kept value needs; none if it needs the loop."""
        found: set[Node] = set()
        stack = [end] if end in able else []
        while stack:
            value = stack.pop()
            inner = able.get(value) or turned.get(value)
            if inner is not None and inner not in found:
                found.add(inner)
                stack.extend(inner.operand_values())
        return found

    def _turned(self, moved: dict[Node, None]) -> set[Node]:
        """Make turned copies of matrices that products in the loop read turned."""
        found: set[Node] = set()
        for inner in self.body.nodes:
            right = inner.inputs[1] if inner.op.name == "matmul" and inner not in moved else None
            turn = right.node if isinstance(right, Value) else None
            if (turn is not None and turn.op.name == "permute" and turn not in found
                    and turn.inputs[0] in self.outer and turn.inputs[0] in self.same
                    and right is not None and right.ndim == 2 and right.dtype in _TYPES):
                whole = self.graph.append(turn.op, (self.outer[turn.inputs[0]],), turn.attributes)
                self.outer[right] = pointwise.clone(whole)
                found.add(turn)
        return found

    # -- change ----------------------------------------------------------------------------------
    def _of_all(self, inner: Node) -> Value:
        """Compute what a node gives in all iterations."""
        operands = [self.outer[x] for x in inner.inputs]
        if inner.op.name != "matmul":
            return self.graph.append(inner.op, operands, inner.attributes)
        trips, (rows, columns) = self.node.attributes["trip_count"], inner.inputs[0].shape
        flat = reshape(operands[0], shape=(trips * rows, columns))
        product = self.graph.append(inner.op, (flat, operands[1]), inner.attributes)
        return reshape(product, shape=(trips, *inner.outputs[0].shape))

    def _read(self, values: list[Value], role: str) -> None:
        """Make values inputs of the body: rows, or what all iterations read."""
        inputs = {x: Value(self.body, x.type) for x in values}
        for x in inputs.values():
            x.source = role
        given = [self.outer[x] for x in values]
        at = self.beside if role == "row" else len(self.node.inputs)
        self.body.inputs[1 + at : 1 + at] = inputs.values()
        self.node.inputs = (*self.node.inputs[:at], *given, *self.node.inputs[at:])
        self.body.substitute(inputs)
        self.outer |= zip(inputs.values(), given, strict=True)
        if role == "row":
            scanned = self.node.attributes["scanned"] + len(values)
            self.node.attributes = {**self.node.attributes, "scanned": scanned}
            self.rows |= set(inputs.values())

    def _rows_as_results(self) -> None:
        """Read after the loop what was known before it."""
        ends = zip(self.node.outputs[self.carried :], self.body.outputs[self.carried :])
        self.graph.substitute({end: self.outer[x] for end, x in ends if x in self.rows})
