"""Flags that settle in a loop: the same results, bit for bit, and no flags in the loop's kernel."""

import numpy as np
import pytest

import tracejit as tj
from tests.lowering.test_loop_kernel import MODES, agrees, loops
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.lowering.steady_flags import bodies
from tracejit.jit.runtime.binding import LONG

# The second flag follows the first one an iteration later. Short loops also check a position.
FLAGS = """
graph flags(in0: float64[], in1: float64[TRIPS], in2: int64[2]):
  %0: bool[] = full(shape=(), value=False, dtype=bool, device=device("cpu"))
  %1: bool[] = full(shape=(), value=True, dtype=bool, device=device("cpu"))
  %2: bool[], %3: bool[], %4: bool[], %5: float64[], %6: float64[TRIPS] =
      for_loop(%0, %0, %1, %in0, %in1, %1, %in2, trip_count=TRIPS, carried=4, scanned=1,
               reverse=BACK) {
    graph body(in0: int64[], in1: bool[], in2: bool[], in3: bool[], in4: float64[], in5: float64[],
               in6: bool[], in7: int64[2]):
      %0: bool[] = logical_or(%in1, %in6)
      %1: bool[] = bitwise_and(%in1, %in6)
      %2: bool[] = THIRD
      %3: float64[] = mul(%in4, 0.5)
      %4: float64[] = add(%3, %in5)
      %5: float64[] = where(%in1, %4, %in4)
      %6: float64[] = sub(%5, 1.0)
      %7: float64[] = where(%in2, %6, %5)
      %8: int64[] = index(%in7, %in0, dims=(0,), wrap=True)
      %9: float64[] = where(CHOICE, %7, %5)
      return %0, %1, %2, %7, %9
  }
  return %2, %3, %4, %5, %6
"""


def flags(trips, back=False, third="logical_or(%in3, %in6)", choice="%in2"):
    text = FLAGS.replace("TRIPS", str(trips)).replace("BACK", str(back)).replace("THIRD", third)
    lines = text.replace("CHOICE", choice).splitlines()
    return "\n".join(x for x in lines if "%8: int64" not in x or trips <= 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_flags_that_settle(trips, back, mode):
    text, rows = flags(trips, back), np.arange(float(trips))
    node = parse_graph(text).nodes[2]
    assert len(bodies(node)) == 3
    assert not any(x.op.name == "where" for body in bodies(node) for x in body.nodes)
    made = agrees(text, 8.0, rows, np.array([1, 2]), mode=mode)
    assert loops(made) == ["for_loop"]


def test_a_long_loop_goes_on_with_its_last_body():
    trips = 2 * LONG + 5
    agrees(flags(trips), 8.0, np.random.default_rng(0).random(trips), np.array([1, 2]))


@pytest.mark.parametrize("mode", MODES)
def test_flags_that_go_on_changing(mode):
    """One body for all iterations, which reads the flags."""
    text = flags(5, third="logical_not(%in3)", choice="%in3")
    assert len(bodies(parse_graph(text).nodes[2])) == 1
    agrees(text, 8.0, np.arange(5.0), np.array([1, 2]), mode=mode)


MASKS = """
graph masks(in0: bool[3], in1: float64[3]):
  %0: bool[] = full(shape=(), value=False, dtype=bool, device=device("cpu"))
  %1: bool[], %2: bool[3], %3: float64[3] =
      for_loop(%0, %in0, %in1, trip_count=5, carried=3, scanned=0, reverse=False) {
    graph body(in0: int64[], in1: bool[], in2: bool[3], in3: float64[3]):
      %0: bool[] = clone(%in1)
      %1: bool[3] = bitwise_and(%in1, %in2)
      %2: float64[3] = add(%in3, 1.0)
      %3: bool[3] = flip(%in2, dims=(0,))
      %4: float64[3] = where(%3, %2, %in3)
      return %0, %1, %4
  }
  return %1, %2, %3
"""


@pytest.mark.parametrize("mode", MODES)
def test_masks_are_no_flags(mode):
    agrees(MASKS, np.array([True, False, True]), np.arange(3.0), mode=mode)


def _follows(x, rows):
    """The gradient of `b` arrives from the second iteration of the backward on."""
    a, b, out = x, x * 2, []
    for row in rows:
        a, b = a * 0.5 + b * row, b * 0.25 + a / row
        out.append(a)
    return tj.stack(out).sum()


@pytest.mark.parametrize("length", [17, 40])
def test_gradients_that_arrive_late(length):
    """The last row is 0: a gradient of zeros that is divided by it would be NaN."""
    found, scripted = [], tj.script(_follows)
    for each in (_follows, scripted):
        x = tj.tensor(0.7, dtype=tj.float64, requires_grad=True)
        rows = tj.linspace(1, 2, length, dtype=tj.float64)
        rows[-1] = 0
        rows.requires_grad_()
        found.append([g.tolist() for g in tj.autograd.grad(each(x, rows), (x, rows))])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)
    kernels = [k.ops for k in scripted.report().kernels if "for_loop" in k.ops]
    assert len(kernels) == 2
    assert "where" not in kernels[1] and "bitwise_and" not in kernels[1]
