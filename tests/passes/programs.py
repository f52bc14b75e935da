"""Small graphs for the tests of passes: built from functions, compared bit for bit.

In: functions of graph values. Out: graphs and NumPy results. Used by the tests next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory.devices import CPU
from tracejit.core.ops import types
from tracejit.core.ops.types import TensorType, dtype, float32
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.verify import verify

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 1e-40, -1e-45, 3e38, -3e38, 0.1,
           np.inf, -np.inf, np.nan)


def capture(function: Callable[..., Any], *kinds: Any) -> Graph:
    """The graph of `function`; an input is a dtype (shape (s0, 7)) or a TensorType."""
    graph = Graph("program")
    rows = graph.scope.symbol(4)
    for kind in kinds or (float32,):
        wanted = kind if isinstance(kind, TensorType) else TensorType(kind, (rows, 7), CPU)
        if wanted.shape[:1] and wanted.shape[0] is rows:
            graph.symbol_sources.setdefault("s0", ("size", len(graph.inputs), 0))
        graph.input(wanted, f"x{len(graph.inputs)}")
    result = function(*graph.inputs)
    graph.outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    verify(graph)
    return graph


def typed(d: dtype, *shape: Any) -> TensorType:
    return TensorType(d, shape, CPU)


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def arrays(graph: Graph, rows: int = 4) -> list[np.ndarray]:
    """Values for the inputs, special ones first."""
    rng = np.random.default_rng(0)
    made = []
    for k, value in enumerate(graph.inputs):
        shape = tuple(rows if type(s) is not int else s for s in value.shape)
        count = int(np.prod(shape, dtype=np.int64))
        d = value.dtype
        if d.category >= types.FLOATING:
            flat = np.resize(np.roll(np.float64(SPECIAL), 5 * k), count)
        else:
            flat = rng.integers(0, 2 if d is types.bool_ else 100, count)
        with np.errstate(all="ignore"):
            made.append(np.asarray(flat).astype(d.numpy).reshape(shape))
    return made


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Equal dtype, shape and bits; any NaN equals any other."""
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))
    np.testing.assert_array_equal(a.astype(np.float64, copy=False) if a.dtype.kind == "V" else a,
                                  b.astype(np.float64, copy=False) if b.dtype.kind == "V" else b)


def agree(before: Graph, after: Graph, inputs: Sequence[np.ndarray] | None = None) -> None:
    """Both graphs give the same bits, outputs and writes."""
    verify(after)
    inputs = arrays(before) if inputs is None else inputs
    old, new = interpret(before, inputs), interpret(after, inputs)
    for a, b in zip(old.outputs, new.outputs, strict=True):
        same_bits(a, b)
    state = [[x.copy() for x in inputs] for _ in range(2)]
    for result, now in zip((old, new), state):
        for number, value in result.writes:
            now[number] = value
    for a, b in zip(*state):
        same_bits(a, b)
