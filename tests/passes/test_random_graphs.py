"""Random small graphs: every pass, and all of them, keep the interpreter's results bit for bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.passes.programs import agree, arrays, capture, typed
from tracejit.core.ops import creation, movement, pointwise, reduction, slicing
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import FLOATING, bool_, float16, float32, float64, int32, int64
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.ir.digest import digest
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import same_sizes, same_type
from tracejit.jit.passes import pipeline

NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf"), float("nan"), 0, 1, -1, 2]
DTYPES = [float32, float32, float64, float16, int32, int64, bool_]


def unary(draw, x):
    return draw(st.sampled_from([
        lambda: -x if x.dtype is not bool_ else ~x, lambda: x.clone(),
        lambda: pointwise.abs(x) if x.dtype is not bool_ else ~x,
        lambda: pointwise.stop_gradient(x),
        lambda: pointwise.convert(x, draw(st.sampled_from(DTYPES))),
    ]))()


def with_number(draw, x):
    number = draw(st.sampled_from(NUMBERS))
    if x.dtype.category < FLOATING:
        number = int(number) if np.isfinite(number) else 1
    function = draw(st.sampled_from([
        pointwise.add, pointwise.mul, pointwise.maximum, pointwise.div]))
    constant = creation.full_of(x, draw(st.sampled_from([x.shape, ()])), number, x.dtype)
    numbers = [] if function is pointwise.maximum else [number]  # which takes tensors alone
    other = draw(st.sampled_from([*numbers, constant]))
    return function(x, other) if draw(st.booleans()) else function(other, x)


def binary(draw, x, others):
    y = draw(st.sampled_from([y for y in others if not y.shape or same_sizes(x.shape, y.shape)]))
    if draw(st.booleans()):
        return pointwise.where(x > 0 if x.dtype is not bool_ else x, x, y)
    function = draw(st.sampled_from([pointwise.add, pointwise.mul, pointwise.minimum]))
    return function(x, y)


def view(draw, x):
    rank = len(x.shape)
    choices = [lambda: movement.reshape(x, x.shape), lambda: movement.unsqueeze(x, 0),
               lambda: movement.expand(x, *x.shape), lambda: movement.reshape(x, numel(x.shape))]
    if rank:
        order = draw(st.permutations(range(rank)))
        choices += [lambda: movement.permute(x, *order),
                    lambda: movement.expand(reduction.amax(x, 0, True), *x.shape),
                    lambda: reduction.sum(x, draw(st.integers(0, rank - 1)), draw(st.booleans())),
                    lambda: slicing.slice_record(x, dim=0, start=0, stop=x.shape[0], step=1)]
        if type(x.shape[0]) is int and x.shape[0] == 1:
            choices += [lambda: movement.squeeze(x, 0), lambda: movement.expand(x, 3, *x.shape[1:])]
    return draw(st.sampled_from(choices))()


@st.composite
def graphs(draw):
    kinds = draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3))
    scalar = draw(st.sampled_from(DTYPES))

    def program(*inputs):
        values = list(inputs)
        for _ in range(draw(st.integers(1, 14))):
            x = draw(st.sampled_from(values[-6:]))
            make = draw(st.sampled_from([unary, with_number, view, None]))
            values.append(make(draw, x) if make else binary(draw, x, values))
        return draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))

    graph = capture(program, *kinds, typed(scalar))
    for target in graph.inputs:
        same = [v for n in graph.nodes for v in n.outputs
                if same_type(v.type, target.type)]
        if same and draw(st.booleans()):
            graph.writes.append((target, draw(st.sampled_from(same))))
    return graph


QUICK = settings(max_examples=150, deadline=None, derandomize=True,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("name, change", pipeline.PASSES, ids=[n for n, _ in pipeline.PASSES])
@QUICK
@given(graph=graphs(), rows=st.sampled_from([0, 1, 4]))
def test_a_pass_keeps_results(name, change, graph, rows):
    inputs = arrays(graph, rows)
    assume(all(g.holds({"s0": rows}) for g in graph.scope.guards))
    guards = list(graph.scope.guards)
    copy, _ = copy_graph(graph)
    agree(graph, change(copy, "eager"), inputs)
    assert graph.scope.guards == guards, f"{name} asked for a guard"


@QUICK
@given(graph=graphs())
def test_all_passes_keep_results_and_settle(graph):
    after = pipeline.run(graph, "eager")
    agree(graph, after)
    assert len(after.nodes) <= len(graph.nodes) + len(graph.outputs)
    again = pipeline.run(after, "eager")
    assert len(again.nodes) <= len(after.nodes)


@QUICK
@given(graph=graphs(), rows=st.sampled_from([0, 1, 4]))
def test_fast_numerics_round_differently_at_most(graph, rows):
    assume(all(g.holds({"s0": rows}) for g in graph.scope.guards))
    inputs = arrays(graph, rows)
    old, new = (interpret(g, inputs) for g in (graph, pipeline.run(graph, "fast")))
    for a, b in zip(old.outputs, new.outputs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        relative = 4e-3 if a.itemsize == 2 else 1e-5
        np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=relative)


@QUICK
@given(graph=graphs())
def test_text_and_copies_say_the_same(graph):
    text = print_graph(graph)
    parsed = parse_graph(text)
    assert print_graph(parsed) == text
    assert digest(parsed) == digest(graph) == digest(copy_graph(graph)[0])
