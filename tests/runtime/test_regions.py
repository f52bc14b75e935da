"""Branches and loops in programs: what the interpreter gives, in every mode."""

import gc
import threading
import time

import numpy as np
import pytest

import tracejit
from tests.runtime.region_graphs import Maker
from tracejit import config
from tracejit.core.eager.state import of_array
from tracejit.core.memory import CPU
from tracejit.core.ops.stacks import live_stacks
from tracejit.debug.report import kernels_of
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import GraphError, verify
from tracejit.jit.runtime.compiled_graph import CompiledGraph
from tracejit.jit.runtime.executable import ProgramError
from tracejit.jit.runtime.nan_check import NanFound

MODES = ("compiled", "python", "graph")

# x^(2^k) pushed while its sum is less than `most`.
SQUARES = """
graph squares(in0: DTYPE[2], in1: bool[], in2: DTYPE[]):
  %0: int64[], %1: DTYPE[2], %2: int64[1] = while_loop(%in1, %in0, %in2, carried=1) {
    graph body(in0: DTYPE[2], in1: DTYPE[]):
      %0: DTYPE[2] = mul(%in0, %in0)
      %1: DTYPE[] = amax(%0, dims=(0,), keepdim=False)
      %2: bool[] = lt(%1, %in1)
      return %2, %0, %in0, %1
  }
  return %0, %1, %2
"""
BACK = """
graph back(in0: int64[], in1: int64[1], in2: DTYPE[2], in3: DTYPE[]):
  %0: DTYPE[2], %1: DTYPE[] = unwind_loop(%in0, %in1, %in2, %in3, carried=2) {
    graph body(in0: DTYPE[2], in1: DTYPE[], in2: DTYPE[2], in3: DTYPE[]):
      %0: DTYPE[2] = sub(%in2, %in0)
      %1: DTYPE[] = maximum(%in1, %in3)
      return %0, %1
  }
  return %0, %1
"""


def segment(text, mode="compiled", numerics="fast"):
    graph = parse_graph(text)
    verify(graph)
    return CompiledGraph(graph, mode, numerics)


def run(of, *arrays):
    """Results as arrays. Tensors are taken as they are, arrays become tensors over their memory."""
    inputs = [x if isinstance(x, tracejit.Tensor) else of_array(np.asarray(x), CPU)
              for x in arrays]
    return [x.numpy() for x in of.run(inputs, of.bound(inputs))]


def strided(array):
    return tracejit.from_numpy(array)


@pytest.mark.parametrize("seed", range(45))
def test_random_graphs(seed):
    """Nested regions, empty trips, writes, strided inputs, failures, all dtypes."""
    maker = Maker(seed, failing=seed % 4 == 0)
    graph, mode = maker.graph, MODES[seed % 3]
    made = CompiledGraph(graph, mode, "eager" if seed % 5 == 0 else "fast")
    ran = 0
    for n in (3, 0, 1, 6):
        arrays = maker.inputs(n, seed + n)
        inputs = [strided(x) for x in maker.inputs(n, seed + n)]
        if not graph.inputs[0].contiguous and n in (0, 1):
            continue  # a tensor of these sizes has no strides of its own
        if any(not guard.holds(made.sizes(inputs)) for guard in made.guards):
            continue
        try:
            want = interpret(graph, arrays)
        except GraphError as error:
            assert isinstance(error.__cause__, ValueError)
            with pytest.raises(GraphError if mode == "graph" else ProgramError):
                run(made, *inputs)
            for before, after in zip(arrays, inputs):
                np.testing.assert_array_equal(after.numpy(), before)
            continue
        found = run(made, *inputs)
        ran += 1
        for a, b in zip(found, want.outputs, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        for number, value in want.writes:
            np.testing.assert_array_equal(inputs[number].numpy(), value)
    assert ran or maker.failing
    del arrays, inputs, want, found
    assert live_stacks() == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
def test_a_while_loop_and_its_way_back(mode, dtype):
    """As many iterations as fill several chunks of the stack; unwound twice; freed at the end."""
    forward = segment(SQUARES.replace("DTYPE", dtype), mode)
    back = segment(BACK.replace("DTYPE", dtype), mode)
    kind = forward.graph.inputs[0].dtype.numpy
    one = np.ones(2, kind)
    x = np.array([1, 3], kind)
    for most, states in ((9, [x]), (100, [x, x * x, x**4])):
        count, last, handle = forward.run(
            inputs := [of_array(a, CPU) for a in (x, np.asarray(True), np.asarray(most, kind))],
            forward.bound(inputs))
        assert int(count) == len(states)
        np.testing.assert_array_equal(last.numpy(), states[-1] * states[-1])
        for _ in range(2):
            total, largest = run(back, count, handle, one, np.asarray(5, kind))
            want = one
            for state in reversed(states):
                want = state - want
            np.testing.assert_array_equal(total, want)
            assert largest == max(5, (states[-1] * states[-1])[1])
    count, last, _ = run(forward, x, np.asarray(False), np.asarray(9, kind))
    assert count == 0
    np.testing.assert_array_equal(last, x)
    assert live_stacks() == 1
    del handle
    gc.collect()
    assert live_stacks() == 0


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_many_iterations(mode):
    """More than one chunk of the stack, more than the native driver does between two looks."""
    n = 10_000 if mode == "compiled" else 100
    text = f"""
    graph count(in0: float64[3], in1: bool[]):
      %0: int64[], %1: float64[3], %2: int64[1] = while_loop(%in1, %in0, carried=1) {{
        graph body(in0: float64[3]):
          %0: float64[3] = add(%in0, 1.0)
          %1: float64[] = amax(%0, dims=(0,), keepdim=False)
          %2: bool[] = lt(%1, {n}.0)
          return %2, %0, %in0
      }}
      %3: float64[3] = unwind_loop(%0, %2, %in0, carried=1) {{
        graph body(in0: float64[3], in1: float64[3]):
          %0: float64[3] = mul(%in0, -1.0)
          %1: float64[3] = add(%0, %in1)
          return %1
      }}
      return %0, %1, %3
    """
    made = segment(text, mode)
    x = np.array([0.0, -1, -2])
    count, last, total = run(made, x, np.asarray(True))
    assert count == n
    np.testing.assert_array_equal(last, x + n)
    want = x
    for k in reversed(range(n)):
        want = (x + k) - want
    np.testing.assert_array_equal(total, want)


def test_trips_and_scans():
    text = """
    graph scan(in0: float32[s0, s1], in1: float32[s1]) where s0=3 in0.size[0], s1=4 in0.size[1]:
      %0: float32[s1], %1: float32[s0, s1], %2: float32[s0] =
          for_loop(%in1, %in0, trip_count=s0, carried=1, scanned=1, reverse=REVERSE) {
        graph body(in0: int64[], in1: float32[s1], in2: float32[s1]):
          %0: float32[s1] = maximum(%in1, %in2)
          %1: float32[] = sum(%in2, dims=(0,), keepdim=False)
          return %0, %in1, %1
      }
      return %0, %1, %2
    """
    for reverse in (False, True):
        made = segment(text.replace("REVERSE", str(reverse)))
        for rows, columns in ((3, 4), (0, 4), (1, 1), (5, 0), (64, 33)):
            x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype(np.float32)
            best, states = np.zeros(columns, np.float32), np.zeros_like(x)
            for i in range(rows)[:: -1 if reverse else 1]:
                states[i], best = best, np.maximum(best, x[i])
            found = run(made, x, np.zeros(columns, np.float32))
            for a, b in zip(found, (best, states, x.sum(1))):
                np.testing.assert_array_equal(a, b)


def test_strided_inputs_are_read_as_they_are():
    text = """
    graph read(in0: float32[3, 4] strides[s0, s1], in1: bool[])
    where s0=1 in0.stride[0], s1=3 in0.stride[1]:
      %0: float32[3, 4] = cond(%in1, %in0) {
        graph then(in0: float32[3, 4]):
          %0: float32[3, 4] = softmax(%in0, dim=1)
          return %0
        graph else(in0: float32[3, 4]):
          return %in0
      }
      %1: float32[3, 4], %2: float32[3] =
          for_loop(%0, %in0, trip_count=3, carried=1, scanned=1, reverse=False) {
        graph body(in0: int64[], in1: float32[3, 4], in2: float32[4]):
          %0: float32[] = sum(%in2, dims=(0,), keepdim=False)
          return %in1, %0
      }
      write %in0 <- %1
      return %1, %2
    """
    x = np.arange(12, dtype=np.float32).reshape(4, 3).T.copy("F")
    for taken in (False, True):
        given = strided(x.copy("F"))
        found = run(segment(text), given, np.asarray(taken))
        want = np.exp(x - x.max(1, keepdims=True))
        want = want / want.sum(1, keepdims=True) if taken else x
        np.testing.assert_allclose(found[0], want, rtol=1e-6)
        np.testing.assert_array_equal(found[1], x.sum(1))
        np.testing.assert_array_equal(given.numpy(), found[0])


FAILING = """
graph failing(in0: float32[2], in1: int64[3]):
  %0: float32[2] = for_loop(%in0, %in1, trip_count=3, carried=1, scanned=1, reverse=False) {
    graph body(in0: int64[], in1: float32[2], in2: int64[]):
      FAILURE
      %9: float32[2] = add(%in1, 1.0)
      return %9
  }
  %1: float32[2] = add(%in0, 5.0)
  write %in0 <- %1
  return %0
"""
CHECKS = {
    "raise_if": """%0: bool[] = gt(%in2, 1)
      %1: bool[] = raise_if(%0, error=error("ValueError", "too {large}"))""",
    "index": """%0: int64[1] = reshape(%in2, shape=(1,))
      %1: float32[1] = index(%in1, %0, dims=(0,), wrap=False)""",
    "nested": """%0: bool[] = gt(%in2, 1)
       = cond(%0, %0) {
        graph then(in0: bool[]):
          %0: bool[] = raise_if(%in0, error=error("ValueError"))
          return
        graph else(in0: bool[]):
          return
      }""",
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_a_failure_comes_before_writes(check, mode):
    made = segment(FAILING.replace("FAILURE", CHECKS[check]), mode)
    x = strided(np.zeros(2, np.float32))
    for _ in range(2):  # a failure leaves nothing behind
        with pytest.raises(ProgramError):
            run(made, x, np.array([0, 1, 2]))
        assert x.tolist() == [0, 0]
    (found,) = run(made, x, np.array([0, 1, 0]))
    np.testing.assert_array_equal(found, [3, 3])
    assert x.tolist() == [5, 5]


def test_a_failure_is_not_lost_where_nothing_reads_it():
    text = """
    graph check(in0: float32[2], in1: bool[]):
       = for_loop(%in1, trip_count=2, carried=0, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: bool[]):
          %0: bool[] = raise_if(%in1, error=error("ValueError", "no"))
          return
      }
      %0: float32[2] = add(%in0, 1.0)
      return %0
    """
    for mode in MODES:
        made = segment(text, mode)
        np.testing.assert_array_equal(run(made, np.zeros(2, np.float32), False)[0], [1, 1])
        with pytest.raises(GraphError if mode == "graph" else ProgramError):
            run(made, np.zeros(2, np.float32), True)


def test_an_error_is_found_at_its_line():
    text = FAILING.replace("FAILURE", CHECKS["raise_if"])
    text = text.replace('{large}"))', '{large}"))  # model.py:7 in f: assert n <= 1')
    with pytest.raises(ProgramError, match=r"ValueError is raised.*model.py:7: assert n <= 1"):
        run(segment(text), np.zeros(2, np.float32), np.array([0, 5, 0]))


def test_threads_share_a_program():
    """Each with states of its own, through the native driver and through Python."""
    text = """
    graph steps(in0: float64[3], in1: float64[3]):
      %0: float64[3], %1: float64[40, 3] =
          for_loop(%in0, %in1, trip_count=40, carried=1, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: float64[3], in2: float64[3]):
          %0: float64[3] =
            for_loop(%in1, %in2, trip_count=50, carried=1, scanned=0, reverse=False) {
            graph body(in0: int64[], in1: float64[3], in2: float64[3]):
              %0: float64[3] = add(%in1, %in2)
              return %0
          }
          return %0, %0
      }
      return %0, %1
    """
    made, wrong = segment(text), []
    inputs = [of_array(np.zeros(3), CPU)] * 2
    bound = made.bound(inputs)

    def work(k):
        for _ in range(30):
            pair = [of_array(np.full(3, float(k)), CPU), of_array(np.full(3, k + 1.0), CPU)]
            last, rows = (x.numpy() for x in made.run(pair, bound))
            want = k + (k + 1.0) * 50 * np.arange(1, 41)
            if not (rows == want[:, None]).all() or (last != want[-1]).any():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_bodies_are_shared_by_workers():
    text = """
    graph steps(in0: float32[1000000]):
      %0: float32[1000000], %1: float32[3] =
          for_loop(%in0, trip_count=3, carried=1, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: float32[1000000]):
          %0: float32[1000000] = mul(%in1, 2.0)
          %1: float32[1000000] = sqrt(%0)
          %2: float32[] = amax(%1, dims=(0,), keepdim=False)
          return %1, %2
      }
      return %0, %1
    """
    made = segment(text)
    x = np.random.default_rng(0).random(1000000, np.float32)
    assert made.bound([of_array(x, CPU)]).binding.native.controls[0].region.native.shared
    want, most = x, []
    for _ in range(3):
        want = np.sqrt(want * np.float32(2))
        most.append(want.max())
    found = run(made, x)
    np.testing.assert_array_equal(found[0], want)
    np.testing.assert_array_equal(found[1], most)


def test_products_in_a_body():
    text = """
    graph power(in0: float32[8, 8]):
      %0: float32[8, 8] = for_loop(%in0, %in0, trip_count=4, carried=1, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: float32[8, 8], in2: float32[8, 8]):
          %0: float32[8, 8] = matmul(%in1, %in2)
          return %0
      }
      return %0
    """
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    for numerics in ("fast", "eager"):
        found = run(segment(text, numerics=numerics), x)
        np.testing.assert_allclose(found[0], np.linalg.matrix_power(x, 5), rtol=1e-3)


def test_kernels_of_bodies_are_reported():
    made = segment(SQUARES.replace("DTYPE", "float32"))
    names = [kernel.name for kernel in kernels_of(made)]
    assert names[0] == "host while_loop" and len(names) > 1
    assert all("def " in kernel.source for kernel in kernels_of(made)[1:])


def test_the_first_nan_is_found_in_a_body():
    text = """
    graph roots(in0: float32[2]):
      %0: float32[2] = for_loop(%in0, trip_count=3, carried=1, scanned=0, reverse=False) {
        graph body(in0: int64[], in1: float32[2]):
          %0: float32[2] = sqrt(%in1)
          %1: float32[2] = sub(%0, 1.0)
          return %1
      }
      return %0
    """
    with config.override(check_nans=True), pytest.raises(NanFound):
        run(segment(text), np.array([0.5, 2], np.float32))


def test_an_endless_loop_can_be_interrupted():
    """Signals are seen while the native driver runs."""
    text = """
    graph endless(in0: float32[2], in1: bool[]):
      %0: int64[], %1: float32[2] = while_loop(%in1, %in0, %in1, carried=1) {
        graph body(in0: float32[2], in1: bool[]):
          %0: float32[2] = add(%in0, 1.0)
          return %in1, %0
      }
      return %0, %1
    """
    import signal

    made = segment(text)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        started = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            run(made, np.zeros(2, np.float32), np.asarray(True))
        assert time.perf_counter() - started < 5
    finally:
        signal.signal(signal.SIGALRM, before)
    assert run(made, np.zeros(2, np.float32), np.asarray(False))[0] == 0


def _interrupt(*_):
    raise KeyboardInterrupt
