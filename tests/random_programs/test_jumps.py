"""Jumps out of random nests of blocks: a few of them, and that a wrong end is noticed."""

from __future__ import annotations

import pytest

from tests.random_programs import jumps

RAISES_AND_NOTES = 15  # a seed whose program does both, for some values


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(0, 2000, 100))
def test_a_captured_program_ends_as_the_plain_one_does(seed):
    for one in range(seed, seed + 5):
        assert jumps.difference(one) is None


def test_a_wrong_end_is_noticed():
    function, _ = jumps.function_of(RAISES_AND_NOTES)

    def silent(x, log):
        try:
            return function(x, log)
        except ValueError:
            return None

    def forgetful(x, log):
        return function(x, [])

    expected = jumps.seen(function)
    assert jumps.seen(silent) != expected
    assert jumps.seen(forgetful) != expected
