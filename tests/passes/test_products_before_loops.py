"""Products of rows leave their loop as one product before it; results differ by rounding."""

import numpy as np
import pytest

from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import verify
from tracejit.jit.passes.dce import dce
from tracejit.jit.passes.products_before_loops import products_before_loops

TEXT = """
graph g(in0: float64[3, 4], in1: float64[TRIPS, 3, 5], in2: float64[4, 5], in3: float64[4, 4],
        in4: float64[4], in5: float64[TRIPS, 3, 4]):
  %0: float64[3, 4], %1: float64[TRIPS, 3, 4], %2: float64[TRIPS, 3, 4] =
      for_loop(%in0, %in1, %in5, %in2, %in3, %in4, trip_count=TRIPS, carried=1, scanned=2,
               reverse=BACK) {
    graph body(in0: int64[], in1: float64[3, 4], in2: float64[3, 5], in3: float64[3, 4],
               in4: float64[4, 5], in5: float64[4, 4], in6: float64[4]):
      %0: float64[5, 4] = permute(%in4, dims=(1, 0))
      %1: float64[3, 4] = matmul(%in2, %0)
      %2: float64[3, 4] = add(%1, %in6)
      %3: float64[4, 4] = permute(%in5, dims=(1, 0))
      %4: float64[3, 4] = matmul(%in1, %3)
      %5: float64[3, 4] = add(%2, %4)
      %6: float64[3, 4] = tanh(%5)
      %7: float64[3, 4] = add(%2, %in3)
      return %6, KEPT
  }
  return %0, %1, %2
"""


def graph_of(kept="%2, %6", trips=6, back=False):
    text = TEXT.replace("TRIPS", str(trips)).replace("KEPT", kept).replace("BACK", str(back))
    graph = parse_graph(text)
    verify(graph)
    return graph


def given(trips=6):
    rng = np.random.default_rng(4)
    shapes = (3, 4), (trips, 3, 5), (4, 5), (4, 4), (4,), (trips, 3, 4)
    return [rng.standard_normal(shape) for shape in shapes]


def loop_of(graph):
    (loop,) = [n for n in graph.nodes if n.op.name == "for_loop"]
    return loop


def inside(graph):
    return [n.op.name for n in loop_of(graph).regions[0].nodes]


def moved(graph, numerics="fast"):
    after = dce(products_before_loops(graph, numerics))
    for part in (after, loop_of(after).regions[0]):
        part.number()
    verify(after)
    return after


def test_rows_of_fewer_dimensions_are_not_added_before():
    text = TEXT.replace("in5: float64[TRIPS, 3, 4])", "in5: float64[TRIPS, 4])")
    text = text.replace("in3: float64[3, 4],\n", "in3: float64[4],\n")
    graph = parse_graph(text.replace("TRIPS", "6").replace("KEPT", "%7, %6")
                        .replace("BACK", "False"))
    assert "matmul" in inside(moved(graph))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("trips", [0, 1, 2, 6])
@pytest.mark.parametrize("kept", ["%1, %6", "%2, %6", "%7, %1", "%6, %4", "%7, %7"])
def test_results_are_the_same(kept, trips, back):
    data = given(trips)
    after = moved(graph_of(kept, trips, back))
    found = interpret(after, data).outputs
    expected = interpret(graph_of(kept, trips, back), data).outputs
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_a_product_that_the_loop_keeps_leaves_it():
    after = moved(graph_of("%1, %6"))
    assert inside(after) == ["add", "matmul", "add", "tanh"]
    assert len(loop_of(after).outputs) == 2  # the product is no result of the loop any more
    assert [n.op.name for n in after.nodes].count("matmul") == 1


def test_sums_of_products_leave_with_them():
    for kept in ("%2, %6", "%7, %6"):
        assert inside(moved(graph_of(kept))) == ["matmul", "add", "tanh"]


def test_a_product_that_the_loop_does_not_keep_stays():
    """Its rows would need memory for all iterations."""
    for kept in ("%6, %6", "%4, %6"):
        after = moved(graph_of(kept))
        assert inside(after).count("matmul") == 2


def test_a_matrix_is_turned_once():
    after = moved(graph_of("%6, %6"))
    assert inside(after) == ["matmul", "add", "matmul", "add", "tanh"]
    assert [n.op.name for n in after.nodes] == ["permute", "clone", "permute", "clone", "for_loop"]


def test_a_carried_matrix_is_turned_each_time():
    text = TEXT.replace("%3: float64[4, 4] = permute(%in5", "%3: float64[4, 3] = permute(%in1")
    text = text.replace("%4: float64[3, 4] = matmul(%in1, %3)",
                        "%8: float64[3, 3] = matmul(%in1, %3)\n"
                        "%4: float64[3, 4] = matmul(%8, %in3)")
    graph = parse_graph(text.replace("TRIPS", "6").replace("KEPT", "%6, %6")
                        .replace("BACK", "False"))
    assert "permute" in inside(moved(graph))


def test_bits_of_eager_mode_are_kept():
    assert inside(moved(graph_of(), "eager")) == inside(dce(graph_of()))
