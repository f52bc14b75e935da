"""Graph: values, nodes, inputs, outputs. Capture and autodiff build it, passes rewrite it, lowering
reads it.

In: ops applied to `Value`s. A Value has the operators and methods of a Tensor, and calling an op on
it appends a node at the insertion point. Out: a list of nodes in execution order. Graphs are pure:
mutation has been turned into new values. `Graph.writes` says which inputs' storage receives which
value when the program has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracejit.core.ops.operators import Operators
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType, dtype, require_cpu
from tracejit.jit.ir.sizes import ShapeEnv

MOST_DIMENSIONS = 64  # of an array of NumPy's


class Location(NamedTuple):
    """Line of the user's program.

    module  the name of the module whose method it was reached through, where that was asked for
    """

    file: str
    line: int
    text: str
    function: str = ""
    module: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Value(Operators):
    """Tensor of a graph: the output of a node, or an input (`node` is None)."""

    __slots__ = ("graph", "node", "index", "type", "name", "is_weak", "contiguous", "source",
                 "extents")

    def __init__(self, graph: Graph, type: TensorType, node: Node | None = None, index: int = 0):
        self.graph, self.type, self.node, self.index = graph, type, node, index
        self.name = ""
        self.is_weak = False  # a Python number made a runtime input
        # Inputs only: False means strides are runtime sizes, see Graph.strides ...
        self.contiguous = True
        self.source = ""  # ... and where the caller's value comes from: "x" or "self.weight"
        self.extents: Any = None  # what lowering has worked out about the shape

    @property
    def dtype(self) -> dtype:
        return self.type.dtype

    @property
    def shape(self) -> tuple:
        return self.type.shape

    @property
    def device(self) -> Any:
        return self.type.device

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @staticmethod
    def dispatch(op: Op, operands: tuple, attributes: dict) -> Any:
        graph = next(x.graph for x in operands if isinstance(x, Value))
        return graph.append(op, operands, attributes)

    def __repr__(self) -> str:
        return f"%{self.name or id(self)}"


@dataclass(eq=False)
class Node:
    """Application of an op. `inputs` are Values, numbers or None; `attributes` are static data or
    sizes."""

    op: Op
    inputs: tuple
    attributes: dict[str, Any]
    outputs: tuple[Value, ...] = ()
    location: Location | None = None
    detached: bool = False  # recorded under no_grad: gradients do not flow through
    provenance: str = ""  # which pass made it, from what
    regions: tuple[Graph, ...] = ()

    @property
    def may_fail(self) -> bool:
        """Return True if it raises for some values, itself or in a region."""
        inner = (node for region in self.regions for node in region.nodes)
        return bool(getattr(self.op, "may_fail", False)) or any(n.may_fail for n in inner)

    @property
    def effect(self) -> bool:
        """Return True if it acts on more than its results: other processes wait for it."""
        return bool(getattr(self.op, "effect", False))

    @property
    def stays(self) -> bool:
        """Return True if the node is kept though nobody reads its results."""
        return self.effect or self.may_fail

    def operand_values(self) -> Iterator[Value]:
        return (x for x in self.inputs if isinstance(x, Value))


@dataclass(eq=False)
class Graph:
    """Program over tensors.

    inputs   Values in calling order
    nodes    in execution order
    outputs  Values (an input may be returned)
    writes   (input, value): after the run, the storage behind `input` holds `value`
    strides  strides (in elements, sizes) of inputs that are not contiguous
    symbol_sources  symbol -> ("size" | "stride", input number, dimension): how a call binds it;
                    ("number", input number, 0): it is that input
    scope    symbols, example values, guards on sizes
    """

    name: str = "graph"
    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    writes: list[tuple[Value, Value]] = field(default_factory=list)
    strides: dict[Value, tuple] = field(default_factory=dict)
    symbol_sources: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    scope: ShapeEnv = field(default_factory=ShapeEnv)
    location: Location | None = None  # given to nodes appended from now on
    detached: bool = False  # likewise
    provenance: str = ""  # likewise
    _insert: list[Node] | None = None

    def input(self, type: TensorType, source: str = "", contiguous: bool = True,
              strides: Sequence[Any] = ()) -> Value:
        value = Value(self, type)
        value.source, value.contiguous = source, contiguous
        if not contiguous:
            self.strides[value] = tuple(strides)
        self.inputs.append(value)
        return value

    def append(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any],
               regions: Sequence[Graph] = ()) -> Any:
        """Add a node; returns its output Value, or a tuple where the op has several outputs.

        regions  the graphs that the op calls, over the same scope; they belong to the node
        """
        given = {"regions": tuple(regions)} if regions else {}
        types = op.infer(*operands, **attributes, **given)
        several = not isinstance(types, TensorType)
        types = types if several else (types,)
        for t in types:
            if len(t.shape) > MOST_DIMENSIONS:  # in the words of eager mode, which are NumPy's
                raise ValueError("maximum supported dimension for an ndarray is currently "
                                 f"{MOST_DIMENSIONS}, found {len(t.shape)}")
            if t.dtype.is_complex:
                require_cpu(t.device)
        node = Node(op, tuple(operands), dict(attributes), location=self.location,
                    detached=self.detached, provenance=self.provenance, regions=tuple(regions))
        node.outputs = tuple(Value(self, t, node, i) for i, t in enumerate(types))
        self.add(node)
        return node.outputs if several else node.outputs[0]

    def add(self, node: Node) -> None:
        """Put a node whose outputs are values of this graph at the insertion point."""
        (self.nodes if self._insert is None else self._insert).append(node)

    @contextmanager
    def inserting(self, provenance: str = "", like: Node | None = None) -> Iterator[list[Node]]:
        """Collect appended nodes in a list instead of at the end; the caller splices them in."""
        saved = (self._insert, self.provenance, self.location, self.detached)
        collected: list[Node] = []
        self._insert, self.provenance = collected, provenance
        if like is not None:
            self.location, self.detached = like.location, like.detached
        try:
            yield collected
        finally:
            self._insert, self.provenance, self.location, self.detached = saved

    def substitute(self, replaced: dict[Value, Any]) -> None:
        """Replace uses of values (transitively) in nodes, outputs and writes."""
        def now(x: Any) -> Any:
            while isinstance(x, Value) and x in replaced:
                x = replaced[x]
            return x

        for node in self.nodes:
            node.inputs = tuple(now(x) for x in node.inputs)
        self.outputs = [now(v) for v in self.outputs]
        self.writes = [(i, now(v)) for i, v in self.writes]

    def users(self) -> dict[Value, list[Node]]:
        """Nodes that read each value, in order."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.operand_values()):
                found.setdefault(value, []).append(node)
        return found

    def results(self) -> list[Value]:
        """Return everything that must exist after the run: outputs and written values."""
        return list(self.outputs) + [v for _, v in self.writes]

    def number(self) -> None:
        """Give every value its printed name, in order."""
        for i, value in enumerate(self.inputs):
            value.name = f"in{i}"
        counter = 0
        for node in self.nodes:
            for value in node.outputs:
                value.name, counter = str(counter), counter + 1

    def __str__(self) -> str:
        from tracejit.jit.ir.printer import print_graph

        return print_graph(self)


def size_names(graph: Graph) -> dict[str, str]:
    """Return a printed name for each size symbol: `x.shape[0]`."""
    found = {}
    for symbol, (kind, number, dimension) in graph.symbol_sources.items():
        source = graph.inputs[number].source
        source = source if source and " " not in source else f"in{number}"
        title = {"size": "shape", "stride": "stride()"}.get(kind, kind)
        found[symbol] = source if kind == "number" else f"{source}.{title}[{dimension}]"
    return found


def with_size_names(sizes: Any, names: Mapping[str, str]) -> str:
    """Return the text of a size or a guard, with the names of its symbols.

    >>> with_size_names("s0_0 + 1", {"s0_0": "x.shape[0]"})
    'x.shape[0] + 1'
    """
    return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), str(sizes))
