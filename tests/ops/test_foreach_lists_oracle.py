"""Ops on lists of tensors, as PyTorch computes them: values, dtypes, what is written, errors."""

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

NAMES = sorted(n for n in dir(torch) if n.startswith("_foreach_"))
UNARY = "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2"
UNARY += " neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc clone max norm"
UNARY += " powsum zero"


def lists(library):
    a = [library.tensor([0.3, 0.9]), library.tensor([[0.5], [0.25]])]
    b = [library.tensor([0.7, -1.5]), library.tensor([[2.0], [0.1]])]
    return a, b, [library.tensor([1, -2]), library.tensor([3])]


CALLS = {
    "scalar": lambda t, f, a, b, i: f(a, 2),
    "float": lambda t, f, a, b, i: f(a, 0.5),
    "scalars": lambda t, f, a, b, i: f(a, [0.5, 3]),
    "tensors": lambda t, f, a, b, i: f(a, b),
    "tensor": lambda t, f, a, b, i: f(a, t.tensor(2.0)),
    "row": lambda t, f, a, b, i: f(a, t.tensor([2.0])),
    "alpha": lambda t, f, a, b, i: f(a, b, alpha=3),
    "value": lambda t, f, a, b, i: f(a, b, b, value=0.5),
    "positional": lambda t, f, a, b, i: f(a, b, b, 2),
    "values": lambda t, f, a, b, i: f(a, b, b, [0.5, 2.0]),
    "values in a tensor": lambda t, f, a, b, i: f(a, b, b, t.tensor([0.5, 2.0])),
    "too few values": lambda t, f, a, b, i: f(a, b, b, t.tensor([0.5])),
    "weight": lambda t, f, a, b, i: f(a, b, 0.25),
    "weights": lambda t, f, a, b, i: f(a, b, b),
    "integers": lambda t, f, a, b, i: f(i, 2),
    "integers and floats": lambda t, f, a, b, i: f(i, 1.5),
    "base": lambda t, f, a, b, i: f(2, a),
    "order": lambda t, f, a, b, i: f(a, 1),
    "empty": lambda t, f, a, b, i: f([], 1),
    "other length": lambda t, f, a, b, i: f(a, b[:1]),
    "too few": lambda t, f, a, b, i: f(a, [0.5]),
}


def outcome(library, name, call):
    a, b, i = lists(library)
    try:
        given = call(library, getattr(library, name), a, b, i)
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error).splitlines()[0].replace("long int", "Long")
    written = given is a or given is i
    return type(given), written, [[str(x.dtype).partition(".")[2], x.shape] for x in given], [
        x.reshape(-1).tolist() for x in (*given, *a)]


def same(mine, theirs):
    if len(theirs) == 2:
        return mine == theirs
    assert mine[:3] == theirs[:3]
    return mine[3] == [pytest.approx(row, rel=1e-5, abs=1e-6, nan_ok=True) for row in theirs[3]]


@pytest.mark.parametrize("name", [n for n in NAMES if n[9:].rstrip("_") in UNARY.split()])
def test_of_one_list(name):
    run = lambda t, f, a, b, i: f(a)  # noqa: E731
    assert same(outcome(tracejit, name, run), outcome(torch, name, run))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [n for n in NAMES if n[9:].rstrip("_") not in UNARY.split()])
def test_of_several(name, call):
    mine, theirs = outcome(tracejit, name, CALLS[call]), outcome(torch, name, CALLS[call])
    if theirs[0] == "TypeError" or name == "_foreach_mm":
        return  # PyTorch has no such signature
    assert same(mine, theirs)


def test_all_names_are_there():
    assert [n for n in NAMES if not hasattr(tracejit, n)] == []
    a, _, _ = lists(tracejit)
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        tracejit._foreach_add([a[0], 3], 1)
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        tracejit._foreach_add(a[0], 1)


def test_products_of_matrices():
    rows, columns = [tracejit.ones(2, 3), tracejit.ones(1, 2)], [tracejit.ones(3, 1),
                                                                 tracejit.ones(2, 2)]
    found = tracejit._foreach_mm(rows, columns)
    assert [x.tolist() for x in found] == [[[3.0], [3.0]], [[2.0, 2.0]]]


def test_captured():
    def update(a, b, rate):
        tracejit._foreach_mul_(a, 0.9)
        tracejit._foreach_addcdiv_(a, b, tracejit._foreach_sqrt(tracejit._foreach_abs(b)),
                                   value=-rate)
        return tracejit._foreach_norm(a)

    compiled = tracejit.script(update)
    one, other = lists(tracejit), lists(tracejit)
    for rate in (0.1, 0.2, 0.3, 0.4):
        expected = [x.item() for x in update(one[0], one[1], rate)]
        assert [x.item() for x in compiled(other[0], other[1], rate)] == pytest.approx(expected)
    for mine, plain in zip(other[0], one[0]):
        tracejit.testing.assert_close(mine, plain)
    assert compiled.report().breaks == []
