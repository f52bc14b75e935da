"""Branches and loops in programs on a CUDA device: their regions run op by op."""

import numpy as np
import pytest

import tracejit
from tracejit.core.ops.stacks import live_stacks
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.runtime.compiled_graph import CompiledGraph
from tracejit.jit.runtime.executable import ProgramError

LOOPS = """
graph loops(in0: float32[4] on cuda:0, in1: bool[] on cuda:0):
  %0: float32[4] on cuda:0 = add(%in0, 1.0)
  %1: float32[4] on cuda:0, %2: float32[3, 4] on cuda:0 =
      for_loop(%0, trip_count=3, carried=1, scanned=0, reverse=False) {
    graph body(in0: int64[], in1: float32[4] on cuda:0):
      %0: float32[4] on cuda:0 = mul(%in1, 2.0)
      return %0, %in1
  }
  %3: int64[], %4: float32[4] on cuda:0, %5: int64[1] = while_loop(%in1, %1, carried=1) {
    graph body(in0: float32[4] on cuda:0):
      %0: float32[4] on cuda:0 = mul(%in0, 2.0)
      %1: float32[] on cuda:0 = amax(%0, dims=(0,), keepdim=False)
      %2: bool[] on cuda:0 = lt(%1, 100.0)
      return %2, %0, %in0
  }
  %6: float32[4] on cuda:0 = cond(%in1, %4, %0) {
    graph then(in0: float32[4] on cuda:0, in1: float32[4] on cuda:0):
      %0: float32[] on cuda:0 = sum(%in0, dims=(0,), keepdim=False)
      %1: float32[4] on cuda:0 = add(%in0, %0)
      return %1
    graph else(in0: float32[4] on cuda:0, in1: float32[4] on cuda:0):
      return %in1
  }
  return %2, %3, %4, %5, %6
"""

BACK = """
graph back(in0: int64[], in1: int64[1], in2: float32[4] on cuda:0):
  %0: float32[4] on cuda:0 = unwind_loop(%in0, %in1, %in2, carried=1) {
    graph body(in0: float32[4] on cuda:0, in1: float32[4] on cuda:0):
      %0: float32[4] on cuda:0 = add(%in0, %in1)
      return %0
  }
  return %0
"""


def run(segment, *inputs):
    return segment.run(inputs, segment.bound(inputs))


@pytest.mark.parametrize("mode", ["compiled", "python", "graph"])
def test_loops_and_branches(mode):
    x = np.arange(4, dtype=np.float32)
    for going in (True, False):
        segment = CompiledGraph(parse_graph(LOOPS), mode, "fast")
        rows, count, last, handle, chosen = run(
            segment, tracejit.tensor(x, device="cuda"), tracejit.tensor(going, device="cuda"))
        np.testing.assert_array_equal(rows.cpu().numpy(), [(x + 1) * 2**k for k in range(3)])
        states = [(x + 1) * 8 * 2**k for k in range(3 if going else 1)]
        assert int(count) == len(states) - 1
        np.testing.assert_array_equal(last.cpu().numpy(), states[-1])
        want = states[-1] + states[-1].sum() if going else x + 1
        np.testing.assert_array_equal(chosen.cpu().numpy(), want)
        ones = tracejit.ones(4, device="cuda")
        back = CompiledGraph(parse_graph(BACK), mode, "fast")
        for _ in range(2):
            (found,) = run(back, count, handle, ones)
            np.testing.assert_array_equal(found.cpu().numpy(), 1 + sum(states[:-1]))
        del handle
        assert live_stacks() == 0


def test_a_failure_in_a_region():
    text = """
    graph failing(in0: float32[2] on cuda:0, in1: bool[] on cuda:0):
      %0: float32[2] on cuda:0 =
        for_loop(%in0, %in1, trip_count=2, carried=1, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: float32[2] on cuda:0, in2: bool[] on cuda:0):
          %0: bool[] on cuda:0 = raise_if(%in2, error=error("ValueError", "no"))
          %1: float32[2] on cuda:0 = add(%in1, 1.0)
          return %1
      }
      %1: float32[2] on cuda:0 = add(%0, %in0)
      write %in0 <- %1
      return
    """
    segment = CompiledGraph(parse_graph(text), "compiled", "fast")
    x = tracejit.zeros(2, device="cuda")
    with pytest.raises(ProgramError):
        run(segment, x, tracejit.tensor(True, device="cuda"))
    assert x.cpu().tolist() == [0, 0]
    run(segment, x, tracejit.tensor(False, device="cuda"))
    assert x.cpu().tolist() == [2, 2]
