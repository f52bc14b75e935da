"""Common subexpressions, dead code, opened composites."""

import pytest

from tests.passes.programs import agree, capture, ops, typed
from tracejit.core.memory.devices import CPU
from tracejit.core.ops import creation, movement, pointwise, random, reduction
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.core.ops.types import float32, int64
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.graph import Graph, Location
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.passes.cse import cse
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.open_composites import open_composites


def merged(graph):
    copy, _ = copy_graph(graph)
    return dce(cse(copy))


# -- common subexpressions -----------------------------------------------------------------------
@pytest.mark.parametrize("function, count", [
    (lambda x: pointwise.exp(x) + pointwise.exp(x), 2),
    (lambda x: (x * 2) + (x * 2.0), 2),
    (lambda x: pointwise.exp(x * 2) - pointwise.exp(x * 2), 3),
    (lambda x: (x + 0.0) * (x + -0.0), 3),
    (lambda x: (x * float("nan")) + (x * float("nan")), 2),
    (lambda x: (x - 1) + (1 - x), 3),
    (lambda x: reduction.sum(x, 0) + reduction.sum(x, 0), 2),
    (lambda x: reduction.sum(x, 0, True) + reduction.sum(x, 1, True), 3),
    (lambda x: movement.reshape(x, 7, -1) + movement.reshape(x, 7, -1), 2),
    (lambda x: creation.full_of(x, (3,), 1, float32) + creation.full_of(x, (3,), 1.0, float32), 3),
])
def test_equal_nodes_merge(function, count):
    graph = capture(function, float32)
    after = merged(graph)
    assert len(after.nodes) == count
    agree(graph, after)


def test_draws_are_equal_where_state_and_offset_are():
    def drawn(state, other):
        def draw(of, offset):
            return of.graph.append(random.uniform_record, (of,), {
                "offset": offset, "shape": (3,), "dtype": float32, "device": CPU})

        return draw(state, 0), draw(state, 1), draw(other, 0), draw(state, 0)

    after = merged(capture(drawn, typed(int64, 2), typed(int64, 2)))
    assert len(after.nodes) == 3
    assert after.outputs[0] is after.outputs[3]
    assert len({id(v) for v in after.outputs}) == 3


def test_detached_and_recorded_nodes_merge_into_the_first():
    graph = capture(lambda x: pointwise.exp(x), float32)
    graph.detached = True
    graph.outputs.append(pointwise.exp(graph.inputs[0]))
    graph.nodes[0].location = Location("train.py", 1, "forward")
    after = merged(graph)
    assert len(after.nodes) == 1 and after.nodes[0].location.text == "forward"


def test_sizes_known_to_be_equal_merge():
    graph = capture(lambda x: x * 2, float32)
    m = graph.scope.symbol(4)
    y = graph.input(typed(float32, m, 7), "y")
    graph.symbol_sources["s1"] = ("size", 1, 0)
    x = graph.inputs[0]
    made = [creation.full_of(x, (size,), 1.0, float32) for size in (x.shape[0], m)]
    graph.outputs = made
    assert len(merged(graph).nodes) == 2
    graph.outputs = [*made, x + y]  # which is only possible where s0 == s1
    after = merged(graph)
    assert ops(after) == ["full", "add"] and after.outputs[0] is after.outputs[1]


def test_writes_follow():
    graph = capture(lambda x: x * 2, float32)
    x = graph.inputs[0]
    graph.writes = [(x, x * 2)]
    after = merged(graph)
    assert len(after.nodes) == 1 and after.writes[0][1] is after.outputs[0]
    agree(graph, after)


# -- dead code -----------------------------------------------------------------------------------
def test_what_nobody_reads_goes():
    def program(x):
        unused = pointwise.exp(x) * 2
        assert unused is not None
        return x + 1

    graph = capture(program, float32)
    after = dce(copy_graph(graph)[0])
    assert ops(after) == ["add"] and len(after.inputs) == 1
    agree(graph, after)


def test_written_values_live_and_writes_to_oneself_go():
    graph = capture(lambda x, y: x, float32, float32)
    x, y = graph.inputs
    graph.writes = [(x, x), (y, pointwise.exp(x))]
    after = dce(copy_graph(graph)[0])
    assert ops(after) == ["exp"] and len(after.writes) == 1
    agree(graph, after)


def test_a_node_lives_by_any_of_its_outputs():
    pair = REGISTRY.get("test_pair") or Op(
        "test_pair", "extern", ("x",), outputs=("a", "b"), infer=lambda x: (x.type, x.type),
        eager=lambda xp, x: (x + 1, x + 2))
    graph = capture(lambda x: pair(x)[1], float32)
    assert ops(dce(copy_graph(graph)[0])) == ["test_pair"]


# -- composites ----------------------------------------------------------------------------------
inner = REGISTRY.get("test_inner") or Op(
    "test_inner", "composite", ("x",), infer=lambda x: x.type,
    body=lambda x: pointwise.exp(x - reduction.amax(x, 1, True)))
outer = REGISTRY.get("test_outer") or Op(
    "test_outer", "composite", ("x",), infer=lambda x, scale: (x.type, x.type), outputs=("a", "b"),
    body=lambda x, scale: (inner(x) * scale, inner(x)))
own = REGISTRY.get("test_own") or Op(
    "test_own", "composite", ("x",), infer=lambda x: x.type,
    body=lambda x: x * 2, eager=lambda xp, x: x + x)
both = REGISTRY.get("test_both") or Op(
    "test_both", "composite", ("x", "y"), infer=lambda x, y: x.type, body=lambda x, y: x + y)
wrong = REGISTRY.get("test_wrong") or Op(
    "test_wrong", "composite", ("x",), infer=lambda x: x.type, body=lambda x: 3)


def test_composites_open_also_inside_each_other():
    graph = capture(lambda x: outer(x, scale=3.0), float32)
    graph.nodes[0].location = Location("train.py", 4, "softmax(x)")
    graph.nodes[0].detached = True
    graph.number()
    after = open_composites(copy_graph(graph)[0])
    assert ops(after) == ["amax", "sub", "exp", "mul", "amax", "sub", "exp"]
    assert all(n.location.line == 4 and n.detached for n in after.nodes)
    assert {n.provenance for n in after.nodes} == {"open: from %0 test_outer"}
    assert ops(merged(after)) == ["amax", "sub", "exp", "mul"]
    agree(graph, after)


def test_guards_of_a_body_name_the_line_of_the_composite():
    graph = Graph("g")
    x = graph.input(typed(float32, graph.scope.symbol(4), graph.scope.symbol(3)), "x")
    y = graph.input(typed(float32, graph.scope.symbol(4), graph.scope.symbol(3)), "y")
    graph.location = Location("train.py", 4, "both(x, y)")
    graph.outputs = [both(x, y)]
    graph.scope.where = lambda: "capture"
    open_composites(graph)
    assert [(str(g), g.where) for g in graph.scope.guards] == [
        ("s1 == s3", "train.py:4"), ("s0 == s2", "train.py:4")]
    assert graph.scope.where() == "capture"


def test_eager_numerics_keep_a_composite_with_its_own_function():
    graph = capture(lambda x: own(x) + inner(x), float32)
    assert ops(open_composites(copy_graph(graph)[0], "eager"))[0] == "test_own"
    assert ops(open_composites(copy_graph(graph)[0], "fast"))[0] == "mul"


def test_a_body_must_give_values():
    graph = capture(lambda x: wrong(x), float32)
    with pytest.raises(GraphError, match="the replacement 3 is no value of the graph"):
        open_composites(copy_graph(graph)[0])
