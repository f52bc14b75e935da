"""Random schedules give PyTorch's rates: all classes, nested, resumed, changed on the way."""

from __future__ import annotations

from typing import Any

import pytest

import tracejit
from tests.optim.random_schedules import follow, plan

pytestmark = pytest.mark.oracle


def differs(got: Any, want: Any) -> bool:
    if isinstance(want, (list, tuple)):
        return len(got) != len(want) or any(differs(g, w) for g, w in zip(got, want))
    if isinstance(want, float):
        return not (got == want or abs(got - want) <= 1e-12 * max(abs(want), 1e-3) or
                    got != got and want != want)  # fmt: skip
    return got != want


def compare(seed: int) -> None:
    torch = pytest.importorskip("torch")
    made = plan(seed)
    got, want = follow(tracejit, made), follow(torch, made)
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        assert not differs(g, w), f"seed {seed}, act {k} of {made}\nours {g}\ntorch {w}"


@pytest.mark.parametrize("seed", range(40))
def test_rates_agree_with_pytorch(seed: int) -> None:
    compare(seed)


@pytest.mark.full
@pytest.mark.parametrize("start", range(40, 2040, 100))
def test_two_thousand_schedules_agree_with_pytorch(start: int) -> None:
    for seed in range(start, start + 100):
        compare(seed)
