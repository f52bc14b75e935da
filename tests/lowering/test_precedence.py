"""Who depends on whom, and in which order: against a plain search of the whole graph."""

import random

import pytest

from tracejit.jit.lowering.precedence import (
    Ordered,
    contract,
    in_order,
    is_between,
    link,
    reaches,
)


def _descendants(piece):
    found, stack = set(), [piece]
    while stack:
        for x in stack.pop().after - found:
            found.add(x)
            stack.append(x)
    return found


def _is_consistent(pieces):
    ranks = [x.rank for x in pieces]
    assert len(set(ranks)) == len(ranks)
    return all(x.rank < y.rank and x in y.before for x in pieces for y in x.after)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed):
    choose = random.Random(seed)
    pieces = [Ordered(k) for k in range(24)]
    for _ in range(120):
        one, other = choose.sample(pieces, 2)
        if other in _descendants(one) or one not in _descendants(other):
            if choose.random() < 0.15 and len(pieces) > 6:
                between = (_descendants(one) & {x for x in pieces if other in _descendants(x)}
                           | _descendants(other) & {x for x in pieces if one in _descendants(x)})
                assert is_between(one, other) == bool(between - {one, other})
                if not between - {one, other}:
                    contract(one, other)
                    pieces.remove(other)
            elif other not in _descendants(one) or choose.random() < 0.5:
                link(one, other)
        assert _is_consistent(pieces)
        start, goals = choose.sample(pieces, 2), choose.sample(pieces, 2)
        plain = any(g in _descendants(s) or g is s for s in start for g in goals)
        assert reaches(start, goals) == plain
    order = in_order(pieces, lambda x: 0)
    assert all(order.index(x) < order.index(y) for x in pieces for y in x.after)


def test_a_question_of_neighbours_does_not_walk_the_chain():
    """A long chain beside them costs nothing."""
    looked = []

    class Watched(Ordered):
        def __hash__(self):
            looked.append(self)
            return id(self)

    chain = [Watched(k) for k in range(3000)]
    for one, other in zip(chain, chain[1:]):
        link(one, other)
    looked.clear()
    for k in range(100, 2900):
        assert reaches([chain[k]], [chain[k + 2]])
        assert not reaches([chain[k + 1]], [chain[k]])
    assert len(looked) < 60 * 2800


def test_priority_decides_among_those_that_are_ready():
    a, b, c, d = (Ordered(k) for k in range(4))
    link(a, d)
    link(c, b)
    assert in_order([a, b, c, d], {a: 3, b: 0, c: 1, d: 2}.get) == [c, b, a, d]


def test_no_circles():
    a, b = Ordered(0), Ordered(1)
    link(a, b)
    with pytest.raises(AssertionError, match="circle"):
        link(b, a)
