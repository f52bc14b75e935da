"""Graphs as text, out and in."""

import math

import pytest

from tracejit.core.memory.devices import CPU, device
from tracejit.core.ops import creation, movement, pointwise
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.core.ops.types import TensorType, float16, float32, float64, int64
from tracejit.jit.ir.graph import Graph, Location
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.ir.verify import GraphError, verify

STEP = """\
graph step(
    in0: float32[s0, 10] "x",
    in1: float32[10, 10] strides[1, s1] "model.weight",
    in2: float64[] weak "lr",
    in3: float16[s0, 2] on cuda:1 "a \\"quoted\\" name",
) where
    s0=8 in0.size[0],
    s1=10 in1.stride[1]:
  %0: float32[s0, 10] = add(%in0, -1e-05)  # [cse: from %3 add] net.py:12 in Net.step: y = x # a: b
  %1: float32[] = detached convert(%in2, dtype=float32)
  %2: float32[3*s0 - 3] = full(shape=(3*s0 - 3,), value=-0.0, dtype=float32, device=device("cpu"))
  write %in0 <- %0
  return %0, %1, %2
  guard s0 != 1  # model.py:3
  guard s1 > 2*s0
  equal s1 = s0
  equal (s0 // 2) = 4
"""


def test_a_graph_reads_back_as_itself():
    assert print_graph(parse_graph(STEP)) + "\n" == STEP


def test_everything_the_text_says_is_in_the_graph():
    graph = parse_graph(STEP)
    x, weight, lr, half = graph.inputs
    assert (x.contiguous, weight.contiguous) == (True, False)
    assert str(graph.strides[weight]) == "(1, s1)"
    assert (lr.is_weak, x.is_weak, lr.type) == (True, False, TensorType(float64, (), CPU))
    assert half.dtype is float16 and half.device == device("cuda", 1)
    assert half.source == 'a "quoted" name'
    assert graph.symbol_sources == {"s0": ("size", 0, 0), "s1": ("stride", 1, 1)}
    assert graph.scope.hints == {"s0": 8, "s1": 10}
    add, convert, _ = graph.nodes
    assert add.location == Location("net.py", 12, "y = x # a: b", "Net.step")
    assert add.provenance == "cse: from %3 add"
    assert (add.detached, convert.detached) == (False, True)
    assert graph.writes == [(x, add.outputs[0])]
    assert [str(g) for g in graph.scope.guards] == ["s0 != 1", "s1 > 2*s0"]
    assert graph.scope.guards[0].where == "model.py:3"


def attribute_round_trip(value):
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU))
    graph.append(_ANY, (x,), {"a": value})
    text = print_graph(graph)
    again = parse_graph(text)
    assert print_graph(again) == text
    return again.nodes[0].attributes["a"]


_ANY = REGISTRY.get("test_text_any") or Op(
    "test_text_any", "pointwise", ("x",), infer=lambda x, **attributes: x.type)


@pytest.mark.parametrize("value", [
    0, -7, 10**20, 0.0, -0.0, 1e-300, -2.5, 0.1, float("inf"), float("-inf"), True, False, None,
    "plain", 'a "b" \\ # c\n', "", float32, int64, (), (1,), (1, (2.0, None), "x"), [1, 2], [],
    slice(None, 3, -1), ..., device("cuda", 1), 1 + 2j, complex(-0.0, float("inf")),
], ids=repr)  # fmt: skip
def test_attributes_round_trip(value):
    again = attribute_round_trip(value)
    assert repr(again) == repr(value) and type(again) is type(value)


def test_nan_round_trips():
    assert math.isnan(attribute_round_trip(float("nan")))


@pytest.mark.parametrize("text", [
    "s0", "2*s0", "s0*s1", "-s0 + 3", "4*s0*s1 - 3*s0 + 1", "(s0 // 2)", "(s0 % 3) + 1",
    "max(s0, 3)", "min(s0 + 1, s1)", "((s0 + 1) // s1)", "max((s0 // 2), min(s1, 4))",
    "(7 // s0)", "-(s0 // 2)",
])
def test_sizes_round_trip(text):
    line = f"graph g(in0: float32[{text}]) where s0=5 in0.size[0], s1=7: return %in0"
    once = print_graph(parse_graph(line))
    again = parse_graph(once)
    assert print_graph(again) == once
    values = {"s0": 5, "s1": 7}
    expected = eval(text, {"max": max, "min": min}, values)  # the text is a Python expression
    assert again.inputs[0].shape[0].hint == expected
    assert type(again.inputs[0].shape[0]) is not int


def test_regions_round_trip():
    text = """\
graph f(in0: float32[2], in1: bool[]):
  %0: float32[2] = test_text_any(%in0, a=1) {  # [open: x] f.py:3
    graph then(in0: float32[2]):
      %0: float32[2] = mul(%in0, 2.0)
      return %0
    graph "<lambda>"(in0: float32[2]):
      return %in0
  }
  %1: float32[2] = neg(%0)
  return %1"""
    graph = parse_graph(text)
    assert [r.name for r in graph.nodes[0].regions] == ["then", "<lambda>"]
    assert graph.nodes[0].regions[0].scope is graph.scope
    assert print_graph(graph) == text


def test_long_locations_stay_on_one_line():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU))
    graph.location = Location("/somewhere/else/train.py", 3, "  y = (x +\n       1)", "<lambda>")
    graph.outputs = [x + 1]
    assert "  # train.py:3 in <lambda>: y = (x + 1)\n" in print_graph(graph)


@pytest.mark.parametrize("text, message", [
    ("graph g(): return %0", r"line 1: %0 is not defined"),
    ("graph g(in0: float33[2]): return", r"no dtype named 'float33'"),
    ("graph g(in0: float32[2]):\n %0: float32[2] = nope(%in0) return",
     r"line 2: no op named 'nope'"),
    ("graph g(in0: float32[2], in0: float32[2]): return", r"%in0 is defined twice"),
    ("graph g(in0: float32[2]: return", r"expected \), got ':'"),
    ("graph g(in0: float32[2]): return ?", r"line 1: cannot read"),
    ("graph g(): return graph", r"expected end, got 'graph'"),
    ("", r"expected graph, got 'the end'"),
    ("graph g(in0: float32[f(2)]): return", r"cannot call 'f'"),
])
def test_what_is_no_graph_is_refused(text, message):
    with pytest.raises(GraphError, match=message):
        parse_graph(text)


def test_a_recorded_graph_reads_back_and_verifies():
    graph = Graph("g")
    n = graph.scope.symbol(5)
    graph.symbol_sources["s0"] = ("size", 0, 0)
    x = graph.input(TensorType(float32, (n, 3), CPU), "x")
    y = pointwise.where(x > 0, x, creation.zeros_like(x)) * 2
    graph.outputs = [movement.permute(movement.reshape(y, 3 * n), 0)]
    again = parse_graph(print_graph(graph))
    verify(again)
    assert print_graph(again) == print_graph(graph)
