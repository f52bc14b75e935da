"""Loops of small sizes: kernels of their own, whose results depend on the call's sizes alone."""

import re

import numpy as np
import pytest

import tracejit as tj
from tests.lowering.test_loop_kernel import run, segment
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.lowering.native import emit_kernel, optimized_ir
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.small_sizes import SMALL, STRAIGHT, with_numbers

# Each element's row is summed, and each column; what is between is memory of an iteration.
PAIRS = """
graph pairs(in0: float64[s0_0, s0_1], in1: float64[s1_0]) where
    s0_0=4 in0.size[0],
    s0_1=3 in0.size[1],
    s1_0=20 in1.size[0]:
  %0: float64[s0_0, s0_1], %1: float64[s1_0, s0_0] =
      for_loop(%in0, %in1, trip_count=s1_0, carried=1, scanned=1, reverse=False) {
    graph body(in0: int64[], in1: float64[s0_0, s0_1], in2: float64[]):
      %0: float64[1, s0_0, s0_1] = unsqueeze(%in1, dim=0)
      %1: float64[s0_0, 1, s0_1] = unsqueeze(%in1, dim=1)
      %2: float64[s0_0, s0_0, s0_1] = sub(%0, %1)
      %3: float64[s0_0, s0_0, s0_1] = mul(%2, %2)
      %4: float64[s0_0, s0_0] = sum(%3, dims=(2,), keepdim=False)
      %5: float64[s0_0, s0_0] = add(%4, 0.5)
      %6: float64[s0_0, s0_0] = sqrt(%5)
      %7: float64[s0_0, s0_0, 1] = unsqueeze(%6, dim=2)
      %8: float64[s0_0, s0_0, s0_1] = div(%2, %7)
      %9: float64[s0_0, s0_1] = sum(%8, dims=(1,), keepdim=False)
      %10: float64[s0_0, s0_1] = mul(%9, %in2)
      %11: float64[s0_0, s0_1] = add(%in1, %10)
      %12: float64[s0_0] = sum(%11, dims=(1,), keepdim=False)
      return %11, %12
  }
  return %0, %1
"""


def arrays(rows, columns, steps=20):
    rng = np.random.default_rng(rows * 100 + columns)
    return rng.standard_normal((rows, columns)), 0.01 * rng.random(steps)


def kernels(of, *given):
    """Kernels of the loops that run for these arrays."""
    run(of, *given)
    steps = [step for bound in of.bindings.values() for step in bound.binding.steps]
    return [step.kernel for step in steps if step.instruction.extern == "loop"]


@pytest.mark.parametrize("rows, columns", [(4, 3), (1, 1), (16, 16), (7, 16), (2, 17), (40, 3)])
def test_results(rows, columns):
    given = arrays(rows, columns)
    want = interpret(parse_graph(PAIRS), list(given)).outputs
    for found, expected in zip(run(segment(PAIRS), *given), want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_small_sizes_are_numbers_and_the_length_is_none():
    (kernel,) = kernels(segment(PAIRS), *arrays(4, 3, steps=16))
    assert STRAIGHT in kernel.source
    assert set(re.findall(r"n\d+ = sizes", kernel.source)) == {"n1 = sizes"}
    (other,) = kernels(segment(PAIRS), *arrays(4, 3, steps=999))
    assert other.digest == kernel.digest, "each length has a kernel of its own"


def test_memory_of_an_iteration_is_the_kernels_own():
    (kernel,) = kernels(segment(PAIRS), *arrays(4, 3))
    assert "float64_local(16)" in kernel.source
    assert "_scratch(" not in kernel.source and "t0 = float64_pointer" not in kernel.source


@pytest.mark.parametrize("rows, columns, steps", [(SMALL + 1, 17, 20), (4, 3, 5)])
def test_large_sizes_and_short_loops_share_one_kernel(rows, columns, steps):
    made = segment(PAIRS)
    (kernel,) = kernels(made, *arrays(rows, columns, steps))
    assert STRAIGHT not in kernel.source
    assert kernel is made.program.instructions[0].kernel


def test_rows_are_a_loop_in_a_loop_of_vectors():
    (kernel,) = kernels(segment(PAIRS), *arrays(4, 4))
    assert "row //" not in kernel.source and "row %" not in kernel.source
    assert re.search(r"sqrt\.v\d+f64|fdiv <", optimized_ir([kernel])), "one number at a time"


def test_bits_depend_on_the_sizes_of_the_call_alone():
    orders = [(4, 3), (5, 2), (4, 3), (20, 3)], [(20, 3), (4, 3), (5, 2), (4, 3)]
    found = []
    for order in orders:
        made, results = segment(PAIRS), {}
        for rows, columns in order:
            results[rows, columns] = [x.tobytes() for x in run(made, *arrays(rows, columns))]
        found.append(results)
    assert found[0] == found[1]


@pytest.mark.parametrize("columns, kept", [(16, True), (3, False)])
def test_loops_that_fill_vectors_are_not_written_out_first(columns, kept):
    """Written out, a sum of sixteen would be sixteen loads: LLVM then gathers for several rows."""
    (kernel,) = kernels(segment(PAIRS), *arrays(2, columns))
    text = "\n".join(emit_kernel(kernel))
    assert ("llvm.loop.unroll.disable" in text) == kept
    assert "llvm.loop" not in "\n".join(emit_kernel(segment(PAIRS).program.instructions[0].kernel))


@pytest.mark.parametrize("text, want", [
    ("    if n0 <= 3:\n        y0[0] = 1.0\n    else:\n        y0[0] = 2.0\n", "y0[0] = 1.0"),
    ("    if n0 > 3:\n        y0[0] = 1.0\n", ""),
    ("    for q in range(n0 // 2):\n        y0[q] = 1.0\n",
     "for q in range(1):\n        y0[q] = 1.0"),
    ("    for row in range(0, 2 * n0):\n        a = row % n0\n        b = row // n0\n"
     "        y0[a] = b\n",
     "for b in range(2):\n        for a in range(3):\n            y0[a] = b"),
    ("    for row in range(0, 7):\n        a = row % n0\n        b = row // n0\n"
     "        y0[a] = b\n",
     "for row in range(0, 7):\n        a = row % 3\n        b = row // 3\n        y0[a] = b"),
    ("    y0[n0 // 0 + lo] = 1.0\n", "y0[3 // 0 + lo] = 1.0"),
])  # fmt: skip
def test_what_numbers_decide_is_decided(text, want):
    head = "def f(buffers, operands, sizes, scratch, status, lo, hi):\n"
    head += "    y0 = float64_pointer(buffers, operands[0])\n    n0 = sizes[0]\n"
    kernel = with_numbers(Kernel("f", head + text, "0", 1), {"n0": 3}, [8])
    body = kernel.source.split("operands[0])\n")[1].strip()
    assert body == want
    assert kernel.digest != "0"


@pytest.mark.parametrize("known, vectors", [({"n0": 3}, True), ({}, False)])
def test_code_without_loops_becomes_vectors(known, vectors):
    text = "def f(buffers, operands, sizes, scratch, status, lo, hi):\n"
    text += "    y0 = float64_pointer(buffers, operands[0])\n    n0 = sizes[0]\n"
    text += "".join(f"    y0[{k}] = y0[{k}] / y0[{k + 4}]\n" for k in range(4))
    kernel = Kernel("f", f"from tracejit.jit.lowering.abi import float64_pointer\n{text}", "0", 1)
    kernel = with_numbers(kernel, known, [64]) if known else kernel
    assert bool(re.search(r"fdiv (contract )?<4 x double>", optimized_ir([kernel]))) == vectors


def test_a_while_that_stops_and_goes_on_keeps_its_decision():
    @tj.script
    def count(x, n):
        i = tj.zeros((), dtype=tj.int64)
        while i < n:
            x = x * 0.5 + 1.0
            i = i + 1
        return x, i

    x, i = count(tj.ones(3, dtype=tj.float64), tj.tensor(100_000))
    assert i.item() == 100_000
    np.testing.assert_array_equal(x.numpy(), [2.0, 2.0, 2.0])


REPEATED = """
graph repeated(in0: float64[s0_0], in1: float64[s0_0, s0_0], in2: float64[s1_0, s0_0]) where
    s0_0=4 in0.size[0],
    s1_0=20 in2.size[0]:
  %0: float64[s0_0], %1: float64[s0_0, s0_0] =
      for_loop(%in0, %in1, %in2, trip_count=s1_0, carried=2, scanned=1, reverse=False) {
    graph body(in0: int64[], in1: float64[s0_0], in2: float64[s0_0, s0_0], in3: float64[s0_0]):
      %0: float64[s0_0, 1] = unsqueeze(%in3, dim=1)
      %1: float64[s0_0, s0_0] = mul(%0, %in1)
      %2: float64[s0_0, s0_0] = tanh(%1)
      %3: float64[s0_0, 1] = sum(%2, dims=(1,), keepdim=True)
      %4: float64[s0_0] = squeeze(%3, dims=(1,))
      %5: float64[s0_0, s0_0] = add(%in2, %2)
      return %4, %5
  }
  return %0, %1
"""


def test_an_iteration_computes_a_function_once():
    """Two readers of a function's values read what was stored: memory of an iteration is near."""
    rng = np.random.default_rng(1)
    given = rng.standard_normal(4), rng.standard_normal((4, 4)), 0.1 * rng.random((20, 4))
    made = segment(REPEATED)
    want = interpret(parse_graph(REPEATED), list(given)).outputs
    for found, expected in zip(run(made, *given), want, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert made.program.instructions[0].kernel.source.count("= tanh_float64(") == 1


def test_the_report_counts_the_kernel_of_these_sizes(tmp_path):
    @tj.script
    def steps(x, times):
        for t in times:
            x = x * 0.25 + (x * x).sum() * t
        return x

    with tj.config.override(cache_dir=str(tmp_path)):
        steps(tj.ones(7), 0.125 * tj.ones(21))
        before = steps.report().kernels_compiled
        steps(tj.ones(6), 0.125 * tj.ones(21))
    assert steps.report().kernels_compiled == before + 1
