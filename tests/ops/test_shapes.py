"""Broadcasting of symbolic sizes: what is learnt, and that nothing more is asked."""

import pytest

from tracejit.core.ops import shapes
from tracejit.jit.ir.sizes import ShapeEnv, SymInt


def scope_of(*hints: int) -> tuple[ShapeEnv, list[SymInt]]:
    scope = ShapeEnv()
    return scope, [scope.symbol(h) for h in hints]


def guards(scope: ShapeEnv) -> list[str]:
    return [str(g) for g in scope.guards]


@pytest.mark.parametrize("a, b, want", [
    ((3, 1), (4,), (3, 4)), ((), (2, 0), (2, 0)), ((1,), (0,), (0,)),
    ((5, 1, 3), (2, 1), (5, 2, 3)),
])
def test_static_shapes_broadcast(a, b, want):
    assert shapes.broadcast(a, b) == want == shapes.broadcast(b, a)


def test_a_size_that_does_not_fit_is_named_as_pytorch_names_it():
    text = (r"The size of tensor a \(3\) must match the size of tensor b \(4\) "
            "at non-singleton dimension 1")
    with pytest.raises(RuntimeError, match=text):
        shapes.broadcast((2, 3), (4,))
    with pytest.raises(RuntimeError, match=r"tensor a \(4\) .* tensor b \(3\) .* dimension 1"):
        shapes.broadcast((4,), (2, 3))
    with pytest.raises(RuntimeError, match=r"tensor a \(4\) .* tensor b \(6\) .* dimension 2"):
        shapes.broadcast((2, 3, 4), (5, 6))  # the last of those that do not fit


def test_a_literal_one_asks_nothing():
    scope, (n,) = scope_of(1)
    assert shapes.broadcast((1, n), (n, 1))[0] is n
    assert guards(scope) == []


def test_the_same_symbol_asks_nothing():
    scope, (n, m) = scope_of(5, 5)
    assert shapes.same_structure(shapes.broadcast((n * m,), (m * n,))[0], n * m)
    assert guards(scope) == []


def test_equal_examples_are_guarded_equal():
    scope, (n, m) = scope_of(5, 5)
    shapes.broadcast((n,), (m,))
    assert guards(scope) == ["s0 == s1"]


@pytest.mark.parametrize("swap", [False, True])
def test_an_example_of_one_is_guarded_to_be_one(swap):
    scope, (n, m) = scope_of(1, 5)
    result = shapes.broadcast((m,), (n,)) if swap else shapes.broadcast((n,), (m,))
    assert shapes.same_structure(result[0], m)
    assert guards(scope)[-1] == "s0 == 1"
    assert shapes.broadcast_dims(result, (n,)) == (0,)


def test_a_symbol_that_meets_an_int_becomes_it():
    scope, (n,) = scope_of(5)
    assert shapes.broadcast((n,), (5,)) == (5,)
    assert guards(scope) == ["s0 == 5"]


def test_differing_examples_are_an_error():
    scope, (n, m) = scope_of(3, 4)
    with pytest.raises(RuntimeError, match="non-singleton dimension 0"):
        shapes.broadcast((n,), (m,))


def test_unbroadcasting_a_literal_one_asks_nothing():
    scope, (n,) = scope_of(1)
    assert shapes.broadcast_dims((2, n), (1, 1)) == (0, 1)
    assert guards(scope) == []


@pytest.mark.parametrize("dim, ndim, want", [(-1, 3, 2), (0, 0, 0), (-1, 0, 0), (2, 3, 2)])
def test_dims_count_from_either_end(dim, ndim, want):
    assert shapes.normalize_dim(dim, ndim) == want


def test_dims_out_of_range_and_twice():
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        shapes.normalize_dim(2, 2)
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times"):
        shapes.normalize_dims((1, -1), 2)
