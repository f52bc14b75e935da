"""Numbers that a call reads from tensors, by whatever way: no kernel for each value."""

import operator
import os
import struct
import threading

import numpy as np
import pytest

import tracejit
from tracejit import config
from tracejit.core.ops import direct_calls
from tracejit.jit import compiled_function
from tracejit.jit.runtime import cache, pace

WAYS = {
    "tolist": lambda y: y[0].tolist()[0],
    "item": lambda y: y[0, 0].item(),
    "float": lambda y: float(y[0, 0]),
    "int": lambda y: int(y[0, 0]),
    "bool": lambda y: bool(y[0, 0] > 3) + 0.5,
    "numpy": lambda y: y.numpy()[0, 0],
    "asarray": lambda y: float(np.asarray(y)[0, 0]),
    "iteration": lambda y: [v.item() for v in y[0]][0],
    "parsed text": lambda y: float(f"{y[0, 0].item()}"),
    "data": lambda y: y.data.tolist()[0][0],
    "map": lambda y: list(map(float, y[0]))[0],
    "unpacked": lambda y: (lambda first, *rest: first)(*y[0].tolist()),
    "memoryview": lambda y: memoryview(y.numpy().tobytes()).cast("f")[0],
    "struct": lambda y: struct.unpack("f", y.numpy().tobytes()[:4])[0],
    "untyped storage": lambda y: struct.unpack("f", bytes(y.untyped_storage().tolist()[:4]))[0],
    "index": lambda y: operator.index(y[0, 0].to(tracejit.int64)),
    "complex": lambda y: complex(y[0, 0]).real,
    "argmax": lambda y: y[0].argmax().item(),
    "size by values": lambda y: y.nonzero().size(0),
}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    # Eager ops get a native function after some calls: no matter of numbers.
    monkeypatch.setattr(direct_calls, "_maker", [])
    with config.override(cache_dir=tmp_path):
        yield


def _size():
    files = sum(len(names) for _, _, names in os.walk(config.flags.cache_dir))
    return dict(cache.counts), files, threading.active_count(), len(compiled_function._segments)


def _level(way, calls, warm):
    """Call a function that reads a number `calls` times; what grew since `warm` calls."""

    def plain(x):
        y = x * 2
        number = way(y)
        z = y + number
        return z.sum(), (z * number).mean()

    compiled = tracejit.script(plain)
    before = None
    for k in range(calls):
        x = tracejit.full((10, 10), k % 97 / 8 + 1)
        x[0, k % 7] = k
        got = compiled(x)
        if k % 10 == 0:
            for one, other in zip(got, plain(x)):
                assert tracejit.allclose(one, other, rtol=1e-5)
        if k == warm:
            before = _size()
    return before, _size()


@pytest.mark.parametrize("name", WAYS)
def test_each_value_needs_no_kernel(name, monkeypatch, own_cache):
    monkeypatch.setattr(pace, "clock", lambda: 0.0)  # co-executed, as nothing is faster
    before, after = _level(WAYS[name], 40, 12)
    assert before == after


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_thousands_of_calls_are_level(name, own_cache):
    before, after = _level(WAYS[name], 3000, 200)
    assert before == after


def test_a_number_that_stays_the_same_is_a_constant(monkeypatch):
    monkeypatch.setattr(pace, "clock", lambda: 0.0)

    def same(x):
        return x * (x.tolist()[0] * 0 + 3.0)

    compiled = tracejit.script(same)
    for k in range(6):
        compiled(tracejit.full((4,), k + 1.0))
    assert all("3.0" in text for text in [compiled.graphs["captured"]])


def test_numbers_of_an_argument_in_a_call_that_is_only_co_executed(monkeypatch):
    monkeypatch.setattr(pace, "clock", lambda: 0.0)
    compiled = tracejit.script(lambda x, rate, k: (x.tolist(), x * rate + k)[1])
    x = tracejit.ones(5)
    for k in range(8):
        compiled(x, 0.5 + k, k)
    before = dict(cache.counts)
    for k in range(8, 20):
        assert compiled(x, 0.5 + k, k).tolist() == [0.5 + 2 * k] * 5
    assert dict(cache.counts) == before


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_values_are_those_of_the_plain_function(dtype, monkeypatch):
    monkeypatch.setattr(pace, "clock", lambda: 0.0)

    def plain(x):
        n = x.tolist()[1]
        return x + n, n - x, x > n, tracejit.where(x > 1, x, n), x.clamp(max=n), x**2 / n

    compiled = tracejit.script(plain)
    for k in range(1, 5):
        x = tracejit.tensor([0, k, 2 * k, 3], dtype=getattr(tracejit, dtype))
        for one, other in zip(compiled(x), plain(x)):
            assert one.dtype is other.dtype
            assert tracejit.allclose(one.double(), other.double(), rtol=1e-6)
