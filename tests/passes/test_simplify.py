"""Every simplification finds its expression, and gives the same bits; those that would not are not
made.
"""

import numpy as np
import pytest

import tracejit as tj
from tests.passes.programs import agree, capture, ops, typed
from tracejit import config
from tracejit.core.ops import creation, movement, pointwise, reduction, slicing
from tracejit.core.ops.record import apply
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
from tracejit.jit.passes.pipeline import run
from tracejit.jit.passes.simplify import holds, simplify


def simplified(graph, numerics="eager"):
    copy, _ = copy_graph(graph)
    return dce(simplify(copy, numerics))


def convert(x, *through):
    for d in through:
        x = pointwise.convert(x, d)
    return x


NOTHING = []
CASES = [
    (lambda x: x * 1.0, (float32,), NOTHING),
    (lambda x: 1.0 * x, (float32,), NOTHING),
    (lambda x: x * 1, (int64,), NOTHING),
    (lambda x: x / 1.0, (float32,), NOTHING),
    (lambda x: x + 0, (int64,), NOTHING),
    (lambda x: 0 + x, (int64,), NOTHING),
    (lambda x: x + 0.0, (float32,), ["add"]),
    (lambda x: 0.0 + x, (float32,), ["add"]),
    (lambda x: x + -0.0, (float32,), NOTHING),
    (lambda x: -0.0 + x, (float32,), NOTHING),
    (lambda x: x - 0.0, (float32,), NOTHING),
    (lambda x: x - -0.0, (float32,), ["sub"]),
    (lambda x: 0.0 - x, (float32,), ["sub"]),
    (lambda x: x * 0.0, (float32,), ["mul"]),
    (lambda x: x - x, (float32,), ["sub"]),
    (lambda x: pointwise.neg(-x), (float32,), NOTHING),
    (lambda x: pointwise.neg(pointwise.neg(-x)), (float32,), ["neg"]),
    (lambda x: x * -1.0, (float32,), ["neg"]),
    (lambda x: -1 * x, (int64,), ["neg"]),
    (lambda x, y: x + -y, (float32, float32), ["sub"]),
    (lambda x, y: -x + y, (float32, float32), ["sub"]),
    (lambda x, y: x - -y, (float32, float32), ["add"]),
    (lambda x, y: -x * -y, (float32, float32), ["mul"]),
    (lambda x, y: -(x - y), (float32, float32), ["sub", "neg"]),  # 0 - 0 is 0, and -0 is not
    (lambda x: pointwise.exp(x.clone()), (float32,), ["exp"]),
    (lambda x: pointwise.stop_gradient(x) * 2, (float32,), ["mul"]),
    (lambda x: ~~x, (bool_,), NOTHING),
    (lambda x: ~x, (bool_,), ["logical_not"]),
    (lambda x: x / 4.0, (float32,), ["mul"]),
    (lambda x: x / -0.25, (float32,), ["mul"]),
    (lambda x: x / 3.0, (float32,), ["div"]),
    (lambda x: x / 0.0, (float32,), ["div"]),
    (lambda x: x / 2.0**40, (float32,), ["div"]),
    (lambda x: apply(pointwise.cast, (x,), {"dtype": float32}), (float32,), NOTHING),
    (lambda x: convert(x, float64, float32), (float32,), NOTHING),
    (lambda x: convert(x, float64, float16), (float32,), ["convert"]),
    (lambda x: convert(x, float16, float32), (float32,), ["convert", "convert"]),
    (lambda x: convert(x, float32, float64, float32), (bfloat16,), ["convert"]),
    (lambda x: convert(x, int64, float32), (int32,), ["convert"]),
    (lambda x: convert(x, float32, int64), (int32,), ["convert", "convert"]),
    (lambda x: convert(x, float32, bool_), (bool_,), NOTHING),
    (lambda x: convert(x, float32, bool_), (int32,), ["convert", "truth"]),
    (lambda x, y: pointwise.where(x > 0, y, y), (float32, float32), NOTHING),
    (lambda x, y: pointwise.where(x > 0, x, y), (float32, float32), ["gt", "where"]),
]


@pytest.mark.parametrize("function, kinds, left", CASES, ids=range(len(CASES)))
def test_elementwise(function, kinds, left):
    graph = capture(function, *kinds)
    after = simplified(graph)
    assert ops(after) == left
    agree(graph, after)


def reshape(x, *shape):
    return movement.reshape(x, *shape)


def part(x, start=1):
    return slicing.slice_record(x, dim=1, start=start, stop=start + 5, step=2)


def put(x, y, start=1):
    return slicing.slice_scatter_record(x, y, dim=1, start=start, stop=start + 5, step=2)


VIEWS = [
    (lambda x: part(put(x, -part(x))), ["slice", "neg"]),
    (lambda x: part(put(x, part(x)), 2), ["slice", "slice_scatter", "slice"]),
    (lambda x: put(put(x, -part(x)), part(x)), ["slice", "slice_scatter"]),
    (lambda x: put(put(x, part(x)), part(x), 2),
     ["slice", "slice_scatter", "slice", "slice_scatter"]),
    (lambda x: reshape(x, *x.shape), NOTHING),
    (lambda x: reshape(reshape(x, -1), *x.shape), NOTHING),
    (lambda x: reshape(reshape(x, -1), 7, x.shape[0]), ["reshape"]),
    (lambda x: movement.squeeze(movement.unsqueeze(x, 1), 1), NOTHING),
    (lambda x: reshape(movement.unsqueeze(x, 1), -1), ["reshape"]),
    (lambda x: movement.unsqueeze(movement.unsqueeze(x, 0), 0), ["reshape"]),
    (lambda x: movement.unsqueeze(x, 0), ["unsqueeze"]),
    (lambda x: movement.permute(x, 0, 1), NOTHING),
    (lambda x: movement.permute(movement.permute(x, 1, 0), 1, 0), NOTHING),
    (lambda x: movement.permute(x, 1, 0), ["permute"]),
    (lambda x: movement.permute(movement.permute(movement.unsqueeze(x, 0), 1, 2, 0), 1, 2, 0),
     ["unsqueeze", "permute"]),
    (lambda x: movement.expand(x, *x.shape), NOTHING),
    (lambda x: movement.expand(movement.expand(x, 2, -1, -1), 3, 2, -1, -1), ["expand"]),
    (lambda x: x + movement.expand(reduction.sum(x, 0, True), *x.shape), ["sum", "add"]),
    (lambda x: movement.expand(reduction.sum(x, 0, True), *x.shape) * 2, ["sum", "expand", "mul"]),
    (lambda x: slicing.slice_record(x, dim=0, start=0, stop=x.shape[0], step=1), NOTHING),
    (lambda x: slicing.slice_record(x, dim=1, start=1, stop=7, step=1), ["slice"]),
]  # fmt: skip


@pytest.mark.parametrize("function, left", VIEWS, ids=range(len(VIEWS)))
def test_views(function, left):
    graph = capture(function, float32)
    guards = list(graph.scope.guards)
    after = simplified(graph)
    assert ops(after) == left
    assert graph.scope.guards == guards
    for rows in (1, 4, 7):
        agree(graph, after, [np.arange(rows * 7, dtype=np.float32).reshape(rows, 7)])


def test_permutations_compose_in_the_right_order():
    graph = capture(lambda x: movement.permute(movement.permute(x, 1, 2, 0), 0, 2, 1),
                    typed(float32, 2, 3, 4))
    after = simplified(graph)
    assert ops(after) == ["permute"]
    agree(graph, after, [np.arange(24, dtype=np.float32).reshape(2, 3, 4)])


@pytest.mark.parametrize("known", [True, False])
def test_a_known_condition_chooses(known):
    def program(x, y):
        condition = creation.full_of(x, x.shape, known, bool_)
        return pointwise.where(condition, x, y) + pointwise.where(condition, 0.0, y)

    graph = capture(program, float32, float32)
    after = simplified(graph)
    assert ops(after) == (["full", "where", "add"] if known else ["add"])
    agree(graph, after)


def test_sums_over_new_dimensions_multiply():
    graph = capture(lambda x: reduction.sum(movement.expand(x, 5, 3), 0), typed(float32, 3))
    fast = simplified(graph, "fast")
    assert ops(fast) == ["mul"]
    agree(graph, fast, [np.float32([1, 2, 3])])


@pytest.mark.parametrize("dims, keepdim", [(0, False), (1, True), ((0, 1), False), (2, False),
                                           ((0, 2), True), ((0, 1, 2), False)])
def test_sums_over_some_of_the_repeated_dimensions(dims, keepdim):
    """x: (1, 2) seen as (3, 4, 2); what is not summed stays repeated."""
    graph = capture(lambda x: reduction.sum(movement.expand(x, 3, 4, 2), dims, keepdim),
                    typed(float32, 1, 2))
    fast = simplified(graph, "fast")
    assert "mul" in ops(fast) or dims == 2
    agree(graph, fast, [np.float32([[1, 2]])])


def test_sums_that_may_have_no_terms_stay_sums():
    def program(x, y):
        none = movement.expand(y, 0, 3)
        return (reduction.sum(movement.expand(y, x.shape[0], 3), 0), reduction.sum(none, 0))

    graph = capture(program, float32, typed(float32, 3))
    fast = simplified(graph, "fast")
    assert ops(fast) == ["expand", "expand", "sum", "sum"]
    infinite = np.float32([np.inf, -np.inf, np.nan])
    agree(graph, fast, [np.zeros((0, 7), np.float32), infinite])


def test_sums_of_equal_terms_multiply_only_when_rounding_may_differ():
    def total(x):
        return reduction.sum(movement.expand(reduction.sum(x, 1, True), x.shape[0], 5))

    graph = capture(total, float32)
    assert ops(simplified(graph)) == ["sum", "expand", "sum"]
    fast = simplified(graph, "fast")
    assert "expand" not in ops(fast)
    x = np.arange(28, dtype=np.float32).reshape(4, 7)
    agree(graph, fast, [x])


def test_a_replacement_of_another_type_is_not_taken():
    """The 0-dim operand of a product with a vector of ones is not the product."""
    graph = capture(lambda x, y: pointwise.where(movement.expand(x, 3) > 0, y, y),
                    typed(float32), typed(float32))
    after = simplified(graph)
    assert ops(after) == ["expand", "gt", "where"]


def test_new_nodes_say_where_they_come_from():
    graph = capture(lambda x, y: x + -y, float32, float32)
    graph.number()
    after = simplified(graph)
    assert after.nodes[0].provenance == "simplify: from %1 add"


@pytest.mark.parametrize("narrow", [bool_, uint8, int8, int32, int64, float16, bfloat16, float32])
@pytest.mark.parametrize("wide", [uint8, int8, int32, int64, float16, bfloat16, float32, float64])
def test_what_a_dtype_holds(wide, narrow):
    """The claim against NumPy, at the ends of the range of the narrow dtype and next to them."""
    if narrow is bool_:
        values = np.array([False, True])
    elif narrow.is_floating_point:
        values = np.arange(-2**15, 2**15).astype(np.uint16).view(narrow.numpy) if (
            narrow.itemsize == 2) else np.float32([1 + 2**-23, 3e38, -1e-45, 2.0**-120, 0.1])
    else:
        ends = np.iinfo(narrow.numpy)
        values = np.array([ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max], narrow.numpy)
    with np.errstate(all="ignore"):
        through = values.astype(wide.numpy).astype(narrow.numpy)
        old, new = values.astype(np.float64), through.astype(np.float64)
    keeps = np.array_equal(old, new, equal_nan=True)
    if narrow.is_signed and not narrow.is_floating_point and wide is uint8:
        keeps = False  # wraps both ways, but uint8 does not hold -1
    if not narrow.is_floating_point and not wide.is_floating_point and narrow is uint8:
        keeps = keeps and wide is not int8
    assert holds(wide, narrow) == keeps


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("exponent", [1.5, -1.5, 2.5, -2.5, 3.5, -3.5])
def test_powers_by_roots_round_only(exponent, kind):
    edge = np.finfo(kind)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -2.5, 1.0, edge.tiny, edge.max, -1e-30]
    far = 80 if kind == "f4" else 700
    x = np.exp(np.random.default_rng(0).uniform(-far, far, 4000))
    x = np.concatenate([special, x]).astype(kind)
    powers = tj.script(lambda x: x ** exponent)
    found = powers(tj.from_numpy(x)).numpy()
    assert "pow" not in {n.op.name for n in rewritten(powers)}
    with np.errstate(all="ignore"):
        exact = x.astype(np.longdouble) ** np.longdouble(exponent)
        expected = exact.astype(kind)
    near = np.isfinite(expected) & (expected != 0)
    ulp = np.spacing(np.abs(expected[near])).astype(np.longdouble)
    assert (np.abs(found[near] - exact[near]) <= 3 * ulp).all()
    assert np.array_equal(found[~near], expected[~near], equal_nan=True)
    signed = ~np.isnan(expected)
    assert (np.signbit(found[signed]) == np.signbit(expected[signed])).all()


def rewritten(function):
    """Nodes of a function's programs after all passes."""
    return [n for graph in function.report().graphs for n in run(graph).nodes]


def test_other_powers_stay():
    for exponent in (4.5, 1.25, -0.7):
        powers = tj.script(lambda x, exponent=exponent: x ** exponent)
        powers(tj.ones(3))
        assert "pow" in {n.op.name for n in rewritten(powers)}
    with config.override(numerics="eager"):
        x = tj.linspace(0.1, 5.0, 50)
        assert (tj.script(lambda x: x ** 1.5)(x) == x ** 1.5).all()
