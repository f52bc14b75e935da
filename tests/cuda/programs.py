"""Captured functions that the tests of CUDA run: to PTX, in the simulator, and on a GPU.

In: a device. Out: for each name a function of a device that returns NumPy arrays, equal on every
device within a tolerance. The tensors' sizes are small, and prime to the grids' strides.
"""

from __future__ import annotations

import numpy as np

import tracejit
from tracejit import nn
from tracejit.nn import functional


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def on_host(*tensors):
    return [x.detach().cpu().float().numpy() if x.dtype is tracejit.bfloat16
            else x.detach().cpu().numpy() for x in tensors]  # fmt: skip


class Called:
    """A function of tensors, captured and called on a device; its inputs are results as well."""

    def __init__(self, function, *arrays):
        self.function, self.arrays = function, arrays

    def __call__(self, device):
        tracejit.manual_seed(3)
        inputs = [tracejit.tensor(a, device=device) for a in self.arrays]
        compiled = tracejit.script(self.function)
        found = compiled(*inputs)
        assert not compiled.report().breaks, compiled.report().breaks
        found = found if isinstance(found, tuple) else (found,)
        assert {x.device.type for x in found} == {device}
        return on_host(*found, *inputs)


class Training:
    """Three whole steps of an MLP: forward, backward, clipping, the optimizer's update in place."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def __call__(self, device):
        tracejit.manual_seed(1)
        model = nn.Sequential(
            nn.Linear(8, 5), nn.GELU(), nn.LayerNorm(5), nn.Dropout(0.2), nn.Linear(5, 4)
        ).to(device)
        optimizer = self.optimizer(model.parameters())

        @tracejit.script
        def step(x, y):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss

        losses = []
        for k in range(3):
            x = tracejit.tensor(numbers(6, 8, seed=k), device=device)
            y = tracejit.tensor(np.arange(6) % 4, device=device)
            losses.append(step(x, y))
        assert not step.report().breaks, step.report().breaks
        return on_host(*losses, *model.parameters())


def pointwise(x, y):
    return (x * y + 1).tanh(), tracejit.where(x > y, x.exp(), y), (x - y).sigmoid() / x


def reductions(x):
    return (x.sum(), x.sum(0), x.sum(1), x.amax(), x.amin(0), x.var(1), x.mean(), (x * x).sum(1),
            (x > 0).any(1), (x > 0).all(0), x.argmax(1), x.argmin(0), x.argmax(),
            x.to(tracejit.int64).sum(0))  # fmt: skip


def normalised(x, w, b):
    return functional.layer_norm(x, (x.shape[1],), w, b), x.softmax(1), x.log_softmax(0)


def attention(q, k, v):
    return (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1) @ v


def integers(x):
    small = x.to(tracejit.int8)
    return (x // 3, x % 3, x.sum(), small + small, x.abs().amin(), x << 1, x.to(tracejit.uint8),
            x.float().to(tracejit.int32))  # fmt: skip


def rounding(x, y):
    return (tracejit.fmod(x, y), tracejit.remainder(x, y), x.floor(), x.ceil(), x.round(),
            x.trunc(), x.to(tracejit.int64))  # fmt: skip


def halves(x):
    h, b = x.to(tracejit.float16), x.to(tracejit.bfloat16)
    return (h * 3).tanh(), h.sum(1), (b * 3).tanh(), b.sum(1).float()


def doubles(x):
    d = x.double()
    return d.exp().sum(1), d @ d.t(), d.erf()


def indexed(w, i):
    return w[i] * 2, w.index_select(0, i), w.gather(1, i[:, None]), functional.embedding(i, w)


def scattered(x, i):
    zeros = tracejit.zeros(5, x.shape[1], device=x.device)
    return zeros.index_add(0, i, x), zeros.scatter_add(0, i[:, None].expand_as(x), x)


def written(x):
    x.mul_(2).add_(1)
    x[1:3].fill_(7)
    x.t()[0].sub_(1)
    return x.amax(1)


def joined(x, y):
    return tracejit.cat([x, y]), tracejit.stack([x, y]), functional.pad(x, (1, 2)), x.flip(0)


def random(x):
    draws = (tracejit.rand(5, 7, device=x.device), tracejit.randn(11, device=x.device),
             tracejit.randint(0, 9, (6,), device=x.device))  # fmt: skip
    return *draws, functional.dropout(x, 0.3)


def by_the_library(x):
    """Ops without kernels: host calls of CuPy."""
    return x.sort(1).values, x.cumsum(0)


def extreme(kind):
    """Pairs whose quotients are tiny, huge, or none."""
    rng = np.random.default_rng(0)
    pair = rng.standard_normal((2, 300)) * 10.0 ** rng.integers(-30, 30, (2, 300))
    pair[:, :6] = [np.inf, 1, 0, np.nan, -0.0, 5], [1, np.inf, 0, 1, 3, 0]
    return pair.astype(kind)


X, POSITIONS = numbers(5, 7), np.array([3, 0, 3, 4])
EXACT = {"random", "indexed", "scattered", "written", "joined", "integers", "rounding",
         "remainders", "remainders of doubles"}
PROGRAMS = {
    "pointwise": Called(pointwise, X, numbers(5, 7, seed=1)),
    "reductions": Called(reductions, X),
    "reductions of much": Called(lambda x: (x.sum(), (x * x).mean()), numbers(9001)),
    "normalised": Called(normalised, X, numbers(7, seed=1), numbers(7, seed=2)),
    "attention": Called(attention, *(numbers(2, 5, 8, seed=k) for k in range(3))),
    "integers": Called(integers, np.arange(-50, 55).reshape(5, 21)),
    "rounding": Called(rounding, numbers(30) * 100, numbers(30, seed=1)),
    "remainders": Called(tracejit.fmod, *extreme(np.float32)),
    "remainders of doubles": Called(tracejit.fmod, *extreme(np.float64)),
    "halves": Called(halves, X),
    "doubles": Called(doubles, X),
    "indexed": Called(indexed, X, POSITIONS),
    "scattered": Called(scattered, numbers(4, 7), POSITIONS),
    "written": Called(written, X),
    "joined": Called(joined, X, X + 1),
    "random": Called(random, X),
    "by the library": Called(by_the_library, X),
    "training, AdamW": Training(lambda p: tracejit.optim.AdamW(p, lr=1e-2)),
    "training, SGD": Training(lambda p: tracejit.optim.SGD(p, lr=1e-2, momentum=0.9)),
}


def agree(name, got, want):
    """Exactly where no float is rounded differently, else to a few units in the last place."""
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape
        if name in EXACT or g.dtype.kind in "iub":
            np.testing.assert_array_equal(g, w)
        else:
            limit = 2e-3 if g.dtype == np.float16 else 3e-5
            np.testing.assert_allclose(g.astype("f8"), w.astype("f8"), rtol=limit, atol=limit)
