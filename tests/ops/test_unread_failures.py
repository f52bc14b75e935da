"""What raises in eager mode raises in a graph, whether its result is read or not."""

import numpy as np
import pytest

from tracejit.core.memory.devices import CPU
from tracejit.core.ops.types import TensorType, float32, int64
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.pipeline import run
from tracejit.nn import functional

FAILING = {
    "gather": lambda x, i: x.gather(0, i),
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:1]),
    "index_fill": lambda x, i: x.index_fill(0, i, 2.0),
    "scatter": lambda x, i: x.scatter(0, i, x[:1]),
    "embedding": lambda x, i: functional.embedding(i, x.unsqueeze(1)),
    "cross_entropy": lambda x, i: functional.cross_entropy(x.unsqueeze(0), i),
    "floor_divide": lambda x, i: i // (i - 9),
}


def unread(name):
    graph = Graph("unread")
    x = graph.input(TensorType(float32, (3,), CPU), "x")
    i = graph.input(TensorType(int64, (1,), CPU), "i")
    FAILING[name](x, i)
    x.sin()
    graph.outputs = [x * 2]
    return graph


@pytest.mark.parametrize("change", [
    dce, run, lambda graph: extract(graph, "part", graph.inputs, graph.outputs),
], ids=["dce", "all passes", "extract"])  # fmt: skip
@pytest.mark.parametrize("name", FAILING)
def test_an_unread_failure_stays(name, change):
    graph = change(unread(name))
    assert "sin" not in [node.op.name for node in graph.nodes]
    x = np.ones(3, np.float32)
    (got,) = interpret(graph, [x, np.array([1])]).outputs
    assert np.array_equal(got, x * 2)
    with pytest.raises(GraphError, match="fails"):
        interpret(graph, [x, np.array([9])])


def test_a_backward_part_repeats_no_failure():
    graph = unread("gather")
    y = graph.outputs[0]
    graph.outputs = [y.exp() + graph.inputs[0]]
    part = extract(graph, "part", [y, *graph.inputs], graph.outputs)
    assert [node.op.name for node in part.nodes] == ["exp", "add"]
