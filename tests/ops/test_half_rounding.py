"""Doubles as float16: rounded to float32 on the way, as in PyTorch, however it is asked for."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

# Just beside the middles between two halves: float32 does not tell them from the middle.
MIDDLES = np.arange(0x3C00, 0x3C40, dtype=np.uint16).view(np.float16).astype(np.float64) + 2.0**-11
BESIDE = np.concatenate([MIDDLES + 2.0**-40, MIDDLES - 2.0**-40])
NUMBER = 1 + 2.0**-11 + 2.0**-40

WAYS = {
    "to": lambda t, x: x.to(t.float16),
    "half": lambda t, x: x.half(),
    "copy_": lambda t, x: t.zeros(128, dtype=t.float16).copy_(x),
    "setitem": lambda t, x: t.zeros(128, dtype=t.float16).index_put((t.arange(128),), x.half()),
    "sum": lambda t, x: x.reshape(128, 1).sum(1, dtype=t.float16),
    "full": lambda t, x: t.full((2,), NUMBER, dtype=t.float16),
    "fill_": lambda t, x: t.zeros(2, dtype=t.float16).fill_(NUMBER),
    "where": lambda t, x: t.where(x > 1, NUMBER, t.zeros(128, dtype=t.float16)),
    "where both": lambda t, x: t.where(x > 1, t.zeros(128, dtype=t.float16), NUMBER),
    "masked_fill": lambda t, x: t.zeros(128, dtype=t.float16).masked_fill(x > 1, NUMBER),
    "eq": lambda t, x: t.ones(2, dtype=t.float16) == NUMBER,
    "clamp": lambda t, x: t.zeros(2, dtype=t.float16).clamp(min=NUMBER),
    "pad": lambda t, x: t.nn.functional.pad(t.zeros(2, dtype=t.float16), (0, 1), value=NUMBER),
}


@pytest.mark.parametrize("way", WAYS)
def test_converted(way):
    compute = WAYS[way]
    expected = compute(torch, torch.from_numpy(BESIDE)).tolist()
    x = tracejit.from_numpy(BESIDE)
    compiled = tracejit.script(lambda x: compute(tracejit, x))
    assert compute(tracejit, x).tolist() == expected
    assert compiled(x).tolist() == compiled(x).tolist() == expected


def test_made_of_data():
    for make in (lambda t: t.tensor(BESIDE.tolist(), dtype=t.float16),
                 lambda t: t.as_tensor(BESIDE, dtype=t.float16),
                 lambda t: t.tensor(NUMBER, dtype=t.float16),
                 lambda t: t.ones(1, dtype=t.float16).new_tensor(BESIDE.tolist())):  # fmt: skip
        assert make(tracejit).tolist() == make(torch).tolist()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [0.1, 2.7, 3.3, -1 / 3, 2.0001])
def test_numbers_of_powers_are_halves(kind, number):
    """The exponent, or the base, has the tensor's dtype."""
    values = np.random.default_rng(1).uniform(0.1, 3, 2000)
    theirs = torch.from_numpy(values).to(getattr(torch, kind))
    mine = tracejit.from_numpy(values).to(getattr(tracejit, kind))
    for compute in (lambda x, n: x**n, lambda x, n: abs(n) ** x):
        expected = compute(theirs, number).float().numpy()
        found = compute(mine, number).float().numpy()
        compiled = tracejit.script(compute)
        again = [compiled(mine, number).float().numpy() for _ in range(3)]
        for result in (found, *again):
            # float32 powers of two libraries may lie on two sides of a middle
            assert (result != expected).mean() < 0.002


RESTS = {
    "remainder": lambda x, n: x % n, "remainder of a number": lambda x, n: n % x,
    "fmod": lambda x, n: x.fmod(n), "floor_divide": lambda x, n: x // n,
    "floor_divide of a number": lambda x, n: n // x, "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", RESTS)
def test_numbers_beside_halves(name, kind):
    """Rounded where the rest of a division is asked for, exact where one divides by them."""
    values = np.random.default_rng(1).uniform(0.1, 3, 2000)
    theirs = torch.from_numpy(values).to(getattr(torch, kind))
    mine = tracejit.from_numpy(values).to(getattr(tracejit, kind))
    compiled = tracejit.script(RESTS[name])
    for number in (1 / 3, 0.1, 2.7, 0.7):
        expected = RESTS[name](theirs, number).tolist()
        assert RESTS[name](mine, number).tolist() == expected
        assert compiled(mine, number).tolist() == expected
