"""Running sums of products leave their loop as one product; results differ by rounding."""

import numpy as np
import pytest

from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import verify
from tracejit.jit.passes.after_loops import after_loops
from tracejit.jit.passes.dce import dce

# The loop of a gradient: `in1` goes backward; the gradients of a weight and a bias are sums.
TEXT = """
graph g(in0: float64[3, 4], in1: float64[TRIPS, 3, 5], in2: float64[TRIPS, 3, 4],
        in3: float64[5, 4], in4: float64[4], in5: float64[4, 4]):
  %0: float64[5, 4] = full(shape=(5, 4), value=0, dtype=float64, device=device("cpu"))
  %1: bool[] = full(shape=(), value=True, dtype=bool, device=device("cpu"))
  %2: float64[3, 4], %3: float64[5, 4], %4: float64[4], %5: bool[] =
      for_loop(%in0, START, %in4, %1, %in1, %in2, %in5, trip_count=TRIPS, carried=4, scanned=2,
               reverse=BACK) {
    graph body(in0: int64[], in1: float64[3, 4], in2: float64[5, 4], in3: float64[4], in4: bool[],
               in5: float64[3, 5], in6: float64[3, 4], in7: float64[4, 4]):
      %0: float64[3, 4] = mul(%in1, %in6)
      %1: float64[3, 4] = matmul(%0, %in7)
      LEFT
      %3: float64[5, 4] = matmul(%2, RIGHT)
      %4: float64[5, 4] = ADD
      %5: bool[] = FLAG
      %6: float64[5, 4] = where(%5, %4, %in2)
      %7: float64[1, 4] = sum(%0, dims=(0,), keepdim=True)
      %8: float64[4] = reshape(%7, shape=(4,))
      %9: float64[4] = add(%in3, %8)
      NEXT
      return %10, %6, %9, %5
  }
  return %2, %3, %4
"""
USUAL = {
    "TRIPS": "6", "BACK": "True", "START": "%0", "ADD": "add(%in2, %3)", "RIGHT": "%0",
    "LEFT": "%2: float64[5, 3] = permute(%in5, dims=(1, 0))", "FLAG": "logical_or(%in4, %in4)",
    "NEXT": "%10: float64[3, 4] = neg(%1)",
}  # fmt: skip
WITH_NUMBER = """%11: float64[] = sum(NUMBER, dims=(0, 1), keepdim=False)
      %10: float64[3, 4] = add(%1, %11)"""
FULL = 'full(shape=SHAPE, value=1.0, dtype=float64, device=device("cpu"))'


def graph_of(**parts):
    text = TEXT
    for name, part in {**USUAL, **parts}.items():
        text = text.replace(name, part)
    graph = parse_graph(text)
    verify(graph)
    return graph


def given(trips=6):
    rng = np.random.default_rng(3)
    shapes = (3, 4), (trips, 3, 5), (trips, 3, 4), (5, 4), (4,), (4, 4)
    return [rng.standard_normal(shape) for shape in shapes]


def loop_of(graph):
    (loop,) = [n for n in graph.nodes if n.op.name == "for_loop"]
    return loop


def inside(graph):
    return [n.op.name for n in loop_of(graph).regions[0].nodes]


def moved(graph, numerics="fast"):
    after = dce(after_loops(graph, numerics))
    for part in (after, loop_of(after).regions[0]):
        part.number()
    verify(after)
    return after


def agree(after, before, data):
    found, expected = interpret(after, data).outputs, interpret(before, data).outputs
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("start", ["%0", "%in3"])
@pytest.mark.parametrize("back", ["False", "True"])
@pytest.mark.parametrize("trips", [0, 1, 2, 6])
def test_results_are_the_same(trips, back, start):
    parts = {"TRIPS": str(trips), "BACK": back, "START": start}
    after = moved(graph_of(**parts))
    agree(after, graph_of(**parts), given(trips))
    assert inside(after) == ["mul", "matmul", "neg"]
    outside = [n.op.name for n in after.nodes]
    assert outside.count("matmul") == 1 and outside.count("sum") == 1
    assert outside.count("add") == 1 + (start != "%0")  # the bias's sum begins at in4


STAYS = {
    "the sum is read": {"NEXT": WITH_NUMBER.replace("NUMBER", "%in2")},
    "its new value is read": {"NEXT": WITH_NUMBER.replace("NUMBER", "%4")},
    "the product is read": {"NEXT": WITH_NUMBER.replace("NUMBER", "%3")},
    "a flag decides": {"FLAG": "lt(%in0, 3)"},
    "no sum": {"ADD": "sub(%in2, %3)"},
    "one matrix is fixed": {
        "LEFT": f"{USUAL['LEFT']}\n%11: float64[3, 4] = {FULL.replace('SHAPE', '(3, 4)')}",
        "RIGHT": "%11"},
    "its rows are kept": {"%9, %5\n": "%9, %5, %in2\n", ", %5: bool[] =": ", %5: bool[], "
                          "%6: float64[6, 5, 4] =", "return %2, %3, %4": "return %2, %3, %4, %6"},
    "no rows of its shape": {
        "LEFT": f"%11: float64[5, 9] = {FULL.replace('SHAPE', '(5, 9)')}\n"
                "%2: float64[5, 9] = mul(%11, %in0)\n"
                f"%12: float64[9, 4] = {FULL.replace('SHAPE', '(9, 4)')}\n"
                "%13: float64[9, 4] = mul(%12, %in0)",
        "RIGHT": "%13"},
}  # fmt: skip


@pytest.mark.parametrize("why", STAYS)
def test_what_stays(why):
    after = moved(graph_of(**STAYS[why]))
    agree(after, graph_of(**STAYS[why]), given())
    assert inside(after).count("matmul") == 2
    assert "matmul" not in [n.op.name for n in after.nodes]


def test_bits_of_eager_mode_are_kept():
    assert inside(moved(graph_of(), "eager")).count("matmul") == 2


def test_what_is_added_may_be_several_products():
    text = {
        "LEFT": USUAL["LEFT"] + "\n%13: float64[5, 3] = permute(%in5, dims=(1, 0))\n"
                "%11: float64[5, 4] = matmul(%13, %in6)\n"
                "%14: float64[5, 4] = matmul(%2, %0)\n%12: float64[5, 4] = add(%14, %11)",
        "ADD": "add(%in2, %12)",
    }  # fmt: skip
    after = moved(graph_of(**text))
    agree(after, graph_of(**text), given())
    assert inside(after) == ["mul", "matmul", "neg"]
    assert len(loop_of(after).outputs) == 2  # one row serves the products and the bias


def test_a_turned_product_is_made_turned():
    """BLAS writes it as it is wanted: no kernel has to turn it."""
    text = {
        "LEFT": USUAL["LEFT"] + "\n%13: float64[4, 3] = permute(%0, dims=(1, 0))\n"
                "%14: float64[4, 5] = matmul(%13, %in5)\n"
                "%11: float64[5, 4] = permute(%14, dims=(1, 0))",
        "ADD": "add(%in2, %11)",
    }  # fmt: skip
    after = moved(graph_of(**text))
    agree(after, graph_of(**text), given())
    (product,) = [n for n in after.nodes if n.op.name == "matmul"]
    assert any(x is product.outputs[0] for x in after.outputs)


def test_the_memory_of_rows_at_most_doubles():
    """Rows of (3, 4) are read once: so one more is kept, and a sum that needs another one stays."""
    twice = {
        "LEFT": USUAL["LEFT"] + "\n%11: float64[3, 4] = neg(%0)\n"
                "%12: float64[5, 4] = matmul(%2, %11)\n"
                "%14: float64[5, 4] = matmul(%2, %0)\n%13: float64[5, 4] = add(%14, %12)",
        "ADD": "add(%in2, %13)",
    }  # fmt: skip
    assert inside(moved(graph_of(**twice))).count("matmul") == 3
    agree(moved(graph_of(**twice)), graph_of(**twice), given())
