"""Work that no iteration needs another for: it runs before the loop, and results are the same."""

import numpy as np
import pytest

from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import verify
from tracejit.jit.passes.before_loops import before_loops

TEXT = """
graph g(in0: float64[], in1: float64[9], in2: KIND[9], in3: float64[]):
  %0: float64[], %1: float64[9] =
      for_loop(%in0, %in1, %in2, %in3, trip_count=9, carried=1, scanned=2, reverse=BACK) {
    graph body(in0: int64[], in1: float64[], in2: float64[], in3: KIND[], in4: float64[]):
      %0: float64[] = mul(%in2, %in4)
      %1: float64[] = exp(%0)
      %2: float64[] = div(1.0, %1)
      %3: float64[] = LAST
      %4: float64[] = mul(%in1, %2)
      %5: float64[] = add(%4, %3)
      %6: float64[] = add(%5, %in3)
      return %5, %6
  }
  return %0, %1
"""


def graph_of(last="sub(%2, %in4)", back=False, kind="float64"):
    text = TEXT.replace("LAST", last).replace("BACK", str(back)).replace("KIND", kind)
    graph = parse_graph(text)
    verify(graph)
    return graph


def loop_of(graph):
    (node,) = [n for n in graph.nodes if n.op.name == "for_loop"]
    return node


def inside(graph):
    return [n.op.name for n in loop_of(graph).regions[0].nodes]


@pytest.mark.parametrize("back", [False, True])
def test_results_are_the_same(back):
    rng = np.random.default_rng(1)
    given = [np.array(0.5), rng.standard_normal(9), rng.standard_normal(9), np.array(0.3)]
    want = interpret(graph_of(back=back), given).outputs
    moved = before_loops(graph_of(back=back))
    verify(moved)
    for found, expected in zip(interpret(moved, given).outputs, want, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_costly_work_of_rows_moves_and_what_is_carried_stays():
    moved = before_loops(graph_of())
    assert inside(moved) == ["sub", "mul", "add", "add"]
    assert [n.op.name for n in moved.nodes] == ["mul", "exp", "div", "for_loop"]
    assert loop_of(moved).attributes["scanned"] == 3


@pytest.mark.parametrize("change", ["carried", "cheap", "length", "shape"])
def test_what_stays(change):
    graph = graph_of()
    node = loop_of(graph)
    first = node.regions[0].nodes[0]
    if change == "carried":
        first.inputs = (node.regions[0].inputs[1], first.inputs[1])
    elif change == "cheap":
        for inner in node.regions[0].nodes[1:3]:
            inner.op, inner.inputs = first.op, (first.outputs[0], first.outputs[0])
    elif change == "length":
        node.attributes["trip_count"] = 8
    else:
        node.regions[0].inputs[2].type = node.inputs[1].type
    before = inside(graph)
    assert inside(before_loops(graph)) == before


def test_conversions_stay():
    """A number's type may give way to a row's, where that of a row does not."""
    text = TEXT.replace("mul(%in2, %in4)", "convert(%in3, dtype=float64)")
    text = text.replace("LAST", "sub(%2, %in4)").replace("add(%5, %in3)", "add(%5, %in2)")
    graph = parse_graph(text.replace("BACK", "False").replace("KIND", "float32"))
    verify(graph)
    assert "exp" in inside(before_loops(graph))
