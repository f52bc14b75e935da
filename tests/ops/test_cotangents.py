"""The one function that calls gradient rules: what it saves, un-broadcasts and casts."""

import pytest

import tracejit
from tracejit.core.ops import pointwise
from tracejit.core.ops.cotangents import cotangents, saved, sum_to_shape, type_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import TensorType, float16, float32, float64
from tracejit.jit.ir.graph import Graph


def graph_inputs(*types):
    graph = Graph()
    return graph, [graph.input(TensorType(d, shape)) for d, shape in types]


@pytest.mark.parametrize("name, needed, operands, outputs", [
    ("add", (0, 1), (), ()), ("mul", (0,), (1,), ()), ("mul", (0, 1), (0, 1), ()),
    ("tanh", (0,), (), (0,)), ("where", (1,), (0,), ()), ("pow", (0,), (0, 1), ()),
    ("pow", (1,), (0, 1), (0,)), ("softmax", (0,), (), (0,)), ("linear", (2,), (), ()),
])  # fmt: skip
def test_rules_save_only_what_they_read(name, needed, operands, outputs):
    op = REGISTRY[name]
    found = saved(op, needed, len(op.operands))
    assert (found.operands, found.outputs) == (operands, outputs)


def test_gradients_are_summed_over_what_was_repeated():
    graph, (x, y) = graph_inputs((float32, (4, 3)), (float32, (4, 1)))
    out = x * y
    left, right = cotangents(REGISTRY["mul"], [out], [x, y], [out], {}, [0, 1])
    assert left.shape == (4, 3) and right.shape == (4, 1)
    assert [n.op.name for n in graph.nodes].count("sum") == 1


def test_symbolic_sizes_are_unbroadcast_without_guards():
    graph = Graph()
    n = graph.scope.symbol(1)
    x = graph.input(TensorType(float32, (n, 3)))
    y = graph.input(TensorType(float32, (3,)))
    out = x + y
    left, right = cotangents(REGISTRY["add"], [out], [x, y], [out], {}, [0, 1])
    assert left is out and right.shape == (3,)
    assert graph.scope.guards == []


def test_a_type_will_do_for_what_is_not_saved():
    graph, (x,) = graph_inputs((float32, (2, 1)))
    grad = graph.input(TensorType(float32, (2, 3)))
    kinds = [type_of(x), TensorType(float32, (3,))]
    left, right = cotangents(REGISTRY["add"], [grad], kinds, [None], {}, [0, 1])
    assert left.shape == (2, 1) and right.shape == (3,)


def test_the_gradient_has_the_operands_dtype():
    x = tracejit.tensor([1.5, 2.5], dtype=float32, requires_grad=True)
    (x.double() * tracejit.tensor([0.1, 0.2], dtype=float64)).sum().backward()
    assert x.grad.dtype is float32
    assert x.grad.tolist() == pytest.approx([0.1, 0.2])


def test_rules_that_compute_in_float32_are_cast_back():
    graph, (x, w) = graph_inputs((float16, (2, 3)), (float16, (3,)))
    out = REGISTRY["layer_norm"](x, w, None, dims=(1,), eps=1e-5)
    node = out.node
    found = cotangents(node.op, [out], node.inputs, [out], node.attributes, [0, 1])
    assert [g.dtype for g in found] == [float16, float16]


def test_operands_without_rule_get_none():
    graph, (x,) = graph_inputs((float32, (2,)))
    condition = x > 0
    out = pointwise.where(condition, x, 0)
    found = cotangents(REGISTRY["where"], [out], out.node.inputs, [out], {}, [0, 1])
    assert found[0] is None and found[1].shape == (2,)


def test_missing_gradients_of_other_outputs_are_zeros():
    x = tracejit.tensor([[1.0, 3.0, 2.0]], requires_grad=True)
    values, _ = x.max(1)
    values.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 0.0]]


def test_leading_dimensions_are_removed():
    grad = tracejit.ones(2, 3, 4)
    assert sum_to_shape(grad, (3, 1)).tolist() == [[8.0]] * 3
    assert sum_to_shape(grad, (2, 3, 4)) is grad
