"""Numbers of the caller in operators that no other test asks for: written for planted faults."""

from __future__ import annotations

import pytest

import tracejit as tj

WAYS = {
    "divmod": lambda n: divmod(n, 3),
    "divmod of a constant": lambda n: divmod(100, n),
    "divmod of two": lambda n: divmod(n * n, n - 1),
    "divmod of floats": lambda n: divmod(7.5, n),
}


@pytest.mark.parametrize("name", WAYS)
def test_quotient_and_remainder_are_pythons(name):
    way = WAYS[name]
    captured = tj.script(lambda x, n: (x + way(n)[0] * 1.0, way(n)), mode="graph")
    for n in (7, 11, 7, -5):
        moved, pair = captured(tj.zeros(2), n)
        assert pair == way(n) and [type(v) for v in pair] == [type(v) for v in way(n)]
        assert moved.tolist() == [way(n)[0]] * 2
