"""Random programs with control flow and state: samples agree, and wrong ones are noticed. The long
run: `python -m tests.random_programs` (docs/testing.md).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import tracejit as tj
from tests.random_programs.choices import Choices
from tests.random_programs.conditions import DECIDED
from tests.random_programs.control_coverage import PLACES, REGIONS, Control
from tests.random_programs.generator import generate_flow, program_of
from tests.random_programs.minimise import minimise
from tests.random_programs.observe import observe
from tests.random_programs.program import (
    Argument,
    Block,
    Call,
    Clause,
    Memory,
    Program,
    Step,
    printed,
    walk,
)
from tests.random_programs.runner import Way, check, difference, tolerance_of
from tests.random_programs.tolerance import exact


def block(*heads_and_lines: tuple[str, ...]) -> Block:
    return Block(tuple(Clause(head, steps(*lines)) for head, *lines in heads_and_lines))


def steps(*lines: str | Block) -> tuple[Step | Block, ...]:
    return tuple(
        line if isinstance(line, Block) else Step((line,), (), frozenset()) for line in lines
    )


def program(*lines: str | Block, output: str = "x0", calls: tuple[Call, ...] = ()) -> Program:
    """A program of one tensor x0, a number x1, an object o, a global and a cell."""
    return Program(
        (Memory("m0", "float32", ((6,),)), Memory("m1", "float32", ((6,),))),
        (Argument("x0", ("m0",), "m0"), Argument("x1", ("2",)), Argument("o", ("o",))),
        steps(*lines),
        (output,),
        calls or (Call(0), Call(0, values=1), Call(0, again=True)),
        preamble=(*steps("G0 = 1"), block(("class State:",))),
        cells=("c0 = 1",),
        once=("o = State()", "o.k = 0", "o.log = []", "o.l = []", "o.d = {}"),
        each=("o.t = m1",),
    )


IF = block(("if x0.sum() > 0:", "x0 = x0 * 2"), ("else:", "x0 = x0 * 3"))
RIGHT_AND_WRONG = {
    "decided once": ([IF], ["x0 = x0 * 2"]),
    "a side lost": (["o.k += 1", IF], ["o.k += 1", block(("if x0.sum() > 0:", "x0 = x0 * 2"))]),
    "an iteration less": (
        [block(("for i in range(3):", "x0 = x0 + i"))],
        [block(("for i in range(2):", "x0 = x0 + i"))],
    ),
    "a number that was frozen": (["o.k += 1", "x0 = x0 * o.k"], ["o.k += 1", "x0 = x0 * 1"]),
    "a write that was lost": (["x0.mul_(2)"], ["x0 = x0 * 2"]),
    "an append twice": (["o.l.append(x0)"], ["o.l.append(x0)", "o.l.append(x0)"]),
    "an append of a copy": (["o.l.append(x0)"], ["o.l.append(x0.clone())"]),
    "another object": (["o.l.append(x0)"], ["o.l = [*o.l, x0]"]),
    "a result that is a copy": (["x0 = x0"], ["x0 = x0.clone()"]),
    "a result that is another view": (["x0 = x0"], ["x0 = x0[:]"]),
    "a number of another type": (["o.k = 3"], ["o.k = 3.0"]),
    "a size for a number": (["o.k = 6"], ["o.k = tj.Size([6])"]),
    "a bool for a number": (["o.k = 1"], ["o.k = True"]),
    "a tensor for a truth": (["o.k = True"], ["o.k = tj.ones(()) > 0"]),
    "a global": (["G0 = 2"], ["x0 = x0"]),
    "a cell": (["c0 = 2"], ["x0 = x0"]),
    "an attribute": (["o.t = x0 * 2"], ["o.u = x0 * 2"]),
    "a key": (["o.d['a'] = x0"], ["o.d['b'] = x0"]),
    "an attribute bound to a copy": (["o.t = o.t"], ["o.t = o.t * 1"]),
    "effects in another order": (
        ["o.log.append('a')", "o.log.append(o.k)"],
        ["o.log.append(o.k)", "o.log.append('a')"],
    ),
    "an exception": (["if x0.sum() > 0: raise ValueError('a')"], ["x0 = x0"]),
    "another message": (["raise ValueError('a')"], ["raise ValueError('b')"]),
    "an effect before an exception": (
        ["o.k += 1", "raise ValueError('a')"],
        ["raise ValueError('a')"],
    ),
    "a generator that moved": (["x0 = x0 * 1"], ["x0 = x0 * 1", "tj.rand(1)"]),
}


@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_a_difference_is_seen(name: str) -> None:
    right, wrong = (program(*lines) for lines in RIGHT_AND_WRONG[name])
    expected, got = observe(right), observe(wrong)
    for compare in (exact, tolerance_of(right, expected, runs=24)):
        assert difference(expected, observe(right), compare) is None
        assert difference(got, expected, compare) is not None


def test_what_the_caller_changes_between_calls_arrives() -> None:
    changes = ("o.k = 7", "x1 = 5", "scope['G0'] = 3", "cell('c0', 4)", "o.t = m0", "tj.rand(1)")
    right = program(
        "o.log.append((o.k, x1, G0, c0, o.t is x0, tj.is_grad_enabled()))",
        "x0 = x0 * c0",
        calls=(Call(0), Call(0, changes=changes, no_grad=True)),
    )
    seen = dict(observe(right))
    assert [seen[f"call 1: o log 1 {k}"].tolist() for k in range(4)] == [7, 5, 3, 4]
    assert seen["call 1: o log 1 4"] is True and seen["call 1: o log 1 5"] is False
    assert seen["call 1: generator"].tolist() != seen["call 0: generator"].tolist()
    assert check(right, Way("graph", "eager")) is None


# Decided by the last bit of a sum, in every run another way.
BY_ROUNDING = block(("if (x0.sum() + 1) - x0.sum() - 1 >= 0:", "x0 = x0 * 2"), ("else:", "return"))


SAMPLES = [
    (Way("graph", "eager"), range(8001, 8061, 2)),
    (Way("graph", "eager", "trace"), range(8101, 8125, 2)),
    (Way("graph"), range(8201, 8217, 2)),
    (Way("compiled"), range(8301, 8317, 2)),
    (Way("compiled", "eager"), range(8401, 8405, 2)),
    (Way("python"), range(8501, 8505, 2)),
]


@pytest.mark.parametrize(("way", "seeds"), SAMPLES)
def test_programs_agree(way: Way, seeds: range) -> None:
    found, control = [], Control()
    for seed in seeds:
        captured: list = []
        mismatch = check(program_of(seed), way, told=captured)
        control.add_capture("this way", captured[0])
        if mismatch is not None:
            found.append(f"seed {seed}: {mismatch}")
    assert not found, f"{len(found)} of {len(seeds)} programs differ\n" + "\n".join(found[:3])
    if way == Way("graph", "eager"):  # control flow was captured, not only run again
        counts = control.counts
        assert counts["this way: without a break"] > 0.4 * len(seeds)
        assert counts["this way: without a break, with a region"] > 2
        assert all(counts[f"this way: with {name}"] for name in REGIONS[:3])


def test_what_rounding_decides_is_undecided_and_counted() -> None:
    right = program("o.k = 1", BY_ROUNDING, "o.k = 2")
    expected = observe(right)
    tolerance = tolerance_of(right, expected, runs=24)
    assert tolerance.until is not None and tolerance.skipped > 0
    other = program("o.k = 1", "return")
    assert difference(observe(other), expected, tolerance) is None
    assert difference(observe(other), expected, exact) is not None


def test_another_kind_of_tensor_by_rounding_is_undecided() -> None:
    shifted = "s = (x0.sum() + 1) - x0.sum() - 1"
    right = program(shifted, "o.log.append(s if s >= 0 else s > 0)")
    expected = observe(right)
    tolerance = tolerance_of(right, expected, runs=24)
    assert tolerance.until is None and "call 0: o log 0" in tolerance.others
    numbers = observe(program(shifted, "o.log.append(s)"))
    answers = observe(program(shifted, "o.log.append(s > 0)"))
    assert difference(numbers, answers, exact) is not None
    assert difference(numbers, expected, tolerance) is None
    assert difference(answers, expected, tolerance) is None


def test_what_rounding_does_not_decide_is_compared() -> None:
    right = program("o.k = 1", "x0 = x0 * 2", BY_ROUNDING)
    wrong = program("o.k = 1", "x0.mul_(2)", BY_ROUNDING)
    calls = (Call(0),)
    right, wrong = replace(right, calls=calls), replace(wrong, calls=calls)
    plain = program("o.log.append(f'{x0.sum().item():.1f}')")
    expected = observe(plain)
    assert tolerance_of(plain, expected).until is None
    assert difference(observe(wrong), observe(right), exact) is not None


def test_blocks_become_small() -> None:
    inner = block(("for i in range(3):", "x0 = x0 + 1", "x0 = tj.exp(x0)"), ("else:", "o.k = 1"))
    made = program("o.k += 1", block(("if x1 > 0:", inner), ("else:", "o.k = 2")), "o.t = x0")
    small = minimise(made, lambda p: "exp" in p.text(), seconds=60)
    assert printed(small.steps) == ["x0 = tj.exp(x0)"]
    assert len(small.calls) == 1 and not (small.once or small.each or small.cells)


def test_loops_stay_bounded_while_they_become_small() -> None:
    loop = Block((Clause("while True:", steps("x0 = x0 + 1"), ("k += 1", "if k > 3: break")),))
    small = minimise(program("k = 0", loop), lambda p: "while" in p.text(), seconds=60)
    assert printed(small.steps) == ["while True:", "    k += 1", "    if k > 3: break"]


@pytest.mark.full
def test_programs_cover_every_construct_in_every_place() -> None:
    control, lines = Control(), 0
    for seed in range(1, 1201, 2):
        made = program_of(seed)
        control.add(made)
        lines += len(printed(made.steps))
    constructs = "if elif for while ternary break continue return raise assert def try rebinding"
    assert {mark[0] for mark in control.marks} >= {*constructs.split(), "while True", "and/or/not"}
    for what in ("if", "for", "while"):
        assert {place for w, place, _ in control.marks if w == what} == {*PLACES}
    for what in ("if", "while", "ternary"):
        assert {by for w, _, by in control.marks if w == what} >= {*DECIDED}
    counts = control.counts
    assert counts["programs decided by a tensor"] > 200 and lines > 3000
    for word in ("break", "continue", "return"):
        assert counts[f"programs with {word} in a loop"] > 10
    changes = ("o.k", "o.flag", "o.t", "o.l.append", "global", "cell", "an argument", "no_grad")
    assert all(counts[f"state changed between calls: {c}"] > 2 for c in changes)


def test_most_programs_run_to_their_end_and_none_for_long() -> None:
    raised, started = 0, time.process_time()
    with np.errstate(all="ignore"):
        for seed in range(1, 201, 2):
            raised += any(path == "call 0: exception" for path, _ in observe(program_of(seed)))
    assert raised < 25
    assert time.process_time() - started < 30


def test_the_same_choices_give_the_same_program() -> None:
    assert generate_flow(Choices.seeded(5)) == generate_flow(Choices.seeded(5))


def test_reports_run_as_scripts(capsys: pytest.CaptureFixture) -> None:
    made = program_of(11)
    exec(made.script("graph", "eager", "trace"), {})
    assert made.text() in capsys.readouterr().out


def test_a_walk_meets_every_statement() -> None:
    inner = block(("for i in range(3):", "x0 = x0 + 1"))
    made = steps(block(("if x1:", inner), ("else:", "o.k = 2")), "o.k = 3")
    found = [s.lines[0] for s in walk(made) if isinstance(s, Step)]
    assert found == ["x0 = x0 + 1", "o.k = 2", "o.k = 3"]
    assert tj.__name__ == "tracejit"
