"""Fourier transforms: what is refused, frequencies, one program for many sizes, no wider dtype."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj

ERRORS = {
    "no points": lambda m, x, z: m.fft.fft(x, n=0),
    "nothing": lambda m, x, z: m.fft.fft(x[:, :0]),
    "one point of a half": lambda m, x, z: m.fft.irfft(x[:, :1]),
    "dim": lambda m, x, z: m.fft.fft(x, dim=2),
    "norm": lambda m, x, z: m.fft.fftn(x, norm="q"),
    "complex to rfft": lambda m, x, z: m.fft.rfft(z),
    "complex to rfft2": lambda m, x, z: m.fft.rfft2(z),
    "complex to ihfft": lambda m, x, z: m.fft.ihfft(z),
    "complex to ihfftn": lambda m, x, z: m.fft.ihfftn(z),
    "number": lambda m, x, z: m.fft.fft(m.tensor(1.0)),
    "lengths": lambda m, x, z: m.fft.fftn(x, s=(2,), dim=(0, 1)),
    "dim twice": lambda m, x, z: m.fft.fftn(x, dim=(0, 0)),
    "too many": lambda m, x, z: m.fft.fftn(x, s=(1, 2, 3)),
    "no axis": lambda m, x, z: m.fft.irfftn(x, dim=()),
    "no axis of a real one": lambda m, x, z: m.fft.rfftn(x, dim=()),
    "half": lambda m, x, z: m.fft.fft(x.half()),
    "frequencies": lambda m, x, z: m.fft.fftfreq(4, dtype=m.int64),
}


def raised(call, m):
    x = m.from_numpy(np.arange(12, dtype=np.float32).reshape(3, 4))
    with pytest.raises((RuntimeError, IndexError)) as found:
        call(m, x, m.complex(x, x))
    return found.type, str(found.value)


@pytest.mark.oracle
@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS)
def test_errors_are_those_of_pytorch(call):
    assert raised(call, tj) == raised(call, pytest.importorskip("torch"))


@pytest.mark.oracle
@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_are_those_of_pytorch(n):
    torch = pytest.importorskip("torch")
    for name in ("fftfreq", "rfftfreq"):
        ours, theirs = (getattr(m.fft, name)(n, 0.3) for m in (tj, torch))
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_one_program_serves_all_sizes(mode):
    def f(x):
        spectrum = tj.fft.rfft(x)
        kept = spectrum * (tj.fft.rfftfreq(x.shape[-1]) < 0.3)
        return tj.fft.fftshift(tj.fft.irfft(kept, n=x.shape[-1]))

    compiled = tj.script(f, mode=mode)
    for batch, n in ((2, 8), (3, 8), (2, 9), (4, 6)):
        tj.manual_seed(n)
        x, grads = tj.randn(batch, n, requires_grad=True), []
        for function in (f, compiled):
            y = function(x)
            assert y.dtype is tj.float32
            grads.append((y, *tj.autograd.grad((y * tj.arange(float(n))).sum(), x)))
        assert all(map(tj.allclose, *grads))
    assert not compiled.report().breaks and compiled.report().variants == 1


def test_single_precision_stays_single():
    z = tj.zeros(2, 4, dtype=tj.complex64)
    assert tj.fft.fft2(z).dtype is tj.complex64 and tj.fft.irfftn(z).dtype is tj.float32
    assert tj.fft.rfft(z.real).dtype is tj.complex64
