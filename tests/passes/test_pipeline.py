"""The pipeline as a whole: what it keeps, what it says, what it checks, how fast it is."""

import re
import sys

import pytest

from tests.passes.programs import agree, arrays, capture, ops, typed
from tracejit import config
from tracejit.core.ops import creation, movement, pointwise, reduction
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import float32, float64
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.passes import pipeline

Op("test_region", "composite", ("x",), infer=lambda x, regions=(): x.type)


def softmax(x):
    shifted = pointwise.exp(x - reduction.amax(x, 1, True))
    return shifted / reduction.sum(shifted, 1, True)


def loss_and_gradient(x):
    """Forward and backward of a loss, as differentiation writes it: with softmax computed twice."""
    loss = reduction.sum(pointwise.log(softmax(x)) * softmax(x))
    seed = creation.ones_like(loss)
    grad = movement.expand(movement.reshape(seed, 1, 1), *x.shape)
    again = softmax(x)
    return loss, (pointwise.log(again) + 1.0) * grad * again


def test_the_given_graph_is_not_changed():
    graph = capture(loss_and_gradient, float32)
    text = print_graph(graph)
    pipeline.run(graph)
    assert print_graph(graph) == text


@pytest.mark.parametrize("numerics", ["fast", "eager"])
def test_results_are_kept(numerics):
    graph = capture(loss_and_gradient, float32)
    after = pipeline.run(graph, numerics)
    assert len(after.nodes) < len(graph.nodes)
    agree(graph, after)


def test_the_backward_half_shares_what_the_forward_half_computed():
    after = pipeline.run(capture(loss_and_gradient, float32))
    assert [ops(after).count(name) for name in ("exp", "log", "div", "amax")] == [1, 1, 1, 1]
    assert "full" not in ops(after) and "expand" not in ops(after)


def test_stages_show_every_pass_with_where_nodes_come_from():
    stages = pipeline.stages(capture(loss_and_gradient, float32))
    assert [name for name, _ in stages] == ["captured", *(name for name, _ in pipeline.PASSES)]
    assert all(text.startswith("graph program(in0: float32[s0, 7]") for _, text in stages)
    assert "# [fold: from %" in dict(stages)["fold"]
    for _, text in stages:
        assert print_graph(parse_graph(text)) == text


# -- outputs keep memory of their own --------------------------------------------------------------
def outputs_of(function, *kinds):
    graph = capture(function, *kinds or (float32,))
    after = pipeline.run(graph)
    agree(graph, after)
    return after


def test_an_output_does_not_become_an_input():
    after = outputs_of(lambda x: x * 1.0)
    assert ops(after) == ["clone"] and after.outputs[0] is not after.inputs[0]


def test_two_outputs_do_not_become_one():
    after = outputs_of(lambda x: (pointwise.exp(x), pointwise.exp(x), pointwise.exp(x) * 1))
    assert ops(after) == ["exp", "clone", "clone"]
    assert len(set(after.outputs)) == 3


def test_what_the_caller_made_one_stays_one():
    def program(x):
        y = pointwise.exp(x)
        z = x * 1.0
        return y, y, x, z, z

    after = outputs_of(program)
    first, second, same, z, again = after.outputs
    assert first is second and same is after.inputs[0] and z is again and z is not same


def test_writes_do_not_count_as_outputs():
    graph = capture(lambda x: pointwise.exp(x), float32)
    graph.writes = [(graph.inputs[0], pointwise.exp(graph.inputs[0]))]
    after = pipeline.run(graph)
    assert ops(after) == ["exp"]
    agree(graph, after)


# -- checks and logs -----------------------------------------------------------------------------
def breaking(graph, numerics):
    graph.nodes.reverse()
    return graph


def test_a_broken_pass_is_named(monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (("wreck", breaking), *pipeline.PASSES))
    graph = capture(loss_and_gradient, float32)
    with config.override(verify_passes=True), pytest.raises(GraphError, match="after pass 'wreck'"):
        pipeline.run(graph)


def test_graphs_are_not_verified_unless_asked(monkeypatch):
    def refuse(graph, after):
        raise AssertionError("verified")

    monkeypatch.setattr(pipeline, "verify", refuse)
    with config.override(verify_passes=False):
        pipeline.run(capture(loss_and_gradient, float32))
    with config.override(verify_passes=True), pytest.raises(AssertionError, match="verified"):
        pipeline.run(capture(loss_and_gradient, float32))


def test_print_after(capsys):
    with config.override(print_after=("cse",)):
        pipeline.run(capture(loss_and_gradient, float32))
    err = capsys.readouterr().err
    assert err.count("# after") == 1 and err.startswith("# after cse\ngraph program(")


def test_the_log_counts_nodes(capsys):
    with config.override(logs="passes"):
        pipeline.run(capture(loss_and_gradient, float32))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(pipeline.PASSES)
    assert re.fullmatch(r"\[tracejit passes\] program: cse: \d+ -> \d+ nodes", lines[-5])


def test_regions_are_rewritten_too():
    graph = parse_graph("""graph f(in0: float32[2]):
      %0: float32[2] = test_region(%in0) {
        graph then(in0: float32[2]):
          %0: float32[2] = mul(%in0, 1.0)
          %1: float32[2] = neg(%0)
          %2: float32[2] = exp(%0)
          return %1
      }
      return %0""")
    inner, = pipeline.run(graph).nodes[0].regions
    assert ops(inner) == ["neg"] and inner.nodes[0].inputs == (inner.inputs[0],)
    assert ops(graph.nodes[0].regions[0]) == ["mul", "neg", "exp"]


# -- size and speed --------------------------------------------------------------------------------
def update(count):
    """The shape of an optimizer's update: many equal small chains over many inputs."""
    def program(*tensors):
        return [p - 0.1 * (m * 0.9 + p * 1.0) / (pointwise.sqrt(m * m) + 1e-8)
                for p, m in zip(tensors[::2], tensors[1::2])]

    return capture(program, *[typed(float32, k // 2 + 1, 3) for k in range(2 * count)])


def calls(graph):
    """How many functions the pipeline calls: like its time, but the same on a busy machine."""
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event in ("call", "c_call")

    with config.override(verify_passes=False):
        sys.setprofile(count)
        try:
            pipeline.run(graph)
        finally:
            sys.setprofile(None)
    return counted


def test_work_grows_with_the_number_of_nodes_not_its_square():
    small, large = update(20), update(320)
    assert len(large.nodes) == 16 * len(small.nodes)
    calls(small)  # what is computed once and remembered
    assert calls(large) < 16 * 1.1 * calls(small)
    assert calls(large) < 250 * len(large.nodes)


def test_long_chains_do_not_recurse():
    def chain(x):
        for _ in range(3000):
            x = -(x.clone() * 1.0)
        return x

    graph = capture(chain, float64)
    after = pipeline.run(graph)
    assert ops(after) == ["clone"]
    assert interpret(after, arrays(graph)).outputs[0].shape == (4, 7)
