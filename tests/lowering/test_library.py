"""Library kernels: they compute what the ops' NumPy forms do, and no host call is left."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit
from tracejit.core.eager import dispatch
from tracejit.jit.lowering import (
    library_averages,
    library_convolution,
    library_order,
    library_pooling,
    library_scan,
)
from tracejit.jit.lowering.kernel_emitter import emit_kernel
from tracejit.jit.lowering.native import namespace_of
from tracejit.jit.runtime import eager_kernels
from tracejit.nn import functional as F

RNG = np.random.default_rng(11)
FLOATS = ("float32", "float64")
KERNELS = [
    *(library_convolution._kernel(op, d, library_convolution.tile_of())
      for op in library_convolution._BODIES for d in FLOATS),
    *(library_averages._kernel(way, d) for way in (False, True) for d in FLOATS),
    *(make(d) for make in (library_pooling._largest, library_pooling._added) for d in FLOATS),
    *(library_order._kernel(d) for d in library_order._KEYS),
    *(library_scan._kernel(d) for d in library_scan._WIDER),
]

# batch, channels, outputs, groups, kernel, stride, padding, dilation, image
CONVOLUTIONS = [
    (2, 3, 4, 1, (3,), 1, 1, 1, (9,)),
    (3, 4, 6, 2, (3, 2), 2, 1, 1, (9, 7)),
    (1, 4, 4, 4, (3, 3), 1, 1, 2, (9, 9)),
    (5, 6, 8, 1, (1, 1), 1, 0, 1, (5, 6)),
    (2, 6, 8, 2, (1, 1), 1, 0, 1, (5, 6)),
    (2, 6, 8, 2, (1, 1), 2, 0, 1, (5, 6)),
    (1, 2, 2, 1, (4, 4), 3, 3, 1, (4, 4)),
    (0, 2, 3, 1, (3, 3), 1, 1, 1, (5, 5)),
    (1, 40, 8, 1, (3, 3), 1, 1, 1, (40, 40)),
    (2, 2, 3, 1, (2, 3, 2), (1, 2, 1), (0, 1, 1), 1, (4, 5, 6)),
    (13, 4, 6, 2, (3, 3), 1, 1, 1, (3, 4)),  # of several images at a time
    (9, 5, 33, 1, (3, 3), 2, 1, 1, (5, 5)),
    (200, 3, 4, 1, (3,), 1, 1, 1, (5,)),
]
POOLINGS = [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 2, False), (3, 3, 1, 1, True)]
SHAPES = [((3, 7), 1), ((7, 3), 0), ((2, 200, 3), 1), ((5, 1), 1), ((0, 4), 1), ((2, 300), 1)]


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Eager mode without library kernels."""
    monkeypatch.setattr(dispatch, "_library", [])


def no_host_call(captured):
    names = [kernel.name for kernel in captured.report().kernels]
    assert names and not [name for name in names if name.startswith("host")], names


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernels_need_no_numba(kernel):
    assert emit_kernel(kernel.source, kernel.name, "symbol", namespace_of(kernel))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_and_their_gradients(case, dtype):
    n, channels, outputs, groups, kernel, stride, padding, dilation, image = case
    x = tracejit.tensor(RNG.standard_normal((n, channels, *image)).astype(dtype))
    w = tracejit.tensor(RNG.standard_normal((outputs, channels // groups, *kernel)).astype(dtype))
    x, w = x.requires_grad_(), w.requires_grad_()
    convolve = getattr(F, f"conv{len(image)}d")

    def step(x, w):
        y = convolve(x, w, None, stride, padding, dilation, groups)
        return y, *tracejit.autograd.grad((y * y).sum(), [x, w])

    captured = tracejit.script(step)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for expected, found in zip(step(x, w), captured(x, w)):
        scale = max(1.0, float(expected.detach().abs().amax())) if expected.numel() else 1.0
        difference = (expected - found).detach().numpy()
        np.testing.assert_allclose(difference / scale, 0, atol=tolerance)
    no_host_call(captured)


@pytest.mark.parametrize("case", POOLINGS, ids=str)
def test_pooling_finds_the_first_of_equal_ones_and_the_last_nan(case):
    x = RNG.standard_normal((3, 2, 9, 8)).round(1).astype("f4")
    x[0, 0, 1, 2:4], x[1], x[2] = np.nan, -np.inf, x[2].round()

    def step(x):
        y, places = F.max_pool2d(x, *case, return_indices=True)
        return y, places, *tracejit.autograd.grad((y * 2).sum(), [x])

    captured = tracejit.script(step)
    given = tracejit.tensor(x, requires_grad=True)
    for expected, found in zip(step(given), captured(given)):
        np.testing.assert_array_equal(expected.detach().numpy(), found.detach().numpy())
    no_host_call(captured)


@pytest.mark.parametrize("case", [
    lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 0)),
    lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    lambda x: F.avg_pool1d(x.flatten(2), 4, 3, 2),
    lambda x: F.adaptive_avg_pool3d(x.unsqueeze(2), (1, 1, 1)),
])  # fmt: skip
def test_averages_of_windows_and_their_gradients(case):
    x = tracejit.tensor(RNG.standard_normal((3, 2, 9, 8)), requires_grad=True)

    def step(x):
        y = case(x)
        return y, *tracejit.autograd.grad((y * y).sum(), [x])

    captured = tracejit.script(step)
    for expected, found in zip(step(x), captured(x)):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-13)
    no_host_call(captured)


@pytest.mark.parametrize("dtype", library_order._KEYS)
def test_order_and_running_sums_are_those_of_eager_mode(dtype):
    def run(x, dim, count, down):
        values, places = tracejit.sort(x, dim, down)
        return values, places, *tracejit.topk(x, count, dim, down), x.cumsum(dim)

    captured = tracejit.script(run)
    for shape, dim in SHAPES:
        x = (RNG.standard_normal(shape) * 5).round(1).astype(dtype)
        flat = x.reshape(-1)
        if dtype in FLOATS and x.size > 20:
            flat[::11], flat[1::7], flat[2::13] = np.nan, -0.0, 0.0
            flat[3], flat[4] = np.inf, -np.inf
        elif x.size:
            flat[0], flat[-1] = np.iinfo(dtype).min if "int" in dtype else 0, 3
        for count in {0, min(3, shape[dim]), shape[dim]}:
            for down in (False, True):
                given = tracejit.tensor(x)
                pairs = zip(run(given, dim, count, down), captured(given, dim, count, down))
                for expected, found in pairs:
                    np.testing.assert_array_equal(expected.numpy(), found.numpy())
                    if dtype in FLOATS:
                        signs = (np.signbit(t.double().nan_to_num().numpy())
                                 for t in (expected, found))  # fmt: skip
                        np.testing.assert_array_equal(*signs)
    no_host_call(captured)


def test_eager_mode_and_the_interpreter_run_the_same_kernels(monkeypatch):
    monkeypatch.setattr(dispatch, "_library", [eager_kernels.run])
    x = tracejit.tensor(RNG.standard_normal((2, 3, 9, 8)).astype("f4"))
    w = tracejit.tensor(RNG.standard_normal((4, 3, 3, 3)).astype("f4"))

    def step(x, w):
        y = F.avg_pool2d(F.conv2d(x.transpose(2, 3), w, padding=1), 2)
        return y, *y.sort(1), y.cumsum(2)

    expected = step(x, w)
    for options in ({"numerics": "eager"}, {"mode": "graph"}, {"mode": "python"}):
        for a, b in zip(expected, tracejit.script(step, **options)(x, w)):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_loops_over_channels_divide_no_index():
    """Sizes of several terms, such as those of a convolution, are divided by one another."""
    def step(x, w, b):
        y = F.conv2d(x, w, b, padding=1)
        return F.relu(y), y.mean((0, 2, 3))

    captured = tracejit.script(step)
    captured(tracejit.ones(2, 3, 5, 6), tracejit.ones(4, 3, 3, 3), tracejit.ones(4))
    sources = [k.source for k in captured.report().kernels if not k.name.startswith("conv")]
    lines = [line for source in sources for line in source.splitlines()]
    inner = [line for line in lines if line.startswith(" " * 12)]
    assert inner and not any("//" in line or "%" in line for line in inner), sources
