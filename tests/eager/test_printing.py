"""Tensors print character for character as torch prints them."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

nan, inf = float("nan"), float("inf")
rng = np.random.default_rng(0)

ARRAYS = [
    np.array(1.5, np.float32), np.array(3, np.int64), np.array(True), np.array(2.0, np.float64),
    np.array([1.0, 2.0], np.float32), np.array([1.0, 2.5], np.float32),
    np.array([], np.float32), np.array([], np.int64), np.zeros((2, 0), np.float32),
    np.zeros((0, 3), np.float64), np.zeros((2, 0), np.int32),
    np.array([1e-5, 1.0], np.float32), np.array([1e10, 1.0], np.float32),
    np.array([1e9, 2e9], np.float32), np.array([0.00001], np.float32),
    np.array([nan, 1.0], np.float32), np.array([inf, -inf, nan], np.float32),
    np.array([inf, 1.5], np.float32), np.array([-0.0, 0.0], np.float32),
    np.array([1000.5, 0.5], np.float32), np.array([10001.0, 0.5], np.float32),
    np.array([-1, 100, 3]), np.array([True, False]), np.array([1, 2], np.int8),
    np.array([1, 2], np.int32), np.array([255], np.uint8), np.array([1.5], np.float64),
    np.array([1.5, 2.25], np.float16), np.arange(6).reshape(2, 3),
    np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), np.arange(16).reshape(2, 2, 2, 2),
    np.arange(40), np.arange(30.0, dtype=np.float32), np.arange(1001),
    np.arange(1000), rng.standard_normal((3, 20)).astype(np.float32),
    np.arange(1200).reshape(30, 40), rng.standard_normal((20, 10, 9)).astype(np.float32),
    np.arange(2000.0, dtype=np.float32).reshape(2, 1000),
    (rng.standard_normal((4, 5)) * 1e-6).astype(np.float32),
    rng.standard_normal((2, 3)) * 1e5, np.array([[1.0, nan], [inf, 2.0]], np.float32),
    np.array([1 + 2j, 3 - 4j], np.complex64), np.array([123456789.0, 1.0], np.float64),
    rng.standard_normal(10).astype(np.float64), np.full((3,), -1.0, np.float32),
]  # fmt: skip


def both(array):
    return tracejit.tensor(array), torch.tensor(array)


def as_ours(text):
    return text.replace("torch.", "tracejit.")


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}-{a.ravel()[:1]}")
def test_repr(array):
    ours, theirs = both(array)
    assert repr(ours) == as_ours(repr(theirs))
    assert str(ours) == as_ours(str(theirs))


@pytest.mark.parametrize("array", ARRAYS[-8:-2], ids=lambda a: f"{a.dtype}{list(a.shape)}")
@pytest.mark.parametrize(
    "given",
    [
        {"precision": 2},
        {"sci_mode": True},
        {"linewidth": 40},
        {"threshold": 5, "edgeitems": 1},
        {"profile": "short"},
    ],
    ids=str,
)
def test_repr_with_options(array, given):
    ours, theirs = both(array)
    try:
        tracejit.set_printoptions(**given)
        torch.set_printoptions(**given)
        assert repr(ours) == as_ours(repr(theirs))
    finally:
        tracejit.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


def test_repr_says_what_autograd_knows():
    def texts(m):
        x = m.tensor([1.0, 2.0], requires_grad=True)
        d = m.tensor([[1.0] * 8] * 2, dtype=m.float64, requires_grad=True)
        return [
            repr(x),
            repr(x * 2),
            repr((x * x).sum()),
            repr(x.detach()),
            repr(d),
            repr(d.exp()),
            repr(x[0]),
        ]

    assert texts(tracejit) == [as_ours(t) for t in texts(torch)]


def test_format():
    ours, theirs = tracejit.tensor(3.14159), torch.tensor(3.14159)
    assert f"{ours:.2f} {ours}" == f"{theirs:.2f} {theirs.item()}"
    with pytest.raises(TypeError):
        f"{tracejit.tensor([1.0, 2.0]):.2f}"


def test_size_prints_like_torch():
    assert repr(tracejit.zeros(2, 3).shape) == as_ours(repr(torch.zeros(2, 3).shape))
    assert str(tracejit.zeros(()).shape) == as_ours(str(torch.zeros(()).shape))
