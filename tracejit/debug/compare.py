"""Comparison of a captured function with eager execution, node by node.

In: a function and arguments. Out: a `Comparison`. For each node of the graph it has the largest
difference in ulp between the compiled value and what eager mode makes of the same operands, and
against a run of the whole graph in float64. It names the first bad node with the user's line, and
writes a stand-alone repro file on demand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit.core.ops.stacks import may_hold_handles
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Location, Value
from tracejit.jit.ir.interpret import as_array, interpret, run_arrays


@dataclass(frozen=True)
class NodeDifference:
    """Difference of one value of the graph, compiled and eager.

    max_ulp          to what eager mode makes of the same operands
    max_ulp_float64  to a run of the whole graph in float64: what all nodes so far differ by
    index            of the element that differs most; `compiled` and `eager` are its values
    """

    name: str
    op: str
    location: Location | None
    max_ulp: float
    max_ulp_float64: float
    index: tuple[int, ...]
    compiled: Any
    eager: Any

    def __str__(self) -> str:
        where = f"{self.location}  {self.location.text}" if self.location else ""
        return (
            f"%{self.name:<5} {self.op:<20} {self.max_ulp:>12.6g} ulp to eager "
            f"{self.max_ulp_float64:>12.6g} "
            f"to float64  {where}"
        )


@dataclass
class Comparison:
    """Differences of all nodes in order; `first_bad` is the first that exceeds `tolerance` ulp."""

    nodes: list[NodeDifference]
    tolerance: float
    graph: Graph
    inputs: list[Any] = field(repr=False, default_factory=list)

    @property
    def first_bad(self) -> NodeDifference | None:
        return next((n for n in self.nodes if n.max_ulp > self.tolerance), None)

    @property
    def max_ulp(self) -> float:
        return max((n.max_ulp for n in self.nodes), default=0.0)

    def __str__(self) -> str:
        lines = [str(n) for n in self.nodes]
        bad = self.first_bad
        if bad is None:
            lines.append(f"all {len(self.nodes)} nodes within {self.tolerance:g} ulp of eager")
        else:
            line = bad.location.text if bad.location else ""
            lines.append(
                f"first bad node: %{bad.name} {bad.op} at {list(bad.index)}: "
                f"compiled {bad.compiled!r}, eager {bad.eager!r}\n    {bad.location}  {line}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def write_repro(self, path: str) -> None:
        """Write a stand-alone program that runs the graph on these inputs, interpreted and
        compiled."""
        arrays = {f"in{k}": _elements(x) for k, x in enumerate(self.inputs)}
        values = ",\n    ".join(
            f"np.array({a.tolist()!r}, {str(a.dtype)!r}).reshape({a.shape})"
            for a in arrays.values()
        )
        with open(path, "w") as file:
            file.write(_REPRO.format(graph=str(self.graph), inputs=values))


_REPRO = '''"""Run a captured graph on inputs that showed a difference: interpreted and compiled."""

import numpy as np

from tracejit.debug.compare import compare_graph
from tracejit.jit.ir.parser import parse_graph

GRAPH = r"""{graph}"""

INPUTS = [
    {inputs},
]

print(compare_graph(parse_graph(GRAPH), INPUTS))
'''


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return units in the last place between two arrays (of b's dtype); NaN equals NaN.

    >>> ulp_distance(np.float32([1.0]), np.nextafter(np.float32([1.0]), np.float32(2)))
    array([1.])
    """
    if not np.issubdtype(b.dtype, np.floating):
        return (np.asarray(a) != np.asarray(b)).astype(np.float64)
    a64, b64 = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        # Near zero the unit is that of the smallest normal number: ulps of denormals say nothing.
        unit = np.spacing(np.maximum(np.abs(b), np.finfo(b.dtype).tiny)).astype(np.float64)
        distance = np.abs(a64 - b64) / unit
    same = (a64 == b64) | (np.isnan(a64) & np.isnan(b64))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def compare(
    fn: Callable[..., Any], *args: Any, tolerance: float = 16.0, **kwargs: Any
) -> Comparison:
    """Compare compiled with eager (and float64), node by node, on copies of the arguments.

    fn         a captured function, or any function (it is captured here)
    tolerance  units in the last place (ulp) above which a node counts as bad

    Each node is computed both ways from the same operands, so a node is not bad because one before
    it was. Parameters and tensors of closures are written once, as by a call. Raises CaptureError
    for a function that is not one graph.

    >>> import tracejit
    >>> result = tracejit.compare(lambda x: (x * 2).tanh(), tracejit.tensor([0.1, 0.2]))
    >>> result.first_bad is None
    True
    """
    from tracejit.jit import CompiledFunction, script

    compiled = fn if isinstance(fn, CompiledFunction) else script(fn)
    graph, inputs = compiled.graph_and_inputs(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    return compare_graph(graph, inputs, tolerance)


def compare_graph(graph: Graph, inputs: Sequence[Any], tolerance: float = 16.0) -> Comparison:
    """Compare each value of a graph, compiled and interpreted from the same operands."""
    from tracejit.jit.runtime.compiled_graph import CompiledGraph

    graph.number()
    values = [v for node in graph.nodes for v in node.outputs]
    arrays = [np.array(_elements(x), copy=True) for x in inputs]
    # All values are results of this graph, so the compiler keeps each of them.
    whole = extract(graph, graph.name, graph.inputs, values)
    exact = interpret(_widened(whole), [_wide(a) for a in arrays]).outputs
    segment = CompiledGraph(whole, "compiled", "fast")
    given = [_as_input(a, v) for a, v in zip(arrays, graph.inputs)]
    outputs = [t.array for t in segment.run(given, segment.bind(given))]
    eager = _node_by_node(whole, arrays, outputs)
    found = [_difference(v, c, e, x) for v, c, e, x in zip(values, outputs, eager, exact)]
    return Comparison(found, tolerance, graph, arrays)


def _node_by_node(graph: Graph, inputs: Sequence[np.ndarray],
                  compiled: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return what eager mode makes of each node where its operands have their compiled values.

    The graph returns all its values, and `compiled` has them. A handle of a stack belongs to the
    run that made it, so it is not replaced.
    """
    known = dict(zip(graph.outputs, compiled))
    found: dict[Value, np.ndarray] = {}

    def run(node: Any, operands: tuple, attributes: dict[str, Any]) -> tuple:
        made = run_arrays(node, operands, attributes)
        if any(v not in known for v in node.outputs):  # a node of a region
            return made
        found.update(zip(node.outputs, made))
        return tuple(one if may_hold_handles(v.type) else known[v]
                     for v, one in zip(node.outputs, made))

    interpret(graph, [as_array(x, v.type) for x, v in zip(inputs, graph.inputs)], run=run)
    return [found[v] for v in graph.outputs]


def _elements(x: Any) -> np.ndarray:
    """Return a graph input as an array: a tensor's elements, a number, a generator's state."""
    return np.asarray(x.array if hasattr(x, "array") else x)


def _as_input(array: np.ndarray, value: Value) -> Any:
    from tracejit.core.eager.state import of_array

    if value.is_weak:
        return float(array)
    return array if value.source == "generator state" else of_array(array)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype in (np.float16, np.float32) else array


def _widened(graph: Graph) -> Graph:
    """Return a copy of the graph that computes in float64."""
    from tracejit.core.ops.types import float16, float32, float64
    from tracejit.jit.ir.clone import copy_graph

    def wide(d: Any) -> Any:
        return float64 if d in (float16, float32) else d

    result, _ = copy_graph(graph)
    for value in [*result.inputs, *(v for node in result.nodes for v in node.outputs)]:
        value.type = value.type._replace(dtype=wide(value.type.dtype))
    for node in result.nodes:
        node.attributes = {k: wide(v) for k, v in node.attributes.items()}
    return result


def _difference(
    value: Value, compiled: np.ndarray, eager: np.ndarray, exact: np.ndarray
) -> NodeDifference:
    distance = ulp_distance(compiled, eager)
    index = (
        tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), distance.shape))
        if distance.size
        else ()
    )
    with np.errstate(all="ignore"):
        to_exact = ulp_distance(compiled, np.asarray(exact).astype(eager.dtype))
    node = value.node
    return NodeDifference(
        value.name,
        node.op.name if node else "input",
        node.location if node else None,
        float(distance.max(initial=0.0)),
        float(to_exact.max(initial=0.0)),
        index,
        compiled[index] if compiled.size else None,
        eager[index] if eager.size else None,
    )
