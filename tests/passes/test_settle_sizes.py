"""After this pass equal sizes have one name; how a call binds symbols is as before."""

import numpy as np

from tests.passes.programs import agree, typed
from tracejit.core.ops import creation, movement
from tracejit.core.ops.types import float32
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import bind_symbols
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.passes.settle_sizes import settle_sizes


def two_inputs():
    """x: (s0, s1), y: (s2, s3) with strides (s4, 1)."""
    graph = Graph("g")
    s = [graph.scope.symbol(n) for n in (4, 3, 4, 3, 3)]
    graph.symbol_sources = {"s0": ("size", 0, 0), "s1": ("size", 0, 1), "s2": ("size", 1, 0),
                            "s3": ("size", 1, 1), "s4": ("stride", 1, 0)}
    graph.input(typed(float32, s[0], s[1]), "x")
    graph.input(typed(float32, s[2], s[3]), "y", contiguous=False, strides=(s[4], 1))
    return graph


def test_learnt_equalities_are_used_everywhere():
    graph = two_inputs()
    x, y = graph.inputs
    made = creation.full_of(x, (y.shape[0] + y.shape[1],), 1.0, float32)
    graph.outputs = [movement.reshape(y, y.shape[0] * y.shape[1]), x + y, made]
    after = settle_sizes(copy_graph(graph)[0])
    text = print_graph(after)
    nodes = text[text.index("  %0"):text.index("  return")]
    assert "s2" not in nodes and "s3" not in nodes and "s0 + s1" in nodes
    assert after.inputs[1].shape[0].same_as(after.inputs[0].shape[0])
    assert "s2" in print_graph(graph).split("return")[0], "the original is unchanged"
    inputs = [np.ones((2, 5), np.float32), np.ones((2, 6), np.float32)[:, :5]]
    assert bind_symbols(after, inputs) == {"s0": 2, "s1": 5, "s2": 2, "s3": 5, "s4": 6}
    agree(graph, after, inputs)


def test_sizes_learnt_to_be_numbers_are_numbers():
    graph = two_inputs()
    x, y = graph.inputs
    assert x.shape[1] == 3  # what a program that branched on it would have asked
    graph.outputs = [x * 2]
    after = settle_sizes(copy_graph(graph)[0])
    assert type(after.outputs[0].shape[1]) is int and type(after.outputs[0].shape[0]) is not int


def test_strides_and_operands_settle():
    graph = two_inputs()
    x, y = graph.inputs
    assert graph.strides[y][0] == y.shape[1]
    graph.outputs = [x * y.shape[0], x + y]
    after = settle_sizes(copy_graph(graph)[0])
    assert str(after.strides[after.inputs[1]]) == "(s1, 1)"
    assert str(after.nodes[0].inputs[1]) == "s0"


def test_symbols_of_other_segments_are_not_used():
    """One scope serves all segments: s2 and s3 are sizes of an input that this graph lacks."""
    graph = two_inputs()
    x, y = graph.inputs
    assert x.shape[1] == y.shape[1]
    y.shape[0].scope.learn("s0", y.shape[0])
    del graph.inputs[1]
    graph.symbol_sources = {"s0": ("size", 0, 0), "s1": ("size", 0, 1)}
    graph.strides.clear()
    graph.outputs = [x * 2]
    after = settle_sizes(copy_graph(graph)[0])
    assert str(after.outputs[0].shape) == "(s0, s1)"
    agree(graph, after, [np.ones((2, 5), np.float32)])


def test_nothing_learnt_nothing_changed():
    graph = two_inputs()
    types = [v.type for v in graph.inputs]
    settle_sizes(graph)
    assert all(a is b for a, b in zip(types, [v.type for v in graph.inputs]))
