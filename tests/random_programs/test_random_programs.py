"""Random programs show the same plainly and captured. The long run: `python -m
tests.random_programs` (docs/testing.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.random_programs import parts, processes
from tests.random_programs.choices import Choices
from tests.random_programs.coverage import Coverage
from tests.random_programs.generator import OPS, generate
from tests.random_programs.minimise import minimise
from tests.random_programs.observe import observe
from tests.random_programs.processes import Found, Shares, run_seed
from tests.random_programs.program import Argument, Call, Memory, Program, Step
from tests.random_programs.runner import (
    Way,
    check,
    difference,
    tolerance_of,
)
from tests.random_programs.spaces import tensor_of
from tests.random_programs.tolerance import exact

# Seeds of each way: a part for every run, the rest for `make test-full`.
WAYS = [
    (Way("graph", "eager"), range(80), range(80, 400)),
    (Way("graph"), range(500, 530), range(530, 600)),
    (Way("compiled"), range(1000, 1015), range(1015, 1060)),
    (Way("python"), range(2000, 2010), range(2010, 2020)),
    (Way("compiled", "eager"), range(3000, 3010), range(3010, 3020)),
]
MANY = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize(("way", "seeds"), [
    *((way, seeds) for way, seeds, _ in WAYS),
    *(pytest.param(way, seeds, marks=pytest.mark.full) for way, _, seeds in WAYS),
], ids=repr)  # fmt: skip
def test_programs_agree(way: Way, seeds: range) -> None:
    found = []
    for seed in seeds:
        mismatch = check(generate(Choices.seeded(seed)), way)
        if mismatch is not None:
            found.append(f"seed {seed}: {mismatch}")
    assert not found, f"{len(found)} of {len(seeds)} programs differ\n" + "\n".join(found[:3])


@MANY
@given(st.data())
def test_programs_that_hypothesis_finds_agree(data: st.DataObject) -> None:
    program = generate(Choices(lambda bound: data.draw(st.integers(0, bound - 1))))
    mismatch = check(program, Way("graph"))
    assert mismatch is None, mismatch


# -- the test of the test ------------------------------------------------------------------------


def small(*lines: str, output: str = "v0", dtype: str = "float32", view: str = "m0") -> Program:
    """A program of one argument, x0, of six elements."""
    steps = tuple(
        Step((line,), (line.split(" ")[0],) if "=" in line else (), frozenset({"x0"}))
        for line in lines
    )
    return Program(
        (Memory("m0", dtype, ((6,),)),),
        (Argument("x0", (view,), "m0"),),
        steps,
        (output,),
        (Call(0),),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "v0 = x0 * 1.0001",
        "v0 = (x0 * 2).detach()",
        "v0 = x0.double() * 2",
        "v0 = x0 * 2; x0.add_(1)",
        "v0 = x0.add_(x0)",
        "v0 = tj.stack([x0, x0]).t().sum(1)[::2]",
    ],
)
def test_a_difference_is_seen(wrong: str) -> None:
    right = small("v0 = x0 * 2")
    right = replace(right, memories=(replace(right.memories[0], history="computed"),))
    expected = observe(right)
    other = replace(right, steps=small(wrong).steps)
    got = observe(other)
    for compare in (exact, tolerance_of(right, expected, runs=24)):
        assert difference(got, expected, compare) is not None
        assert difference(expected, expected, compare) is None


def test_noise_moves_what_rounding_moves_and_nothing_else() -> None:
    cancels = "v0 = F.layer_norm(x0[:, None], (1,))"  # x - mean, and the terms of its gradient
    for line, moved in {
        "v0 = tj.relu(x0)": False,
        "v0 = x0[2:].flip(0)": False,
        "v0 = x0 * 3": True,
        cancels: True,
    }.items():
        program = replace(small(line), backward="outside")
        program = replace(program, memories=(replace(program.memories[0], history="leaf"),))
        spread = tolerance_of(program, observe(program)).spread
        assert spread["call 0: output 0"].any() == moved, line
        if line == cancels:
            assert spread["call 0: memory m0 gradient"].all()


def test_arrays_of_sixty_four_dimensions_are_compared() -> None:
    program = small("v0 = x0.exp().reshape((1,) * 63 + (6,))")
    tolerance = tolerance_of(program, observe(program))
    assert check(program, Way("graph", "eager"), tolerance=tolerance) is None


@pytest.mark.parametrize("grown", ["x0.repeat(1 << 20)", "x0.repeat(1 << 40)"])
def test_a_program_that_outgrows_memory_is_told_and_not_judged(grown: str, monkeypatch) -> None:
    program, found = small(f"v0 = {grown}"), Found()
    monkeypatch.setattr(processes, "program_of", lambda seed: program)
    run_seed(0, Shares(), found)
    assert found.coverage.programs["not judged: the state outgrows memory"] == 1
    assert not found.failures and not found.coverage.runs


def test_a_program_that_cannot_be_compiled_is_a_difference(monkeypatch) -> None:
    def fails(*arguments: object) -> None:
        raise KeyError("planted")

    program = small("v0 = x0 * 2")
    assert check(program, Way("graph")) is None
    monkeypatch.setattr("tracejit.jit.compiled_function.CompiledGraph", fails)
    assert "planted" in str(check(replace(program, steps=small("v0 = x0 * 7").steps), Way("graph")))


def test_the_same_seed_gives_the_same_program() -> None:
    programs = [generate(Choices.seeded(5)) for _ in range(2)]
    assert programs[0] == programs[1]
    call = programs[0].calls[0]
    for m in programs[0].memories:
        a, b = tensor_of(m, call), tensor_of(m, call)
        assert np.array_equal(
            a.detach().array, b.detach().array, equal_nan=m.dtype.startswith("float")
        )


def test_programs_become_small() -> None:
    program = small("v0 = x0 * 2", "v1 = x0 + 1", "v2 = tj.exp(x0)", output="v2")
    found = minimise(program, lambda p: "exp" in p.text())
    assert [s.lines[0] for s in found.steps] == ["v2 = tj.exp(x0)"]


@pytest.mark.full
def test_two_thousand_programs_have_every_op() -> None:
    covered = Coverage()
    for seed in range(2000):
        covered.add(generate(Choices.seeded(seed)))
    assert covered.missing() == []
    assert len(OPS) >= 100
    kinds = {(shape, alias) for _, _, shape, alias in covered.cells}
    assert {s for s, _ in kinds} >= {"0", "1", "0-dim", "many", "broadcast"}
    assert {a for _, a in kinds} >= {
        f"{w}{a}"
        for w in ("", "write ")
        for a in ("fresh", "input", "view", "strided", "expanded", "shared")
    }


def test_reports_run_as_scripts() -> None:
    program = generate(Choices.seeded(3))
    space: dict = {}
    exec(program.script("graph"), space)
    assert space["program"].text() == program.text()


def test_parts_share_no_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_tree", lambda: "one tree")
    path = tmp_path / "parts"
    first = parts.parts_in(path, range(1, 9, 2))
    first.add(Coverage(), range(1, 9, 2), 0, 1.0)
    first.save(path)
    found = parts.parts_in(path, range(9, 13, 2)).seeds
    assert [*map(parts.in_words, found)] == ["1 to 7, flow alone"]
    first.tree = "one two"
    first.add(Coverage(), range(9, 13, 2), 0, 1.0)
    first.add(Coverage(), range(20, 30, 2), 0, 1.0)
    assert "1 to 11, flow alone; 20 to 28, straight alone: " in first.report()
    assert "`one` (`tracejit`), `two` (`tests/random_programs`)" in first.report()
    for seeds in (range(1, 9, 2), range(7, 11, 2), range(4)):
        with pytest.raises(ValueError, match="of a part already"):
            parts.parts_in(path, seeds)
    monkeypatch.setattr(parts, "_tree", lambda: "another")
    with pytest.raises(ValueError, match="other sources"):
        parts.parts_in(path, range(9, 13, 2))
