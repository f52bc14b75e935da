"""The interpreter on Tensors: the tape records, so captured graphs can be differentiated again."""

import numpy as np

import tracejit
from tracejit.core.memory.devices import CPU
from tracejit.core.ops import movement, pointwise
from tracejit.core.ops.types import TensorType, float32, float64
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import interpret
from tracejit.nn import functional


def cubes(detached=False):
    """x -> x * x * x, the last product perhaps under no_grad; s0 elements."""
    graph = Graph("cubes")
    n = graph.scope.symbol(3)
    graph.symbol_sources["s0"] = ("size", 0, 0)
    x = graph.input(TensorType(float64, (n,), CPU), "x")
    square = x * x
    graph.detached = detached
    graph.outputs = [movement.reshape(square * x, n, 1)]
    return graph


def test_second_derivatives_of_a_graph():
    x = tracejit.tensor([1.0, 2.0, -3.0, 4.0], dtype=float64, requires_grad=True)
    y, = interpret(cubes(), [x]).outputs
    assert y.shape == (4, 1) and y.requires_grad
    first, = tracejit.autograd.grad(y.sum(), [x], create_graph=True)
    second, = tracejit.autograd.grad(first.sum(), [x])
    np.testing.assert_allclose(first.detach().numpy(), 3 * x.detach().numpy() ** 2)
    np.testing.assert_allclose(second.numpy(), 6 * x.detach().numpy())


def test_detached_nodes_run_off_the_tape():
    x = tracejit.tensor([1.0, 2.0], dtype=float64, requires_grad=True)
    y, = interpret(cubes(detached=True), [x]).outputs
    assert not y.requires_grad
    assert tracejit.is_grad_enabled()


def test_composites_keep_their_rules():
    graph = Graph("g")
    x = graph.input(TensorType(float64, (2, 3), CPU), "x")
    graph.outputs = [functional.log_softmax(x, dim=1)]
    value = tracejit.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]], dtype=float64, requires_grad=True)
    out, = interpret(graph, [value]).outputs
    grad, = tracejit.autograd.grad(out[:, 0].sum(), [value])
    again = value.detach().clone().requires_grad_(True)
    expected, = tracejit.autograd.grad(functional.log_softmax(again, dim=1)[:, 0].sum(), [again])
    np.testing.assert_allclose(grad.numpy(), expected.numpy(), rtol=1e-12)


def test_numbers_stand_for_runtime_scalars():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU), "x")
    lr = graph.input(TensorType(float64, (), CPU), "lr")
    lr.is_weak = True
    graph.outputs = [x * (1 - lr)]
    out, = interpret(graph, [tracejit.tensor([1.0, 2.0]), 0.1]).outputs
    assert out.dtype is float32
    np.testing.assert_array_equal(out.numpy(), np.float32([1, 2]) * np.float32(1 - 0.1))


def test_writes_are_values_of_their_own():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU), "x")
    graph.writes = [(x, x), (x, pointwise.exp(x))][1:]
    graph.outputs = [x]
    value = tracejit.tensor([0.0, 0.0], requires_grad=True)
    outputs, writes = interpret(graph, [value])
    (number, written), = writes
    assert number == 0 and not written.requires_grad and outputs[0] is value
    np.testing.assert_array_equal(written.numpy(), np.float32([1, 1]))
    np.testing.assert_array_equal(value.detach().numpy(), np.float32([0, 0]))
