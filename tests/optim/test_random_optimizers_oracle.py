"""Random optimizer runs move parameters as PyTorch's do: all classes, options and flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.optim.random_optimizers import Run, follow, plan

pytestmark = pytest.mark.oracle


# Runs of PyTorch's own from parameters a few roundings away: how far rounding takes a long run.
NOISES = [sign * k * 4e-16 for k in range(1, 5) for sign in (1, -1)]
# Seeds where a sum of Muon's in float32 is so near the middle of two bfloat16 that its last bit
# decides (`test_a_sum_near_the_middle...`), and how far the next rounding takes the parameters.
MIDDLE = {517: 1e-4}


def differs(got: Any, want: Any, near: Callable[[], list[Any]], exact: float = 1e-10) -> bool:
    """Return True unless errors agree, and parameters do to 1e-10 or what rounding makes of them.

    near  the parameters of PyTorch's runs from a few roundings away, asked for if needed
    """
    if got[0] != want[0]:
        return True
    pairs = list(zip(got[1], want[1], strict=True))
    if all(agree(g, w, exact * (1 + abs(w))) for g, w in pairs):
        return False
    moved = [np.max([abs(w - n) for n in each], axis=0) for (_, w), each in zip(pairs, near())]
    return not all(agree(g, w, 1e-10 + 10 * m) for (g, w), m in zip(pairs, moved))


def agree(got: Any, want: Any, allowed: Any) -> bool:
    same = (abs(got - want) <= allowed) | (got == want) | (got != got) & (want != want)
    return bool(np.all(same))


def compare(seed: int, captured: bool = False) -> None:
    torch = pytest.importorskip("torch")
    made = plan(seed)
    got, want = follow(tracejit, made, captured=captured), follow(torch, made)
    runs: list[Any] = []

    def near(act: int) -> Any:
        runs.extend(follow(torch, made, noise) for noise in NOISES[len(runs):])
        return zip(*(run[act][1] for run in runs), strict=True)

    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        wrong = differs(g, w, lambda k=k: near(k), MIDDLE.get(seed, 1e-10))
        assert not wrong, f"seed {seed}, act {k} of {made}\nours {g}\ntorch {w}"


@pytest.mark.parametrize("seed", range(30))
def test_steps_agree_with_pytorch(seed: int) -> None:
    compare(seed)


@pytest.mark.full
@pytest.mark.parametrize("start", range(30, 530, 50))
def test_five_hundred_runs_agree_with_pytorch(start: int) -> None:
    for seed in range(start, start + 50):
        compare(seed)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("start", range(0, 530, 53))
def test_five_hundred_captured_runs_agree_with_pytorch(start: int) -> None:
    for seed in range(start, start + 53):
        compare(seed, captured=True)


def test_a_sum_near_the_middle_of_two_bfloat16_is_rounded_by_its_last_bit() -> None:
    """What Muon's step of seed 517 adds: both neighbours are right to two roundings of float32."""
    run = Run(tracejit, plan(517))
    for act in plan(517)["acts"][:8]:
        run.after(act)
    p = run.parameters()[8]
    x = run.optimizer.state[p]["momentum_buffer"].bfloat16().T
    x = x / x.norm().clamp(min=0.1)
    a, b, c = 3.4445, -4.775, 2.0315
    for _ in range(5):
        gram = x @ x.T
        last, turn = x, tracejit.addmm(gram, gram, gram, beta=b, alpha=c)
        x = tracejit.addmm(x, turn, x, beta=a)
    terms = [a * last.double().numpy(), turn.double().numpy() @ last.double().numpy()]
    exact, got = sum(terms), x.double().numpy()
    step = 2.0 ** (np.floor(np.log2(abs(exact))) - 7)
    from_middle = abs(abs(got - exact) - step / 2)
    two_roundings = 2.0 ** (np.floor(np.log2(np.max(np.abs(terms), axis=0))) - 23)
    assert (from_middle < two_roundings).sum() == 1
