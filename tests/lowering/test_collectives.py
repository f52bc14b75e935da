"""Collectives in graphs and programs: none is dropped, merged or moved; waits come late."""

from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.lowering.library_collectives import MOST_ALOFT, WAITS
from tracejit.jit.lowering.lower import lower
from tracejit.jit.passes.pipeline import run

HEAD = 'graph f(in0: float32[s0] "x", in1: int64[64] "process group", in2: int64[s1] "k") where '
HEAD += "s0=4 in0.size[0], s1=2 in2.size[0]:\n"


def _steps(body: str) -> list[str]:
    """Return the instructions of a program: their ops, waits as such."""
    program = lower(run(parse_graph(HEAD + body)))
    return [WAITS if i.extern == WAITS else " ".join(i.ops) for i in program.instructions]


def test_nobody_reads_it() -> None:
    assert _steps("""\
  %0: float32[s0], %1: int64[2] = all_reduce(%in0, %in1, %in1, op="SUM")
  %2: int64[2] = barrier(%in1, %1)
  %3: float32[s0] = neg(%in0)
  return %3""") == ["all_reduce", "barrier", "neg", "wait", "wait"]


def test_equal_ones_are_two() -> None:
    assert _steps("""\
  %0: float32[s0], %1: int64[2] = all_reduce(%in0, %in1, %in1, op="SUM")
  %2: float32[s0], %3: int64[2] = all_reduce(%in0, %in1, %1, op="SUM")
  %4: float32[s0] = sub(%0, %2)
  return %4""") == ["all_reduce", "all_reduce", "wait", "wait", "sub"]


def test_the_wait_stands_before_the_first_reader() -> None:
    assert _steps("""\
  %0: float32[s0] = exp(%in0)
  %1: float32[s0], %2: int64[2] = all_reduce(%0, %in1, %in1, op="SUM")
  %3: float32[] = sum(%in0, dims=(0,), keepdim=False)
  %4: float32[] = exp(%3)
  %5: float32[s0] = add(%1, %4)
  return %5""") == ["exp", "all_reduce", "sum", "sum", "wait", "exp add"]


def test_what_it_reads_is_not_written_meanwhile() -> None:
    assert _steps("""\
  %0: float32[s0], %1: int64[2] = all_reduce(%in0, %in1, %in1, op="SUM")
  %2: float32[s0] = exp(%in0)
  write %in0 <- %2
  return %0""") == ["all_reduce", "wait", "exp"]


def test_a_check_comes_first() -> None:
    steps = _steps("""\
  %0: float32[s0], %1: int64[2] = all_reduce(%in0, %in1, %in1, op="SUM")
  %2: float32[s1] = index(%in0, %in2, dims=(0,), wrap=True)
  return %0, %2""")
    assert steps.index("index") < steps.index("all_reduce")


def test_a_program_does_not_begin_more_than_there_are_slots_for() -> None:
    lines = [f'  %{2 * k}: float32[s0], %{2 * k + 1}: int64[2] = all_reduce(%in0, %in1, '
             f'%{2 * k - 1 if k else "in1"}, op="SUM")' for k in range(MOST_ALOFT + 6)]  # fmt: skip
    steps = _steps("\n".join([*lines, "  return " + ", ".join(f"%{2 * k}" for k in range(9))]))
    aloft = [steps[:k].count("all_reduce") - steps[:k].count(WAITS) for k in range(len(steps))]
    assert max(aloft) == MOST_ALOFT + 1 and steps.count(WAITS) == MOST_ALOFT + 6


def test_a_check_that_was_made_before_does_not_hold_one_up() -> None:
    steps = _steps("""\
  %0: float32[s1] = index(%in0, %in2, dims=(0,), wrap=True)
  %1: float32[s1] = exp(%0)
  %2: float32[s1], %3: int64[2] = all_reduce(%1, %in1, %in1, op="SUM")
  %4: float32[s0] = exp(%in0)
  %5: float32[s0] = index_put_add(%4, %0, %in2, dims=(0,), wrap=True)
  return %2, %5""")
    assert steps.index("all_reduce") < next(k for k, s in enumerate(steps) if "index_put_add" in s)
