"""What a scope of symbolic sizes learns from decisions."""

from __future__ import annotations

import pytest

from tracejit.jit.ir import sizes
from tracejit.jit.ir.sizes import ShapeEnv, SymInt, evaluate, size_max, substitute


def scope_of(*hints: int) -> tuple[ShapeEnv, list[SymInt]]:
    scope = ShapeEnv()
    return scope, [scope.symbol(h) for h in hints]


def test_a_function_of_sizes_is_what_it_was_found_to_be():
    scope, (n, m) = scope_of(2, 1)
    half = (n + 1) // 2
    assert half == m and m == 1
    assert scope.resolve(m) == scope.resolve(half) == 1
    assert scope.resolve(half * n + half).terms == (n + 1).terms
    assert [str(g) for g in scope.guards] == ["((s0 + 1) // 2) == s1", "((s0 + 1) // 2) == 1"]


def test_what_is_known_of_a_function_stays_known_when_a_symbol_in_it_is_replaced():
    scope, (n, m, k) = scope_of(7, 3, 6)
    assert n // 2 == m and n == k + 1
    assert scope.resolve((k + 1) // 2).same_as(m)
    assert len(scope.guards) == 2


def test_a_function_that_becomes_a_size_tells_the_size():
    scope, (n, k) = scope_of(8, 4)
    assert size_max(n // 2, 3) == 4 and n == 2 * k
    assert scope.resolve(size_max(k, 3)) == 4
    assert n // 2 == 4
    assert scope.resolve(k) == 4 and scope.resolve(n) == 8


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_resolving_ends_whatever_is_learnt_first(order):
    scope, (a, b, c) = scope_of(4, 2, 2)
    facts = [lambda: a // 2 == (2 * b + 1) // c, lambda: a == 2 * b, lambda: (a + 1) // 2 == c]
    for k in order:
        assert facts[k]()
    for size in (a, b, c, a // 2, (a + 1) // 2, (2 * b + 1) // c, (2 * b + 1) // 2):
        assert evaluate(scope.resolve(size), scope.hints) == evaluate(size, scope.hints)


def test_functions_of_sizes_that_are_known_are_forgotten_with_the_rest():
    scope, (n,) = scope_of(7)
    known = scope.snapshot()
    assert n // 2 == 3
    scope.restore(known)
    assert type(scope.resolve(n // 2)) is SymInt and not scope.guards


def test_sizes_are_divided_by_sizes_of_several_terms():
    scope, (a, b, c) = scope_of(5, 3, 2)
    wide = a - b + 3
    assert (c * wide * (b + 1) // wide).same_as(c * (b + 1))
    assert (c * wide) % wide == 0
    assert evaluate((c * wide + 1) // wide, {"s0": 5, "s1": 3, "s2": 2}) == 2
    assert evaluate((2 * a + 2) // (4 * a + 4), {"s0": 5}) == 0
    assert [guard.text for guard in scope.guards] == ["s0 - s1 + 3 != 0"]


@pytest.mark.parametrize("way", ["resolve", "substitute", "evaluate"])
def test_what_sizes_have_in_common_is_worked_out_once(way, monkeypatch):
    """Sizes of images after a few layers are functions of functions, each of them met often."""
    scope, (n, m) = scope_of(40, 20)
    size, plain, depth = n, 40, 7
    for _ in range(depth):
        size, plain = (size * size + size + 1) // 3, (plain * plain + plain + 1) // 3
    applied = []

    def counted(function):
        return lambda *operands: applied.append(operands) or function(*operands)

    if way == "evaluate":
        monkeypatch.setitem(sizes._FUNCTIONS, "floordiv", counted(lambda a, b: a // b))
        assert evaluate(size, {"s0": 40}) == plain
    else:
        monkeypatch.setattr(sizes, "_apply", counted(sizes._apply))
        if way == "resolve":
            assert n == 2 * m
        found = scope.resolve(size) if way == "resolve" else substitute(size, {"s0": 2 * m}, scope)
        assert evaluate(found, {"s1": 20}) == plain
    assert len(applied) == depth
