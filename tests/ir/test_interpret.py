"""The interpreter on arrays: values, sizes bound from shapes, writes, composites, regions,
errors.
"""

import numpy as np
import pytest

from tracejit.core.memory.devices import CPU
from tracejit.core.ops import creation, movement, pointwise, random
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.core.ops.types import TensorType, bfloat16, float32, float64, int64
from tracejit.jit.ir.graph import Graph, Location
from tracejit.jit.ir.interpret import bind_symbols, interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import GraphError

softplus_pair = REGISTRY.get("test_softplus_pair") or Op(
    "test_softplus_pair", "composite", ("x",), outputs=("out", "gate"),
    infer=lambda x, beta: (x.type, x.type),
    body=lambda x, beta: (pointwise.log1p(pointwise.exp(x * beta)) / beta,
                          pointwise.sigmoid(x * beta)))


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def symbolic():
    """x: (s0, s1), contiguous or not; returns x * 2, flattened, and s0 zeros."""
    graph = Graph("g")
    rows, columns = graph.scope.symbol(4), graph.scope.symbol(3)
    graph.symbol_sources.update(s0=("size", 0, 0), s1=("size", 0, 1))
    x = graph.input(TensorType(float32, (rows, columns), CPU), "x")
    flat = movement.reshape(x * 2, rows * columns)
    graph.outputs = [flat, creation.zeros_of(x, TensorType(float32, (rows + 1,), CPU))]
    return graph


@pytest.mark.parametrize("shape", [(4, 3), (2, 5), (0, 3), (1, 1)])
def test_sizes_come_from_the_inputs(shape):
    x = values(*shape)
    flat, zeros = interpret(symbolic(), [x]).outputs
    np.testing.assert_array_equal(flat, (x * 2).reshape(-1))
    assert zeros.shape == (shape[0] + 1,) and zeros.dtype == np.float32


def test_strides_and_learnt_equalities_bind():
    graph = parse_graph("""graph g(in0: float32[s0, s2] strides[s1, 1]) where
        s0=2 in0.size[0], s1=7 in0.stride[0], s2=2: return equal s2 = s0""")
    assert bind_symbols(graph, [values(4, 9)[:3, :3]]) == {"s0": 3, "s1": 9, "s2": 3}


def test_symbols_are_bound_through_equalities_in_both_directions():
    graph = parse_graph("""graph g(in0: float32[s0]) where s0=4 in0.size[0]: return
        equal s0 = s5 equal s6 = 2*s5 + 1 equal s7 = 3 equal s8 = s9""")
    assert bind_symbols(graph, [values(4)]) == {"s0": 4, "s5": 4, "s6": 9, "s7": 3}


def test_python_numbers_stand_for_runtime_scalars():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU), "x")
    lr = graph.input(TensorType(float64, (), CPU), "lr")
    lr.is_weak = True
    graph.outputs = [x * lr]
    out = interpret(graph, [np.float32([1, 2]), 0.1]).outputs[0]
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, np.float32([1, 2]) * np.float32(0.1))


def test_halves_compute_as_eager_does():
    graph = Graph("g")
    x = graph.input(TensorType(bfloat16, (3,), CPU), "x")
    graph.outputs = [x * 1.7 + x]
    x = np.float32([1, 2.5, -3]).astype(bfloat16.numpy)
    out = interpret(graph, [x]).outputs[0]
    product = (x.astype(np.float32) * 1.7).astype(bfloat16.numpy)
    expected = (product.astype(np.float32) + x.astype(np.float32)).astype(bfloat16.numpy)
    assert out.dtype == bfloat16.numpy
    np.testing.assert_array_equal(out, expected)


def test_writes_are_staged():
    """A swap: both new values are of the old state."""
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2, 2), CPU), "x")
    y = graph.input(TensorType(float32, (2, 2), CPU), "y")
    graph.writes = [(x, y), (y, movement.permute(x, 1, 0))]
    a, b = values(2, 2), values(2, 2, seed=1)
    before = a.copy(), b.copy()
    (first, to_x), (second, to_y) = interpret(graph, [a, b]).writes
    assert (first, second) == (0, 1)
    np.testing.assert_array_equal(a, before[0])
    a[...], b[...] = to_x, to_y
    np.testing.assert_array_equal(a, before[1])
    np.testing.assert_array_equal(b, before[0].T)


def test_a_composite_runs_its_body():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (5,), CPU), "x")
    graph.outputs = list(softplus_pair(x, beta=2.0))
    x = values(5)
    out, gate = interpret(graph, [x]).outputs
    np.testing.assert_allclose(out, np.log1p(np.exp(2 * x)) / 2, rtol=1e-6)
    np.testing.assert_allclose(gate, 1 / (1 + np.exp(-2 * x)), rtol=1e-6)


def test_random_nodes_depend_on_state_and_offset():
    graph = Graph("g")
    state = graph.input(TensorType(int64, (2,), CPU), "generator")
    graph.outputs = [graph.append(random.uniform_record, (state,), {
        "offset": k, "shape": (4,), "dtype": float32, "device": CPU}) for k in (0, 1)]
    first, second = interpret(graph, [np.int64([3, 5])]).outputs
    again, _ = interpret(graph, [np.int64([3, 6])]).outputs
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(second, again)


def test_regions_are_functions_to_their_op():
    repeat = REGISTRY.get("test_repeat") or Op(
        "test_repeat", "composite", ("x",), infer=lambda x, times, regions=(): x.type,
        eager=lambda xp, x, times, regions: _repeated(x, times, regions[0]))
    text = """graph g(in0: float32[s0]) where s0=2 in0.size[0]:
      %0: float32[s0] = test_repeat(%in0, times=3) {
        graph step(in0: float32[s0]):
          %0: float32[s0] = full(shape=(s0,), value=1.0, dtype=float32, device=device("cpu"))
          %1: float32[s0] = add(%in0, %0)
          return %1
      }
      return %0"""
    assert repeat.name == "test_repeat"
    out = interpret(parse_graph(text), [np.zeros(4, np.float32)]).outputs[0]
    np.testing.assert_array_equal(out, np.full(4, 3, np.float32))


def _repeated(x, times, step):
    for _ in range(times):
        x, = step(x)
    return x


def test_a_failing_node_names_the_user_line():
    failing = REGISTRY.get("test_failing") or Op(
        "test_failing", "extern", ("x",), infer=lambda x: x.type, eager=lambda xp, x: 1 // 0)
    graph = Graph("g")
    graph.location = Location("train.py", 12, "y = fail(x)")
    x = graph.input(TensorType(float32, (2,), CPU), "x")
    graph.outputs = [failing(x)]
    with pytest.raises(GraphError, match=r"train.py:12: y = fail\(x\)\ntest_failing fails"):
        interpret(graph, [values(2)])


def test_the_number_of_inputs_must_agree():
    with pytest.raises(ValueError):
        interpret(symbolic(), [])


def test_inputs_are_not_modified():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (3,), CPU), "x")
    graph.outputs = [x * 2]
    graph.writes = [(x, graph.outputs[0])]
    array = values(3)
    array.flags.writeable = False
    interpret(graph, [array])
