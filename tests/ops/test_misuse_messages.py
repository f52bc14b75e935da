"""Misuse of einsum, max_unpool and norms is told in PyTorch's words."""

from __future__ import annotations

import pytest

import tracejit

F = tracejit.nn.functional
SQUARE = tracejit.zeros(3, 3)


@pytest.mark.parametrize("equation, count, words", [
    ("ij,jk->iz", 2, "output subscript z does not appear in the equation for any input operand"),
    ("ij,jk->ii", 2, "output subscript i appears more than once in the output"),
    ("ii->ii", 1, "output subscript i appears more than once in the output"),
    ("ij,jk", 1, "fewer operands were provided than specified in the equation"),
    ("ij", 2, "more operands were provided than specified in the equation"),
    ("ijk", 1, r"the number of subscripts in the equation \(3\) does not match the number of "
               r"dimensions \(2\) for operand 0 and no ellipsis was given"),
    ("...ijk->i", 1, "for operand 0"),
    ("i1->i", 1, "invalid subscript given"),
])  # fmt: skip
def test_einsum(equation, count, words):
    with pytest.raises(RuntimeError, match=words):
        tracejit.einsum(equation, *[SQUARE] * count)


@pytest.mark.parametrize("unpool, n", [(F.max_unpool1d, 1), (F.max_unpool2d, 2),
                                       (F.max_unpool3d, 3)])  # fmt: skip
def test_max_unpool(unpool, n):
    one = tracejit.zeros((1, 1) + (1,) * n)
    with pytest.raises(ValueError, match=r"non-negative spatial .* output_size\[0\]=-2"):
        unpool(one, one.long(), 2, 2, padding=2)
    none = tracejit.zeros((1, 1) + (1,) * (n - 1) + (0,))
    with pytest.raises(RuntimeError, match=f"dimension {n + 1} being empty"):
        unpool(none, none.long(), 2, 2)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "captured", [False, pytest.param(True, marks=pytest.mark.full)], ids=["eager", "captured"])
def test_places_outside_of_what_max_unpool_makes(captured):
    torch = pytest.importorskip("torch")

    def found(unpool, library, places, shape):
        places = library.tensor(places).reshape(shape)
        try:
            unpool(library.ones(shape), places)
        except RuntimeError as failure:
            return str(failure)

    for n, cases in {1: [(3, (1, 1, 1))], 2: [(3, (1, 2, 2)), (5, (1, 1, 2, 2))],
                     3: [(9, (1, 1, 1, 2, 2))]}.items():  # fmt: skip
        def make(library, n=n):
            unpool = getattr(library.nn.functional, f"max_unpool{n}d")
            return lambda x, at: unpool(x, at, 2)

        ours = tracejit.script(make(tracejit)) if captured else make(tracejit)
        for inside, shape in cases:
            count = int(torch.Size(shape).numel())
            for last in (inside, -1, 64, -70):
                places = [*range(count - 1), last]
                want = found(make(torch), torch, places, shape)
                assert found(ours, tracejit, places, shape) == want, (n, places)


def test_tensordot_by_the_name_of_numpy():
    x, y = tracejit.ones(2, 3), tracejit.ones(3, 4)
    assert tracejit.tensordot(x, y, axes=((1,), (0,))).tolist() == [[3.0] * 4] * 2
