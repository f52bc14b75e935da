"""Sums at places: rows that are named several times have the bits of sums one by one."""

import numpy as np
import pytest

from tracejit.core.ops import array_sums


def call(kind, size, count, shape, way, monkeypatch):
    rng = np.random.default_rng(size)
    rows = rng.integers(-size, size, count)
    values = rng.standard_normal((*count, *shape)) * 10.0 ** rng.integers(-5, 5, (*count, *shape))
    values[rng.random(values.shape) < 0.2] = -0.0
    values[rng.random(values.shape) < 0.01] = np.nan
    values[rng.random(values.shape) < 0.01] = np.inf
    whole = rng.standard_normal((size, *shape))
    whole[: size // 2] = -0.0
    ran = []
    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        kept = array_sums._add_rows
        patch.setattr(array_sums, "_add_rows", lambda *given: ran.append(
            way and kept(*given)) or ran[-1])
        place = (rows, *[slice(None)] * len(shape))
        found = array_sums.add_at(np, whole.astype(kind), place, values.astype(kind))
    return found.tobytes(), ran


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
@pytest.mark.parametrize(("size", "count", "shape"), [
    (200, (7, 30), (16,)), (50, (300,), (1,)), (5, (100,), (3, 2)), (1, (200,), (4,)),
    (1000, (300,), (2, 2))], ids=str)  # fmt: skip
def test_rows_named_often_have_the_bits_of_sums_one_by_one(monkeypatch, kind, size, count, shape):
    found, ran = call(kind, size, count, shape, True, monkeypatch)
    expected, _ = call(kind, size, count, shape, False, monkeypatch)
    assert found == expected and ran == [size > 5]


def test_elements_and_few_values_are_added_by_numpy(monkeypatch):
    monkeypatch.setattr(array_sums, "_add_rows", lambda *given: pytest.fail("rows"))
    ones = np.ones(300, np.float32)
    found = array_sums.add_at(np, np.zeros(3, np.float32), (np.zeros(300, int),), ones)
    assert found.tolist() == [300.0, 0.0, 0.0]
    place = (slice(None), np.zeros(3, int))
    array_sums.add_at(np, np.zeros((100, 3), np.float32), place, np.ones((100, 3), np.float32))
