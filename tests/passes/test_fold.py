"""Constants become numbers; what is computed from constants is one."""

import numpy as np
import pytest

from tests.passes.programs import SPECIAL, agree, capture, ops, typed
from tracejit.core.ops import creation, movement, pointwise
from tracejit.core.ops.types import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from tracejit.jit.ir.clone import copy_graph
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.fold import constant, fold


def folded(graph):
    copy, _ = copy_graph(graph)
    return dce(fold(copy))


def full(x, value, dtype=None, shape=None):
    return creation.full_of(x, x.shape if shape is None else shape, value, dtype or x.dtype)


CASES = [
    (lambda x: full(x, 2.0) + full(x, 3.0), float32, ["full"]),
    (lambda x: pointwise.exp(full(x, 1.0)) * x, float32, ["mul"]),
    (lambda x: x * full(x, 2.0), float32, ["mul"]),
    (lambda x: full(x, 2.0) - x, float32, ["sub"]),
    (lambda x: x * full(x, 2.0, shape=()), float32, ["mul"]),
    (lambda x: x * movement.expand(full(x, 0.1, shape=()), *x.shape), float32, ["mul"]),
    (lambda x: pointwise.convert(full(x, 2.7), int32), float32, ["full"]),
    (lambda x: pointwise.convert(full(x, 300.0), uint8), float32, ["full"]),
    (lambda x: movement.permute(full(x, 2.0), 1, 0), float32, ["full"]),
    (lambda x: movement.reshape(full(x, 2.0), -1), float32, ["full"]),
    (lambda x: pointwise.where(full(x, True, bool_), x, full(x, 0.0)), float32, ["full", "where"]),
    (lambda x: pointwise.where(x > full(x, 1.0), full(x, 1.0), full(x, 2.0)), float32,
     ["gt", "full", "where"]),
    (lambda x: pointwise.where(x > 0, full(x, 0.1), x), float16, ["gt", "where"]),
    (lambda x: x + full(x, 0.1), bfloat16, ["add"]),
    (lambda x: x * full(x, 3), int8, ["mul"]),
    (lambda x: x * full(x, True), bool_, ["mul"]),
    (lambda x: pointwise.clamp(x, full(x, -1.0), full(x, 1.0)), float32, ["clamp"]),
]


@pytest.mark.parametrize("function, kind, left", CASES, ids=range(len(CASES)))
def test_constants_fold(function, kind, left):
    graph = capture(function, kind)
    after = folded(graph)
    assert ops(after) == left
    agree(graph, after)


def test_an_operand_that_gives_the_shape_stays():
    graph = capture(lambda y: y * creation.full_of(y, (2, 3), 2.0, float32), typed(float32, 3))
    after = folded(graph)
    assert ops(after) == ["full", "mul"]
    agree(graph, after)


def test_an_operand_of_the_only_tensor_stays():
    """`where(c, a, b)` takes its dtype from a or b: both cannot be numbers."""
    def program(c):
        return pointwise.where(c, full(c, 1.0, float64), full(c, 2.0, float64))

    graph = capture(program, bool_)
    after = folded(graph)
    assert after.outputs[0].dtype is float64
    agree(graph, after)


@pytest.mark.parametrize("dtype, value", [
    (dtype, value) for dtype in (float16, bfloat16, float32, float64) for value in SPECIAL
    if dtype is not float16 or not 65504 < abs(value) < float("inf")
], ids=repr)
def test_numbers_are_rounded_to_the_dtype(dtype, value):
    """0.1 in float16 is not the number 0.1: what is compared and added must be the rounded one."""
    graph = capture(lambda x: (x + full(x, value), x == full(x, value),
                               pointwise.convert(full(x, value), float64)), dtype)
    after = folded(graph)
    assert "full" not in ops(after)[:-1]
    agree(graph, after)


def test_what_is_known():
    graph = capture(lambda x: (full(x, 2.7, int64), full(x, x.shape[0]), x, full(x, 0.1)), float32)
    whole, size, x, tenth = graph.outputs
    assert constant(whole) == 2 and type(constant(whole)) is int
    assert constant(size) is None and constant(x) is None
    assert constant(tenth) == float(np.float32(0.1))
    assert constant(None) is None and constant(True) is True


def test_division_by_zero_of_constants_is_silent():
    graph = capture(lambda x: x + full(x, 1.0) / full(x, 0.0), float32)
    with np.errstate(all="raise"):
        after = folded(graph)
    assert ops(after) == ["add"] and after.nodes[0].inputs[1] == np.inf
