"""Fold constants: compute while compiling whatever is known then.

In: a Graph. Out: the same Graph, where constant tensors have become numbers, and ops over constants
alone have become one constant. Called by the pipeline. A constant is a `full` node of a Python
number. Each op's own `eager` computes the values, so they are those of eager mode.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(fold(parse_graph('''graph g(in0: float32[2] "x"):
...   %0: float32[2] = full(size=(2,), value=3.0, dtype=float32, device=device("cpu"))
...   %1: float32[2] = add(%in0, %0)
...   return %1''')))
graph g(in0: float32[2] "x"):
  %0: float32[2] = full(size=(2,), value=3.0, dtype=float32, device=device("cpu"))
  %1: float32[2] = add(%in0, 3.0)  # [fold: from %1 add]
  return %1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.creation import full_record
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType, dtype, rounded
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_sizes, same_type
from tracejit.jit.passes.rewrite import Rule, rewrite


def fold(graph: Graph, numerics: str = "fast") -> Graph:
    """Fold constants through elementwise ops and views."""
    return rewrite(graph, "fold", _rules_of if numerics == "fast" else _exact_rules_of)


def _exact_rules_of(op: Op) -> Sequence[Rule]:
    return () if op.fused else _rules_of(op)  # a kernel's bits are not those of `eager`


def _rules_of(op: Op) -> Sequence[Rule]:
    if op.kind == "pointwise" and op.eager is not None:
        return (evaluate_constants, constants_to_numbers)
    return (view_of_constant,) if op.views else ()


def constant(x: Any) -> bool | int | float | None:
    """Return the number that a value holds in every element, rounded to its dtype; None if unknown.

    >>> constant(3.0)
    3.0
    """
    if type(x) in (bool, int, float):
        return x
    node = x.node if isinstance(x, Value) else None
    if node is None or node.op is not full_record:
        return None
    value = node.attributes["value"]
    return _rounded(value, x.dtype) if type(value) in (bool, int, float) else None


def _rounded(value: Any, to: dtype) -> Any:
    with np.errstate(all="ignore"):
        return rounded(np.asarray(value), to).item()


def _full(graph: Graph, type: TensorType, value: Any) -> Value:
    return graph.append(full_record, (), {"shape": type.shape, "value": value,
                                          "dtype": type.dtype, "device": type.device})


def evaluate_constants(graph: Graph, node: Node) -> Value | None:
    """Replace an elementwise op of constants by a constant."""
    numbers = [constant(x) for x in node.inputs]
    if any(n is None for n in numbers) or len(node.outputs) != 1:
        return None
    arrays = [np.asarray(n, x.dtype.numpy) if isinstance(x, Value) else n
              for n, x in zip(numbers, node.inputs)]
    assert node.op.eager is not None
    with np.errstate(all="ignore"):
        result = node.op.eager(np, *arrays, **node.attributes)
    out = node.outputs[0].type
    return _full(graph, out, rounded(np.asarray(result), out.dtype).item())


def constants_to_numbers(graph: Graph, node: Node) -> Value | None:
    """`x * full(2.0)` is `x * 2.0`, wherever the other operands give the same type. Not so powers:
    of -inf to a number 0.5, which array libraries take for a square root, it is NaN."""
    if node.op.name == "pow":
        return None
    operands, out = list(node.inputs), node.outputs[0].type
    changed = False
    for k, x in enumerate(node.inputs):
        number = constant(x) if isinstance(x, Value) else None
        if number is not None and _fits(node, [*operands[:k], number, *operands[k + 1:]], out):
            operands[k], changed = number, True
    return graph.append(node.op, operands, node.attributes) if changed else None


def _fits(node: Node, operands: list[Any], out: TensorType) -> bool:
    if not any(isinstance(x, Value) and same_sizes(x.shape, out.shape) for x in operands):
        return False
    try:
        return same_type(node.op.infer(*operands, **node.attributes), out)
    except (TypeError, IndexError, AttributeError):  # this op needs a tensor in that place
        return False


def view_of_constant(graph: Graph, node: Node) -> Value | None:
    """Replace a view of a constant by a constant of its shape. A view that shows other numbers
    stays, as the parts of complex numbers do."""
    source, seen = node.inputs[0], node.outputs[0].type
    number = constant(source) if source.dtype is seen.dtype else None
    return None if number is None else _full(graph, seen, number)
