"""Aliases in random loops and branches: a few of them, and that a wrong capture is noticed."""

from __future__ import annotations

import pytest

from tests.random_programs import aliases
from tests.shares import share


@pytest.mark.parametrize("history", [False, True], ids=["plain", "history"])
@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=share(f"aliases {seed}", 6)) for seed in range(0, 1200, 100)])
def test_a_captured_program_leaves_what_the_plain_one_does(seed, history):
    for one in range(seed, seed + 5):
        assert aliases.difference(one, history) is None


def test_memory_that_is_not_shared_is_noticed(monkeypatch):
    function, _ = aliases.function_of(0)

    def copying(x, y, *rest):
        return function(x, y.clone(), *rest)

    assert aliases.seen(copying, False) != aliases.seen(function, False)
