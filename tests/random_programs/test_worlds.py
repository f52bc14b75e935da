"""Random programs over objects that change: a few of them, and that what is stale is noticed."""

from __future__ import annotations

import pytest

from tests.random_programs import worlds


@pytest.mark.parametrize("world", worlds.WORLDS)
@pytest.mark.parametrize("trace", [False, True], ids=["script", "trace"])
@pytest.mark.parametrize("seed", range(0, 1000, 200))
@pytest.mark.filterwarnings("ignore")
def test_captured_calls_leave_what_plain_ones_do(seed, trace, world):
    for one in range(seed, seed + 5):
        assert worlds.difference(one, trace, worlds.WORLDS[world]) is None


def test_a_result_that_is_stale_is_noticed(monkeypatch):
    def stale(function, **_):
        first = []

        def call(*args, **kwargs):
            first.append(function(*args, **kwargs))
            return first[0]

        return call

    monkeypatch.setattr(worlds.tj, "script", stale)
    assert sum(worlds.difference(seed) is not None for seed in range(10)) > 5
