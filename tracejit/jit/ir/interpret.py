"""Interpreter, the oracle: it runs a graph op by op, with nothing of lowering in between.

In: a Graph and its inputs, NumPy (or CuPy) arrays or eager Tensors. Out: the outputs, and the
values to write. Arrays run as in eager mode. On Tensors it calls ops as a user would, so the tape
records them: derivatives of captured graphs are made that way. Called by mode "graph", `compare`,
higher-order derivatives and tests of every later room.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.eager.dispatch import by_library
from tracejit.core.memory.devices import CPU, array_module
from tracejit.core.ops.control import run_over_tensors
from tracejit.core.ops.operators import Operators
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.stacks import may_hold_handles, stack_run
from tracejit.core.ops.types import TensorType, dtype_of_numpy
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SymInt, evaluate
from tracejit.jit.ir.verify import GraphError

# (node, operands, attributes) -> outputs; attributes hold no sizes any more, only ints
Runner = Callable[[Node, tuple, dict[str, Any]], tuple]


class Results(NamedTuple):
    """`writes` are (input number, value): what the storage behind that input holds after the
    run."""

    outputs: list[Any]
    writes: list[tuple[int, Any]]


def interpret(graph: Graph, inputs: Sequence[Any], *, run: Runner | None = None,
              symbols: Mapping[str, int] | None = None) -> Results:
    """Run a graph. Inputs are all arrays or all Tensors; Python numbers may stand for 0-dim inputs.

    run      evaluates one node; None: by the kind of the inputs
    symbols  values of size symbols; None: taken from the inputs' shapes and strides

    The inputs are not modified; values to be written never share memory with them.

    >>> import numpy as np
    >>> from tracejit.jit.ir.parser import parse_graph
    >>> graph = parse_graph('graph step(in0: float32[s0] "x") where s0=2 in0.size[0]: return %in0')
    >>> interpret(graph, [np.ones(3, np.float32)]).outputs
    [array([1., 1., 1.], dtype=float32)]

    Raises GraphError naming the node and the user's line when a node fails.
    """
    if run is None:
        tensors = any(isinstance(x, Operators) for x in inputs)
        run, make = (run_tensors, _tensor) if tensors else (run_arrays, as_array)
        inputs = [make(x, v.type) for x, v in zip(inputs, graph.inputs, strict=True)]
    sizes = bind_symbols(graph, inputs) if symbols is None else symbols
    with _kept_bodies(), stack_run() as stacks:
        results = _run(graph, inputs, run, sizes)
        for x, value in zip(results.outputs, graph.outputs):
            if stacks.handles and may_hold_handles(value.type):
                stacks.keep(getattr(x, "_storage", None) or x)
    return results


def _run(graph: Graph, inputs: Sequence[Any], run: Runner, sizes: Mapping[str, int]) -> Results:
    values: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        values.update(zip(node.outputs, outputs_of(node, values, sizes, run), strict=True))
    number = {value: k for k, value in enumerate(graph.inputs)}
    writes = [(number[target], _apart(values[v], inputs)) for target, v in graph.writes]
    return Results([values[v] for v in graph.outputs], writes)


def outputs_of(node: Node, values: dict[Value, Any], sizes: Mapping[str, int],
               run: Runner) -> tuple:
    operands = tuple(values[x] if isinstance(x, Value) else at_size(x, sizes) for x in node.inputs)
    attributes = {name: at_size(x, sizes) for name, x in node.attributes.items()}
    if node.regions:
        attributes["regions"] = interpreted_regions(node, sizes, run)
    try:
        return run(node, operands, attributes)
    except GraphError:
        raise
    except Exception as error:
        where = f"{node.location}: {node.location.text.strip()}\n" if node.location else ""
        raise GraphError(f"{where}{node.op.name} fails: {error}") from error


class InterpretedRegion:
    """Region as its op's `eager` calls it: it runs op by op."""

    def __init__(self, graph: Graph, sizes: Mapping[str, int], run: Runner):
        self.graph, self.sizes, self.run = graph, sizes, run
        self.outputs = [v.type._replace(shape=at_size(v.shape, sizes)) for v in graph.outputs]

    def __call__(self, *inputs: Any) -> list[Any]:
        return _run(self.graph, inputs, self.run, self.sizes).outputs


class RegionOverTensors(InterpretedRegion):
    """Region that runs on tensors, also where the forward loop kept arrays."""

    def __call__(self, *inputs: Any) -> list[Any]:
        from tracejit.core.eager.state import of_array

        given = [x if isinstance(x, Operators) else of_array(np.asarray(x)) for x in inputs]
        return super().__call__(*given)


def interpreted_regions(node: Node, sizes: Mapping[str, int],
                        run: Runner) -> tuple[InterpretedRegion, ...]:
    """Return the arguments that stand for a node's regions when its `eager` is called."""
    if run is run_tensors:
        return regions_over_tensors(node.regions, sizes)
    return tuple(InterpretedRegion(region, sizes, run) for region in node.regions)


def regions_over_tensors(regions: Sequence[Graph], sizes: Mapping[str, int]
                         ) -> tuple[InterpretedRegion, ...]:
    """Return the same for a node that runs op by op on tensors."""
    return tuple(RegionOverTensors(region, sizes, run_tensors) for region in regions)


def bind_symbols(graph: Graph, inputs: Sequence[Any]) -> dict[str, int]:
    """Return the values of a graph's symbols for these inputs (arrays or Tensors)."""
    values = {}
    for name, (kind, number, dimension) in graph.symbol_sources.items():
        x = inputs[number]
        if kind == "number":
            values[name] = int(x)
        else:
            values[name] = int(x.shape[dimension] if kind == "size" else _strides(x)[dimension])
    return graph.scope.complete(values)


def _strides(x: Any) -> Sequence[int]:
    """Strides in elements."""
    return x.stride() if hasattr(x, "stride") else [s // x.itemsize for s in x.strides]


def at_size(static: Any, values: Mapping[str, int] | None = None) -> Any:
    """`static` with every symbolic size in it replaced by its value; without `values` by that of
    the example which the size itself comes from."""
    if type(static) is SymInt:
        return static.hint if values is None else evaluate(static, values)
    if isinstance(static, (tuple, list)):
        return type(static)([at_size(x, values) for x in static])
    if isinstance(static, dict):
        return {name: at_size(x, values) for name, x in static.items()}
    if isinstance(static, slice):
        return slice(*(at_size(x, values) for x in (static.start, static.stop, static.step)))
    return static


# -- on arrays -------------------------------------------------------------------------------------
def run_arrays(node: Node, operands: tuple, attributes: dict[str, Any]) -> tuple:
    """Evaluate a node with its op's `eager`; a composite without one by its body."""
    places = [v.device or CPU for v in node.outputs]
    xp = array_module(next((p for p in places if p.type != "cpu"), CPU))
    if xp is not np:  # numbers on the CPU go along with what is on the device
        operands = tuple(xp.asarray(x) if isinstance(x, np.ndarray) else x for x in operands)
    with np.errstate(all="ignore"):
        results = evaluate_op(node.op, xp, operands, attributes)
    # As in eager mode results but views are contiguous: the order of memory is that of later sums.
    order = "K" if node.op.views else "C"
    found = [xp.asarray(r, dtype=v.dtype.numpy, order=order)
             for r, v in zip(results, node.outputs)]
    if xp is not np:  # of several results some may belong on the CPU: how often a loop ran
        found = [x.get() if place.type == "cpu" else x for x, place in zip(found, places)]
    return tuple(found)


def evaluate_op(op: Op, xp: Any, operands: tuple, attributes: dict[str, Any]) -> Sequence[Any]:
    """Compute an op on arrays as eager mode does: by a kernel, its `eager`, or its body."""
    result = by_library(op, operands, attributes) if op.by_kernel and xp is np else None
    if result is None:
        if op.eager is None:
            return _evaluate_body(op, operands, attributes)
        result = op.eager(xp, *operands, **attributes)
    return result if isinstance(result, (tuple, list)) else (result,)


def _evaluate_body(op: Op, operands: tuple, attributes: dict[str, Any]) -> Sequence[Any]:
    if op.body is None:
        raise GraphError(f"op {op.name!r} has neither eager nor a body: nothing can run it")
    known = tuple(_type_of_array(x) if hasattr(x, "shape") else x for x in operands)
    arrays = [x for x in operands if hasattr(x, "shape")]
    graph = _body(op, known, attributes)
    return interpret(graph, arrays, run=run_arrays, symbols={}).outputs


_bodies = threading.local()  # `made`: the graphs of bodies that this run has made


@contextmanager
def _kept_bodies() -> Iterator[None]:
    """Keep the graphs of bodies until the outermost run ends: an op in a loop needs one."""
    if hasattr(_bodies, "made"):
        yield
        return
    _bodies.made = {}
    try:
        yield
    finally:
        del _bodies.made


def _body(op: Op, operands: tuple, attributes: dict[str, Any]) -> Graph:
    """Return the graph of a composite, with a type in place of each array."""
    made = getattr(_bodies, "made", None)
    given = operands, tuple(attributes.items())
    key = op, given, repr(given)  # 1, True and 1.0 are equal, and -0.0 and 0.0
    try:
        graph = None if made is None else made.get(key)
    except TypeError:  # a list, or a region
        made, graph = None, None
    if graph is None:
        graph = Graph(op.name)
        values = [graph.input(x) if type(x) is TensorType else x for x in operands]
        result = op.body(*values, **attributes)  # type: ignore[misc]
        graph.outputs = list(result) if isinstance(result, tuple) else [result]
        if made is not None:
            made[key] = graph
    return graph


def _type_of_array(x: Any) -> TensorType:
    from tracejit.core.memory.devices import device

    where = CPU if isinstance(x, np.ndarray) else device("cuda", int(x.device.id))
    return TensorType(dtype_of_numpy(x.dtype), tuple(x.shape), where)


def as_array(x: Any, type: TensorType) -> Any:
    return x if hasattr(x, "shape") else np.asarray(x, type.dtype.numpy)


def _apart(value: Any, inputs: Sequence[Any]) -> Any:
    """Return a written value in memory of its own: `x.T` of a written `x` must not change in the
    copy."""
    if hasattr(value, "detach"):
        return value.detach().clone()
    if not isinstance(value, np.ndarray):
        return value.copy()
    shared = any(np.may_share_memory(value, x) for x in inputs if isinstance(x, np.ndarray))
    return value.copy() if shared else value


# -- on Tensors ------------------------------------------------------------------------------------
def run_tensors(node: Node, operands: tuple, attributes: dict[str, Any]) -> tuple:
    """Evaluate a node by applying its op to Tensors, off the tape where the node is detached."""
    from tracejit.core.eager.modes import no_grad

    if node.detached:
        with no_grad():
            result = _apply(node.op, operands, attributes)
    else:
        result = _apply(node.op, operands, attributes)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _apply(op: Op, operands: tuple, attributes: dict[str, Any]) -> Any:
    if "regions" in attributes:
        return run_over_tensors(op, operands, **attributes)
    return apply(op, operands, attributes)


def _tensor(x: Any, type: TensorType) -> Any:
    from tracejit.core.ops.creation import full

    return x if isinstance(x, Operators) else full((), x, dtype=type.dtype, device=type.device)
