"""Graphs under review: programs as captured and differentiated, and what the passes make of them.

A change of ops, rules or passes shows here as a diff. `make golden` rewrites the files. Each file
holds two graphs, which read back and verify.
"""

import os
from pathlib import Path

import pytest

from tracejit.jit.ir.graph import Graph, Location, Value
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import verify
from tracejit.core.memory.devices import CPU
from tracejit.nn import functional
from tracejit.core.ops import creation, linalg
from tracejit.core.ops.cotangents import cotangents
from tracejit.core.ops.types import TensorType, float32, float64, int64
from tracejit.jit.passes import pipeline

HERE = Path(__file__).parent
SPLIT = "\n\n# after all passes\n"


def backward(graph: Graph, loss: Value) -> dict[Value, Value]:
    """The gradients of everything `loss` depends on, appended by the ops' own rules."""
    grads = {loss: creation.ones_like(loss)}
    graph.detached = True
    for node in graph.nodes[-2::-1]:
        given = [grads.get(v) for v in node.outputs]
        if all(g is None for g in given):
            continue
        needed = [k for k, x in enumerate(node.inputs)
                  if isinstance(x, Value) and x.dtype.is_floating_point and x.source != "x"]
        found = cotangents(node.op, given, node.inputs, node.outputs, node.attributes, needed)
        for k, grad in zip(needed, found):
            x = node.inputs[k]
            if grad is not None:
                grads[x] = grads[x] + grad if x in grads else grad
    return grads


class Program:
    """A graph in the making: inputs by name, one user line after the other."""

    def __init__(self, name):
        self.graph = Graph(name)
        self.rows = self.graph.scope.symbol(8)
        self.graph.symbol_sources["s0"] = ("size", 0, 0)
        self.parameters = []

    def given(self, source, *shape, dtype=float32):
        return self.graph.input(TensorType(dtype, (self.rows, *shape), CPU), source)

    def parameter(self, source, *shape):
        self.parameters.append(self.graph.input(TensorType(float32, shape, CPU), source))
        return self.parameters[-1]

    def line(self, number, text):
        self.graph.location = Location("train.py", number, text, "step")

    def number(self, source):
        value = self.graph.input(TensorType(float64, (), CPU), source)
        value.is_weak = True
        return value


def mlp_step():
    """A classifier trained by gradient descent with momentum."""
    p = Program("mlp_step")
    x, y = p.given("x", 64), p.given("y", dtype=int64)
    w1, b1 = p.parameter("fc1.weight", 32, 64), p.parameter("fc1.bias", 32)
    w2, b2 = p.parameter("fc2.weight", 10, 32), p.parameter("fc2.bias", 10)
    p.line(2, "h = relu(fc1(x))")
    h = functional.relu(linalg.linear(x, w1, b1))
    p.line(3, "loss = cross_entropy(fc2(h), y)")
    loss = functional.cross_entropy(linalg.linear(h, w2, b2), y)
    p.line(4, "loss.backward()")
    grads = backward(p.graph, loss)
    p.line(5, "optimizer.step()")
    lr = p.number("lr")
    for w in p.parameters:
        momentum = p.graph.input(w.type, f"momentum of {w.source}")
        velocity = momentum * 0.9 + grads[w]
        p.graph.writes += [(momentum, velocity), (w, w - velocity * lr)]
    p.graph.outputs = [loss]
    return p.graph


def layer_norm_gelu():
    """A normalised activation and its gradients: statistics are computed once."""
    p = Program("layer_norm_gelu")
    x = p.given("features", 32)
    weight, bias = p.parameter("norm.weight", 32), p.parameter("norm.bias", 32)
    p.line(2, "y = gelu(layer_norm(x, (32,), weight, bias))")
    y = functional.gelu(functional.layer_norm(x, (32,), weight, bias))
    p.line(3, "y.sum().backward()")
    loss = y.sum()
    grads = backward(p.graph, loss)
    p.graph.outputs = [y, grads[x], grads[weight], grads[bias]]
    return p.graph


def softmax_rows():
    """The smallest program that shows opening, merging and symbolic sizes."""
    p = Program("softmax_rows")
    x = p.given("scores", 100)
    p.line(2, "return softmax(x, 1)")
    p.graph.outputs = [functional.softmax(x, dim=1)]
    return p.graph


@pytest.mark.parametrize("program", [mlp_step, layer_norm_gelu, softmax_rows],
                         ids=lambda program: program.__name__)
def test_graph(program):
    graph = program()
    captured, final = print_graph(graph), print_graph(pipeline.run(graph))
    text = f"{captured}{SPLIT}{final}\n"
    path = HERE / f"{program.__name__}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; `make golden` rewrites it"
    for part in text.split(SPLIT):
        again = parse_graph(part)
        verify(again)
        assert print_graph(again) == part.rstrip("\n")
