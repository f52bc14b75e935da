"""Numbers and sizes that 64 bits do not hold, and parameters outside their range: PyTorch's errors.

Each call runs with PyTorch, eagerly and inside a captured function: the same class, the same text.
"""

from __future__ import annotations

import pytest

import tracejit

pytestmark = pytest.mark.oracle

HUGE, TINY = 2**70, -(2**70)
NUMBERS = {
    "add": lambda x, m: x + HUGE,
    "add negative": lambda x, m: x + TINY,
    "just above": lambda x, m: x + 2**64,
    "just below": lambda x, m: x - (-(2**63) - 1),
    "reversed": lambda x, m: HUGE - x,
    "divide": lambda x, m: x / HUGE,
    "compare": lambda x, m: x < HUGE,
    "clamp": lambda x, m: x.clamp(max=HUGE),
    "where": lambda x, m: m.where(x > 0, x, HUGE),
    "in place": lambda x, m: x.add_(HUGE),
    "fill_": lambda x, m: x.fill_(HUGE),
    "masked_fill": lambda x, m: x.masked_fill(x > 0, HUGE),
    "addcmul": lambda x, m: x.addcmul(x, x, value=HUGE),
    "alpha": lambda x, m: m.add(x, x, alpha=HUGE),
    "pow": lambda x, m: m.pow(HUGE, x),
    "full": lambda x, m: m.full((2,), HUGE),
    "full float": lambda x, m: m.full((2,), HUGE, dtype=m.float32),
    "full_like": lambda x, m: m.full_like(x, HUGE),
    "tensor": lambda x, m: m.tensor(HUGE),
}
SIZES = {
    "empty": lambda x, m: m.empty(2**40, 2**40),
    "empty none": lambda x, m: m.empty(2**40, 2**40, 0),
    "zeros": lambda x, m: m.zeros(2**61),
    "full": lambda x, m: m.full((2**40, 2**40), 1.0),
    "rand": lambda x, m: m.rand(2**40, 2**40),
    "randn": lambda x, m: m.randn(2**40, 2**40),
    "arange": lambda x, m: m.arange(2**62),
    "expand": lambda x, m: x[:1].expand(2**40, 2**40),
}
DRAWS = {
    "normal tensors": lambda x, m: m.normal(m.zeros(2), m.tensor([1.0, -1.0])),
    "normal nan": lambda x, m: m.normal(m.zeros(1), m.tensor([float("nan")])),
    "normal number": lambda x, m: m.normal(0.0, m.tensor([-1.0])),
    "normal_": lambda x, m: m.zeros(2).normal_(0, -1),
    "normal_ nan": lambda x, m: m.zeros(2).normal_(0, float("nan")),
    "bernoulli high": lambda x, m: m.bernoulli(m.tensor([0.5, 1.5])),
    "bernoulli low": lambda x, m: m.bernoulli(m.tensor([-0.5])),
    "bernoulli nan": lambda x, m: m.bernoulli(m.tensor([float("nan")])),
    "bernoulli number": lambda x, m: m.bernoulli(m.zeros(2), 1.5),
    "bernoulli_": lambda x, m: m.zeros(2).bernoulli_(-0.5),
    "bernoulli_ tensor": lambda x, m: m.zeros(2).bernoulli_(m.tensor([1.5, 0.5])),
    "bernoulli_ integers": lambda x, m: m.zeros(2).bernoulli_(m.tensor([1, 0])),
}
KINDS = ("int64", "int8", "float32")
REPORT = "  (Could this error message be improved?"  # what PyTorch appends to some texts


def raised(use, x, m):
    with pytest.raises(Exception) as caught:
        use(x, m)
    return caught.type, str(caught.value).partition(REPORT)[0].partition("\n")[0]


def same(use, kind):
    torch = pytest.importorskip("torch")
    wanted = raised(use, torch.tensor([1, 2], dtype=getattr(torch, kind)), torch)

    def mine():
        return tracejit.tensor([1, 2], dtype=getattr(tracejit, kind))

    assert raised(use, mine(), tracejit) == wanted
    captured = tracejit.script(lambda x: use(x, tracejit))
    assert raised(lambda x, m: captured(x), mine(), tracejit) == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beyond_64_bits(name, kind):
    same(NUMBERS[name], kind)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_beyond_64_bits(name):
    same(SIZES[name], "float32")


@pytest.mark.parametrize("name", DRAWS)
def test_parameters_of_distributions(name):
    same(DRAWS[name], "float32")


@pytest.mark.parametrize("use", [
    lambda x, m: x.fill_(300),
    lambda x, m: x.masked_fill(x > 0, 300),
    lambda x, m: x.masked_fill_(x > 0, -129),
])  # fmt: skip
def test_elements_that_a_dtype_does_not_have(use):
    same(use, "int8")


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63), 2**62])
@pytest.mark.parametrize("kind", KINDS)
def test_what_64_bits_hold_is_taken(kind, number):
    torch = pytest.importorskip("torch")
    wanted = (torch.tensor([1, 2], dtype=getattr(torch, kind)) * number).tolist()
    x = tracejit.tensor([1, 2], dtype=getattr(tracejit, kind))
    assert (x * number).tolist() == wanted
    assert tracejit.script(lambda x: x * number)(x).tolist() == wanted


def written(x, n):
    x[1:] = n
    return x


WAYS = {
    "assigned": written,
    "filled": lambda x, n: x.fill_(n),
    "masked": lambda x, n: x.masked_fill(x > 0, n),
    "full": lambda x, n: tracejit.full((2,), n, dtype=x.dtype),
}


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_programs_made_for_numbers_and_sizes_that_fit_refuse_others(way, mode):
    """The number, or the size, is known only when the program runs."""

    def tried(function, *args):
        try:
            return function(*args).tolist()
        except RuntimeError as error:
            return str(error)

    by_number = tracejit.script(way, mode=mode)
    by_size = tracejit.script(lambda x: way(x, x.shape[0]), mode=mode)
    for dtype in (tracejit.int8, tracejit.uint8, tracejit.int32, tracejit.float32):
        for n in (3, 5, -7, 222, -300, 2**40):
            ones = [tracejit.ones(4, dtype=dtype) for _ in range(2)]
            assert tried(by_number, ones[0], n) == tried(way, ones[1], n), (dtype, n)
        for n in (3, 5, 222, 300, 7):
            ones = [tracejit.ones(n, dtype=dtype) for _ in range(2)]
            assert tried(by_size, ones[0]) == tried(way, ones[1], n), (dtype, n)
