"""Library products: views of their operands become leading dimensions and transposes.

In: a graph's product nodes. Out: for each operand the stored value it reads and how, and copies
where no library can read it. Called by `lower.py`. To find the views that fold, an element is
emitted. The library can read the operand if that is one load, whose address is linear in the
matrix's row and column. One of the two steps must be 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SizeLike, size_max
from tracejit.jit.lowering.emit import Emission, Splits
from tracejit.jit.lowering.index import (
    Variable,
    contiguous_strides,
    is_one,
    product,
    resolved,
    same_size,
    unravelled,
)
from tracejit.jit.lowering.scalars import Scalar

materialize = Op(
    "materialize", "pointwise", ("input",), scalar="{input}",
    infer=lambda input: TensorType(input.dtype, tuple(input.shape), input.device),
    eager=lambda xp, input: input.copy(),
)  # fmt: skip


class Operand(NamedTuple):
    """Matrix, or a stack of them, inside the memory of `value`."""

    value: Value
    transposed: bool
    leading: SizeLike  # elements between rows (between columns if transposed)
    batch_step: SizeLike


@dataclass
class Folded:
    """Nodes to lower, and how each product reads its operands."""

    nodes: list[Node]
    operands: dict[Node, tuple[Operand, Operand]]

    def values(self) -> dict[Node, list[Value]]:
        return {node: [o.value for o in pair] for node, pair in self.operands.items()}


def fold_products(graph: Graph, is_product: Any) -> Folded:
    """Fold views into products. Operands that cannot be read in place get a copy in the node
    list."""
    nodes: list[Node] = []
    operands = {}
    for node in graph.nodes:
        if is_product(node):
            found = []
            for x in node.inputs:
                operand = _in_place(graph, x)
                if operand is None:
                    x = x if x.node is not None else copy_of(x, nodes, node)
                    operand = _contiguous(x)
                found.append(operand)
            operands[node] = (found[0], found[1])
        nodes.append(node)
    return Folded(nodes, operands)


def copy_of(value: Value, nodes: list[Node], like: Node | None = None) -> Value:
    """Return a new value, computed by a node of its own, with the elements of `value`."""
    node = Node(materialize, (value,), {}, location=like.location if like else None)
    node.outputs = (Value(value.graph, value.type, node, 0),)
    nodes.append(node)
    return node.outputs[0]


def _contiguous(value: Value) -> Operand:
    strides = contiguous_strides([resolved(s) for s in value.shape])
    return Operand(value, False, size_max(1, strides[-2]), strides[0] if value.ndim == 3 else 0)


def _in_place(graph: Graph, value: Value) -> Operand | None:
    """Return how a library reads the operand where it lies, through as many views as it can, or
    None."""
    views = _views(value)
    shape = [resolved(s) for s in value.shape]
    names = ("b", "i", "k")[3 - len(shape) :]
    variables = [Variable(n, s) for n, s in zip(names, shape)]
    for count in range(len(views), -1, -1):
        splits = Splits()
        index = [splits.index(v) for v in variables]
        scalar = Emission(graph, set(views[:count]), splits).value(value, index)
        found = _linear(scalar, variables) if scalar.kind == "load" else None
        if found is not None:
            return found
    return None


def _views(value: Value) -> list[Value]:
    """Return the value and the values it is a view of, as long as nothing is computed."""
    found: list[Value] = []
    while value.node is not None and value.node.op.kind == "movement" and value.node.op.element:
        operands = list(value.node.operand_values())
        if len(operands) != 1:
            break
        found.append(value)
        value = operands[0]
    return found


def viewed(graph: Graph, value: Value) -> Value:
    """Return the computed value whose memory, read in order, is `value`: itself, or the value it
    reshapes."""
    views = _views(value)
    if not views:
        return value
    flat = Variable("f", product([resolved(s) for s in value.shape]))
    splits = Splits()
    index = unravelled(splits.index(flat), [resolved(s) for s in value.shape])
    scalar = Emission(graph, set(views), splits).value(value, index)
    if scalar.kind != "load" or scalar.data[0].node is None:
        return value
    leaf, where = scalar.data
    same = same_size(product([resolved(s) for s in leaf.shape]), flat.extent)
    return leaf if same and where.key == splits.index(flat).key else value


def _linear(scalar: Scalar, variables: list[Variable]) -> Operand | None:
    leaf, index = scalar.data
    if not isinstance(leaf, Value) or leaf.dtype.name not in ("float32", "float64"):
        return None
    steps: dict[str, Any] = {}
    for atom, coefficient in index.terms.values():
        if not isinstance(atom, Variable):
            return None
        steps[atom.name] = coefficient
    batch = steps.get("b", 0)
    rows, columns = variables[-2], variables[-1]
    row, column = steps.get("i", 0), steps.get("k", 0)
    if same_size(column, 1) or is_one(columns.extent):
        return _operand(leaf, False, row, rows, columns, batch, index)
    if same_size(row, 1) or is_one(rows.extent):
        return _operand(leaf, True, column, columns, rows, batch, index)
    return None


def _operand(
    leaf: Value,
    transposed: bool,
    step: Any,
    lines: Variable,
    along: Variable,
    batch: Any,
    index: Any,
) -> Operand | None:
    if same_size(step, 0):
        # BLAS has no step of 0 between rows.
        if not is_one(lines.extent):
            return None
        step = along.extent
    elif type(step) is not int and leaf.node is None and not leaf.contiguous:
        return None  # strides known at run time only: they may be smaller than a row
    # Operands begin where their buffers do.
    if not same_size(index.constant, 0):
        return None
    return Operand(leaf, transposed, size_max(1, step), batch)


def library_sizes(node: Node, a: Operand, b: Operand) -> tuple[SizeLike, ...]:
    """Return MATMUL_SIZES of the call; the split is chosen when sizes are bound."""
    out = [resolved(s) for s in node.outputs[0].shape]
    m, n = out[-2:]
    stacked = len(out) == 3
    return (
        int(a.transposed),
        int(b.transposed),
        m,
        n,
        resolved(node.inputs[0].shape[-1]),
        a.leading,
        b.leading,
        size_max(1, n),
        out[0] if stacked else 1,
        a.batch_step,
        b.batch_step,
        m * n if stacked else 0,
        0,
    )
