"""Loops as one kernel: what they compute, where they stop, and what keeps them programs."""

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager.state import of_array
from tracejit.core.memory import CPU
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import verify
from tracejit.jit.lowering import loop_kernel
from tracejit.jit.runtime.binding import LONG
from tracejit.jit.runtime.compiled_graph import CompiledGraph
from tracejit.jit.runtime.executable import ProgramError

MODES = ("compiled", "python")


def segment(text, mode="compiled"):
    graph = parse_graph(text)
    verify(graph)
    return CompiledGraph(graph, mode, "fast")


def run(of, *arrays):
    inputs = [of_array(np.asarray(x), CPU) for x in arrays]
    return [x.numpy() for x in of.run(inputs, of.bound(inputs))]


def loops(of):
    """Instructions that are one kernel of a region, by the names of their ops."""
    return [i.host.op.name for i in of.program.instructions if i.extern == "loop"]


def agrees(text, *arrays, mode="compiled"):
    """Check every result, bit for bit, against the interpreter's."""
    made = segment(text, mode)
    graph = parse_graph(text)
    want = interpret(graph, [np.asarray(x) for x in arrays]).outputs
    for found, expected in zip(run(made, *arrays), want, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    return made


COUNT = """
graph count(in0: bool[], in1: int64[], in2: KIND[], in3: int64[]):
  %0: int64[], %1: int64[], %2: KIND[] = while_loop(%in0, %in1, %in2, %in3, carried=2) {
    graph body(in0: int64[], in1: KIND[], in2: int64[]):
      %0: KIND[] = add(%in1, 1)
      %1: int64[] = add(%in0, 1)
      %2: bool[] = lt(%1, %in2)
      return %2, %1, %0
  }
  return %0, %1, %2
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int32", "int64"])
def test_a_while_of_numbers(kind, mode):
    text = COUNT.replace("KIND", kind)
    for going, most in ((True, 37), (True, 0), (False, 9)):
        made = agrees(text, going, np.int64(0), np.dtype(kind).type(3), np.int64(most), mode=mode)
    assert loops(made) == ["while_loop"]


def test_a_long_while_stops_and_goes_on():
    most = 3 * LONG + 5
    found = run(segment(COUNT.replace("KIND", "int64")), True, np.int64(0), np.int64(7), most)
    assert [int(x) for x in found] == [most, most, most + 7]


TURNS = """
graph turns(in0: float64[], in1: float64[], in2: float64[TRIPS], in3: float64[3]):
  %0: float64[], %1: float64[], %2: float64[TRIPS], %3: float64[TRIPS, 3] =
      for_loop(%in0, %in1, %in2, %in3, trip_count=TRIPS, carried=2, scanned=1, reverse=BACK) {
    graph body(in0: int64[], in1: float64[], in2: float64[], in3: float64[], in4: float64[3]):
      %0: float64[] = mul(%in2, 0.5)
      %1: float64[] = add(%0, %in3)
      %2: float64[3] = mul(%in4, %1)
      return %in2, %1, %in1, %2
  }
  return %0, %1, %2, %3
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("back", ["True", "False"])
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_values_change_places(trips, back, mode):
    """A value that is carried to another's place is read before it is written."""
    text = TURNS.replace("TRIPS", str(trips)).replace("BACK", back)
    rng = np.random.default_rng(0)
    made = agrees(text, 1.5, 2.5, rng.random(trips), rng.random(3), mode=mode)
    assert loops(made) == ["for_loop"]


NESTED = """
graph rows(in0: float32[4, 3], in1: float32[3]):
  %0: float32[3] = for_loop(%in1, %in0, trip_count=4, carried=1, scanned=1, reverse=False) {
    graph body(in0: int64[], in1: float32[3], in2: float32[3]):
      %0: float32[] = amax(%in2, dims=(0,), keepdim=False)
      %1: bool[] = gt(%0, 0.5)
      %2: float32[3] = cond(%1, %in1, %in2) {
        graph then(in0: float32[3], in1: float32[3]):
          %0: float32[3] =
              for_loop(%in0, %in1, trip_count=2, carried=1, scanned=0, reverse=False) {
            graph inner(in0: int64[], in1: float32[3], in2: float32[3]):
              %0: float32[3] = add(%in1, %in2)
              return %0
          }
          return %0
        graph otherwise(in0: float32[3], in1: float32[3]):
          %0: float32[3] = neg(%in0)
          return %0
      }
      return %2
  }
  return %0
"""


@pytest.mark.parametrize("mode", MODES)
def test_loops_and_branches_within_a_loop(mode):
    rows = np.array([[0, 1, 2], [0, 0.25, 0], [np.nan, 0, 1], [4, 5, 6]], np.float32)
    made = agrees(NESTED, rows, np.ones(3, np.float32), mode=mode)
    assert loops(made) == ["for_loop"] and len(made.program.instructions) == 1


SIZED = """
graph steps(in0: float32[s0], in1: float32[s0]) where s0=3 in0.size[0]:
  %0: float32[s0] = for_loop(%in0, %in1, trip_count=3, carried=1, scanned=0, reverse=False) {
    graph body(in0: int64[], in1: float32[s0], in2: float32[s0]):
      %0: float32[s0] = mul(%in1, %in2)
      %1: float32[s0] = add(%0, 1.0)
      return %1
  }
  return %0
"""


def test_one_kernel_serves_small_sizes_and_programs_the_large():
    made = segment(SIZED)
    for n in (0, 1, 5, 300, 70000):
        x = np.linspace(0, 1, n, dtype=np.float32)
        want = x
        for _ in range(3):
            want = want * x + np.float32(1)
        np.testing.assert_array_equal(run(made, x, x)[0], want)
        bound = made.bound([of_array(x, CPU)] * 2)
        assert bound.binding.steps[0].paused == (n == 70000)


def test_a_failed_check_ends_the_loop():
    text = """
    graph picks(in0: int64[3], in1: float32[2], in2: float32[]):
      %0: float32[] =
          for_loop(%in2, %in0, %in1, trip_count=3, carried=1, scanned=1, reverse=False) {
        graph body(in0: int64[], in1: float32[], in2: int64[], in3: float32[2]):
          %0: float32[] = index(%in3, %in2, dims=(0,), wrap=True)
          %1: float32[] = add(%in1, %0)
          return %1
      }
      return %0
    """
    made, table = segment(text), np.array([1, 2], np.float32)
    assert run(made, [1, 0, -1], table, np.float32(0))[0] == 5
    with pytest.raises(ProgramError, match="out of bounds.*got 2"):
        run(made, [1, 2, 9], table, np.float32(0))
    assert run(made, [0, 0, 0], table, np.float32(0))[0] == 3


POWERS = """
graph powers(in0: float64[2, 3, 3], in1: float64[2, 3]):
  %0: float64[2, 3, 3], %1: float64[2, 3] =
      for_loop(%in0, %in1, %in0, trip_count=4, carried=2, scanned=0, reverse=False) {
    graph body(in0: int64[], in1: float64[2, 3, 3], in2: float64[2, 3], in3: float64[2, 3, 3]):
      %0: float64[2, 3, 3] = matmul(%in1, %in3)
      %1: float64[2, 3, 3] = permute(%in3, dims=(0, 2, 1))
      %2: float64[2, 3, 1] = reshape(%in2, shape=(2, 3, 1))
      %3: float64[2, 3, 1] = matmul(%1, %2)
      %4: float64[2, 3] = reshape(%3, shape=(2, 3))
      return %0, %4
  }
  return %0, %1
"""


@pytest.mark.parametrize("mode", MODES)
def test_small_products_are_loops_of_the_kernel(mode):
    rng = np.random.default_rng(0)
    x, v = rng.integers(-3, 4, (2, 3, 3)).astype(float), rng.integers(-3, 4, (2, 3)).astype(float)
    made = agrees(POWERS, x, v, mode=mode)
    assert loops(made) == ["for_loop"] and len(made.program.instructions) == 1
    x[1, 0, 2] = np.nan
    agrees(POWERS, x, v, mode=mode)


WITHIN = """
graph halved(in0: int64[], in1: int64[6]):
  %0: int64[], %1: int64[6] =
      for_loop(%in0, %in1, trip_count=6, carried=1, scanned=1, reverse=False) {
    graph body(in0: int64[], in1: int64[], in2: int64[]):
      %0: int64[] = mul(%in2, 1)
      %1: bool[] = gt(%0, 1)
      %2: int64[], %3: int64[] = while_loop(%1, %0, carried=1) {
        graph inner(in0: int64[]):
          %0: int64[] = sub(%in0, 2)
          %1: bool[] = gt(%0, 1)
          return %1, %0
      }
      %4: int64[] = add(%in1, %2)
      return %4, %3
  }
  return %0, %1
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_while_within_a_loop(mode):
    made = agrees(WITHIN, np.int64(0), np.array([9, 0, 2, 1, 30, 3]), mode=mode)
    assert loops(made) == ["for_loop"] and len(made.program.instructions) == 1


def test_a_while_within_a_loop_that_takes_long_runs_op_by_op(monkeypatch):
    """Nothing looks for signals within a kernel, so an inner loop ends it after a while."""
    monkeypatch.setattr(loop_kernel, "MOST_WITHIN", 8)
    made = segment(WITHIN)
    assert int(run(made, np.int64(0), np.array([9, 0, 2, 1, 17, 3]))[0]) == 4 + 1 + 8 + 1
    with pytest.raises(ProgramError, match="while_loop, got 8"):
        run(made, np.int64(0), np.array([9, 0, 2, 1, 19, 3]))

    def halved(rows):
        count = tj.zeros((), dtype=tj.int64)
        for x in rows:
            while x > 1:
                x = x - 2
                count = count + 1
        return count

    scripted = tj.script(halved)
    for longest, expected in ((17, 14), (100, 56), (17, 14)):
        rows = tj.tensor([9, 0, 2, 1, longest, 3] + [0] * 12)
        assert scripted(rows).item() == halved(rows).item() == expected
    report = scripted.report()
    assert report.compiles == report.plain == 1
