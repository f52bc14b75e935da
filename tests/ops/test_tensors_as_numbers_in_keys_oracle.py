"""Keys with integer tensors that have no dimension: they count as numbers, as in PyTorch, so that
they do not decide where the dimensions of other index tensors go."""

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

KEYS = {
    "first": lambda t, i, m: (t, slice(None), i),
    "second": lambda t, i, m: (slice(None), t, slice(None), i),
    "last": lambda t, i, m: (i * 0, slice(None), t),
    "rows": lambda t, i, m: (slice(None), t, slice(None), i.reshape(3, 1)),
    "between": lambda t, i, m: (i * 0, t, i),
    "around": lambda t, i, m: (i * 0, t, slice(None), i),
    "twice": lambda t, i, m: (t, slice(None), t, i),
    "alone": lambda t, i, m: (t, Ellipsis, t),
    "new dimension": lambda t, i, m: (None, t, slice(None), i),
    "numbers": lambda t, i, m: (t, slice(None), 1, i),
    "mask": lambda t, i, m: (slice(None), t, slice(None), m),
    "range": lambda t, i, m: (t, slice(1, 3), i),
}


def outcome(library, name, captured):
    x = library.arange(120.0).reshape(2, 3, 4, 5)
    t, i = library.tensor(1), library.tensor([0, 2, 1])
    m = library.tensor([True, False, True, True, False])

    def both(x, t, i, m):
        key = KEYS[name](t, i, m)
        read = x[key]
        written = x.clone()
        written[key] = library.arange(float(read.numel())).reshape(read.shape)
        filled = x.clone()
        filled[key] = -1.0
        return read, written, filled

    run = library.script(both) if captured else both
    return [(tuple(y.shape), y.tolist()) for y in run(x, t, i, m)]


@pytest.mark.parametrize("name", KEYS)
def test_read_and_written(name):
    expected = outcome(torch, name, False)
    assert outcome(tracejit, name, False) == expected
    assert outcome(tracejit, name, True) == expected
