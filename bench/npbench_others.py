"""NPBench's other kernels: networks, distances, histograms, fractals, bodies, sparse, spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from bench.npbench_kernel import Kernel, Sizes, random


# -- elementwise ------------------------------------------------------------------------------
def arc_distance(t1: Any, p1: Any, t2: Any, p2: Any) -> Any:
    a = (np.sin((t2 - t1) / 2) ** 2
         + np.cos(t1) * np.cos(t2) * np.sin((p2 - p1) / 2) ** 2)
    return 2 * np.arctan2(np.sqrt(a), np.sqrt(1 - a))


def compute(x: Any, y: Any) -> Any:
    return np.clip(x, 2, 10) * 4 + y * 3 + 9


def go_fast(a: Any) -> Any:
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def go_fast_tensors(a: Any) -> Any:
    return a + tj.tanh(tj.diagonal(a)).sum()


# -- networks ---------------------------------------------------------------------------------
def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def softmax_loops(x: Any) -> Any:
    out = np.empty_like(x)
    for a in range(x.shape[0]):
        for b in range(x.shape[1]):
            for c in range(x.shape[2]):
                e = np.exp(x[a, b, c] - x[a, b, c].max())
                out[a, b, c] = e / e.sum()
    return out


def softmax_tensors(x: Any) -> Any:
    return tj.softmax(x, -1)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    x = np.maximum(x @ w1 + b1, np.float32(0))
    x = np.maximum(x @ w2 + b2, np.float32(0))
    x = x @ w3 + b3
    for row in x:  # numba's max takes no axis
        row -= row.max()
    e = np.exp(x)
    return e / e.sum(1).reshape(-1, 1)


def mlp_tensors(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    return tj.softmax(tj.relu(tj.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3, -1)


def _conv(x: Any, w: Any) -> Any:
    k, n = w.shape[0], x.shape[0]
    high, wide = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.zeros((n, high, wide, w.shape[3]), np.float32)
    for a in range(k):
        for b in range(k):
            part = np.ascontiguousarray(x[:, a : a + high, b : b + wide, :])
            rows = part.reshape(n * high * wide, x.shape[3])
            out += (rows @ w[a, b]).reshape(n, high, wide, w.shape[3])
    return out


def _conv_tensors(x: Any, w: Any) -> Any:
    y = tj.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1))
    return y.permute(0, 2, 3, 1)


def conv2d_bias(x: Any, w: Any, bias: Any) -> Any:
    return _conv(x, w) + bias


def conv2d_bias_tensors(x: Any, w: Any, bias: Any) -> Any:
    return _conv_tensors(x, w) + bias


def _pool(x: Any) -> Any:
    left = np.maximum(x[:, ::2, ::2], x[:, ::2, 1::2])
    return np.maximum(left, np.maximum(x[:, 1::2, ::2], x[:, 1::2, 1::2]))


def lenet(x: Any, c1: Any, b1: Any, c2: Any, b2: Any, w1: Any, w2: Any, w3: Any) -> Any:
    x = _pool(np.maximum(_conv(x, c1) + b1, np.float32(0)))
    x = _pool(np.maximum(_conv(x, c2) + b2, np.float32(0)))
    x = x.reshape(x.shape[0], w1.shape[0])
    return np.maximum(np.maximum(x @ w1, np.float32(0)) @ w2, np.float32(0)) @ w3


def lenet_tensors(x: Any, c1: Any, b1: Any, c2: Any, b2: Any, w1: Any, w2: Any, w3: Any) -> Any:
    x = _pool_tensors(tj.relu(_conv_tensors(x, c1) + b1))
    x = _pool_tensors(tj.relu(_conv_tensors(x, c2) + b2))
    return tj.relu(tj.relu(x.reshape(x.shape[0], -1) @ w1) @ w2) @ w3


def _pool_tensors(x: Any) -> Any:
    return tj.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


def _batch_norm(x: Any) -> Any:
    count = np.float32(x.shape[0])
    mean = x.sum(0) / count
    spread = np.sqrt(((x - mean) ** 2).sum(0) / count)
    return (x - mean) / np.sqrt(spread + np.float32(1e-5))


def resnet(x: Any, c1: Any, c2: Any, c3: Any) -> Any:
    padded = np.zeros((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, c1.shape[3]), np.float32)
    padded[:, 1:-1, 1:-1, :] = _conv(x, c1)
    y = np.maximum(_batch_norm(padded), np.float32(0))
    y = np.maximum(_batch_norm(_conv(y, c2)), np.float32(0))
    return np.maximum(_batch_norm(_conv(y, c3)) + x, np.float32(0))


def resnet_tensors(x: Any, c1: Any, c2: Any, c3: Any) -> Any:
    y = tj.nn.functional.pad(_conv_tensors(x, c1), (0, 0, 1, 1, 1, 1))
    y = tj.relu(_batch_norm_tensors(y))
    y = tj.relu(_batch_norm_tensors(_conv_tensors(y, c2)))
    return tj.relu(_batch_norm_tensors(_conv_tensors(y, c3)) + x)


def _batch_norm_tensors(x: Any) -> Any:
    mean = x.mean(0)
    spread = (x - mean).square().mean(0).sqrt()
    return (x - mean) / tj.sqrt(spread + 1e-5)


# -- rings around a centre --------------------------------------------------------------------
def azimint_naive(data: Any, radius: Any, count: int) -> Any:
    most, found = radius.max(), np.zeros(count)
    for i in range(count):
        ring = (most * i / count <= radius) & (radius < most * (i + 1) / count)
        found[i] = data[ring].mean()
    return found


def azimint_naive_tensors(data: Any, radius: Any, count: int) -> Any:
    most, found = radius.max(), []
    for i in range(count):
        ring = (most * i / count <= radius) & (radius < most * (i + 1) / count)
        found.append(tj.where(ring, data, 0.0).sum() / ring.sum())
    return tj.stack(found)


def azimint_hist(data: Any, radius: Any, count: int) -> Any:
    low, high = radius.min(), radius.max()
    bins = np.minimum(((radius - low) * (count / (high - low))).astype(np.int64), count - 1)
    return np.bincount(bins, data, count) / np.bincount(bins, minlength=count)


def azimint_hist_loops(data: Any, radius: Any, count: int) -> Any:
    low, high = radius.min(), radius.max()
    total, there = np.zeros(count), np.zeros(count)
    for k in range(len(radius)):
        at = min(int((radius[k] - low) * (count / (high - low))), count - 1)
        total[at] += data[k]
        there[at] += 1.0
    return total / there


def azimint_hist_tensors(data: Any, radius: Any, count: int) -> Any:
    low, high = radius.min(), radius.max()
    bins = ((radius - low) * (count / (high - low))).long().clamp(max=count - 1)
    zeros = tj.zeros(count, dtype=data.dtype)
    return zeros.index_add(0, bins, data) / zeros.index_add(0, bins, tj.ones_like(data))


# -- fractals ---------------------------------------------------------------------------------
def mandelbrot1(re: Any, im: Any, steps: int) -> Any:
    x, y = np.zeros_like(re), np.zeros_like(im)
    count = np.zeros_like(re)
    for n in range(steps):
        inside = x * x + y * y < 4.0
        count = np.where(inside, n, count)
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2.0 * x * y + im, y)
    return np.where(count == steps - 1, 0.0, count)


def mandelbrot1_loops(re: Any, im: Any, steps: int) -> Any:
    count = np.zeros_like(re)
    for i in range(re.shape[0]):
        for j in range(re.shape[1]):
            x = y = 0.0
            for n in range(steps):
                if x * x + y * y >= 4.0:
                    break
                count[i, j] = n
                x, y = x * x - y * y + re[i, j], 2.0 * x * y + im[i, j]
            if count[i, j] == steps - 1:
                count[i, j] = 0.0
    return count


def mandelbrot1_tensors(re: Any, im: Any, steps: int) -> Any:
    x, y = tj.zeros_like(re), tj.zeros_like(im)
    count = tj.zeros_like(re)
    for _ in range(steps):
        inside = x * x + y * y < 4.0
        count = count + inside
        x, y = tj.where(inside, x * x - y * y + re, x), tj.where(inside, 2.0 * x * y + im, y)
    return tj.where(count == steps, 0.0, count - 1.0)


# -- bodies -----------------------------------------------------------------------------------
def _pull(x: Any, mass: Any) -> Any:
    a, b, c = x[:, 0], x[:, 1], x[:, 2]
    p, q, r = a - a[:, None], b - b[:, None], c - c[:, None]
    near = (p * p + q * q + r * r + 0.01) ** -1.5
    return np.stack(((p * near) @ mass, (q * near) @ mass, (r * near) @ mass), 1)


def _energy(x: Any, v: Any, mass: Any) -> Any:
    a, b, c = x[:, 0], x[:, 1], x[:, 2]
    p, q, r = a - a[:, None], b - b[:, None], c - c[:, None]
    apart = np.sqrt(p * p + q * q + r * r)
    near = np.where(apart > 0.0, 1.0 / np.where(apart > 0.0, apart, 1.0), 0.0)
    moving = 0.5 * (mass.reshape(-1, 1) * v * v).sum()
    return moving, -0.5 * (mass * (near @ mass)).sum()


def nbody(mass: Any, x: Any, v: Any, steps: int) -> Any:
    v -= (mass.reshape(-1, 1) * v).sum(0) / mass.sum()
    kinetic, potential = np.zeros(steps), np.zeros(steps)
    pull = _pull(x, mass)
    for k in range(steps):
        v += 0.005 * pull
        x += 0.01 * v
        pull = _pull(x, mass)
        v += 0.005 * pull
        kinetic[k], potential[k] = _energy(x, v, mass)
    return kinetic, potential


def nbody_tensors(mass: Any, x: Any, v: Any, steps: int) -> Any:
    v -= (mass[:, None] * v).sum(0) / mass.sum()
    kinetic, potential = [], []
    pull = _pull_tensors(x, mass)
    for _ in range(steps):
        v += 0.005 * pull
        x += 0.01 * v
        pull = _pull_tensors(x, mass)
        v += 0.005 * pull
        moving, held = _energy_tensors(x, v, mass)
        kinetic.append(moving)
        potential.append(held)
    return tj.stack(kinetic), tj.stack(potential)


def _pull_tensors(x: Any, mass: Any) -> Any:
    apart = x - x[:, None]
    near = (apart.square().sum(-1) + 0.01) ** -1.5
    return (apart * (near * mass)[:, :, None]).sum(1)


def _energy_tensors(x: Any, v: Any, mass: Any) -> Any:
    apart = (x - x[:, None]).square().sum(-1).sqrt()
    near = tj.where(apart > 0.0, 1.0 / apart, 0.0)
    return 0.5 * (mass[:, None] * v * v).sum(), -0.5 * (mass * (near @ mass)).sum()


# -- a sparse matrix, a checksum --------------------------------------------------------------
def spmv(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        y[i] = np.dot(values[starts[i] : starts[i + 1]],
                      x[columns[starts[i] : starts[i + 1]]])
    return y


def spmv_tensors(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    sums = tj.cumsum(tj.cat([tj.zeros(1, dtype=x.dtype), values * x[columns]]), 0)
    return sums[starts[1:]] - sums[starts[:-1]]


def _sparse(s: Sizes) -> list[Any]:
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 2 * s["each"], s["rows"]))])
    columns = rng.integers(0, s["rows"], starts[-1])
    return [starts, columns, random(len(columns)), random(s["rows"])]


def crc_from(crc: Any, data: Any) -> Any:
    """Continue a checksum, an integer or a tensor of one."""
    for b in data:
        crc = crc ^ b
        for _ in range(8):
            odd = crc & 1
            crc = (crc >> 1) ^ (0x8408 * odd)
    crc = ~crc & 0xFFFF
    return ((crc << 8) | (crc >> 8)) & 0xFFFF


def crc16(data: Any) -> Any:
    return crc_from(0xFFFF, data)


def crc16_tensors(data: Any) -> Any:
    return crc_from(tj.full((), 0xFFFF, dtype=tj.int64), data)


def stockham_fft(x: Any, radix: int, power: int) -> Any:
    ring = np.arange(radix)
    butterfly = np.exp(-2j * np.pi * np.outer(ring, ring) / radix)
    y, n = x.copy(), x.shape[0]
    for i in range(power):
        rows, rest = radix ** i, radix ** (power - i - 1)
        turned = np.ascontiguousarray(y.reshape(rows, radix, rest).transpose(1, 0, 2))
        twist = np.exp(-2j * np.pi * np.outer(ring, np.arange(rows)) / radix ** (i + 1))
        turned = turned * twist.reshape(radix, rows, 1)
        y = (butterfly @ turned.reshape(radix, n // radix)).reshape(n)
    return y


def stockham_fft_tensors(x: Any, radix: int, power: int) -> Any:
    ring = tj.arange(radix, dtype=tj.float64)
    butterfly = tj.exp(-2j * np.pi * tj.outer(ring, ring) / radix)
    y, n = x, x.shape[0]
    for i in range(power):
        rows, rest = radix ** i, radix ** (power - i - 1)
        turned = y.reshape(rows, radix, rest).transpose(0, 1)
        twist = tj.exp(-2j * np.pi * tj.outer(ring, tj.arange(rows, dtype=tj.float64))
                       / radix ** (i + 1))
        turned = turned * twist.reshape(radix, rows, 1)
        y = (butterfly @ turned.reshape(radix, n // radix)).reshape(n)
    return y


# -- arrays -----------------------------------------------------------------------------------
def _plane(s: Sizes) -> list[Any]:
    x, y = np.linspace(-2.0, 0.6, s["n"]), np.linspace(-1.2, 1.2, s["n"])
    return [np.tile(x, (len(y), 1)), np.tile(y[:, None], (1, len(x))), s["steps"]]


def _vectors(count: int) -> Any:
    return lambda s: [random(s["n"], seed=k) for k in range(count)]


def _layers(*shapes: tuple[Any, ...]) -> Any:
    def make(s: Sizes) -> list[Any]:
        known = [[s.get(part, part) if isinstance(part, str) else part for part in shape]
                 for shape in shapes]
        return [(random(*shape, seed=k) - 0.3).astype("f4") for k, shape in enumerate(known)]

    return make


def _lenet_arrays(s: Sizes) -> list[Any]:
    n, size = s["n"], s["size"]
    flat = ((size - 4) // 2 - 4) // 2
    return _layers((n, size, size, 1), (5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,),
                   (flat * flat * 16, 120), (120, 84), (84, 10))(s)


def _resnet_arrays(s: Sizes) -> list[Any]:
    n, w, out, inner = s["n"], s["w"], s["out"], s["inner"]
    return _layers((n, w, w, out), (1, 1, out, inner), (3, 3, inner, inner),
                   (1, 1, inner, out))(s)


def _bodies(s: Sizes) -> list[Any]:
    return [random(s["n"]), random(s["n"], 3, seed=1), random(s["n"], 3, seed=2) - 0.5,
            s["steps"]]


KERNELS = [
    Kernel("arc_distance", {"n": 300_000}, {"n": 9}, _vectors(4), arc_distance),
    Kernel("compute", {"n": 2_000_000}, {"n": 9},
           lambda s: [np.random.default_rng(k).integers(0, 1000, s["n"]) for k in (0, 1)], compute),
    Kernel("go_fast", {"n": 1000}, {"n": 6}, lambda s: [random(s["n"], s["n"])], go_fast,
           go_fast_tensors),
    Kernel("softmax", {"n": 16, "t": 128}, {"n": 2, "t": 3}, _layers(("n", 8, "t", "t")),
           softmax, softmax_tensors, softmax_loops, tolerance=1e-5),
    Kernel("mlp", {"n": 64, "w": 1000}, {"n": 3, "w": 5},
           _layers(("n", "w"), ("w", "w"), ("w",), ("w", "w"), ("w",), ("w", 10), (10,)),
           mlp, mlp_tensors, tolerance=1e-4),
    Kernel("conv2d_bias", {"n": 8, "w": 32}, {"n": 2, "w": 5},
           _layers(("n", "w", "w", 3), (3, 3, 3, 16), (16,)), conv2d_bias, conv2d_bias_tensors,
           tolerance=1e-4),
    Kernel("lenet", {"n": 16, "size": 28}, {"n": 2, "size": 28}, _lenet_arrays, lenet,
           lenet_tensors, tolerance=1e-4),
    Kernel("resnet", {"n": 8, "w": 14, "out": 64, "inner": 16},
           {"n": 3, "w": 5, "out": 4, "inner": 2}, _resnet_arrays, resnet, resnet_tensors,
           tolerance=1e-2),
    Kernel("azimint_naive", {"n": 100_000, "count": 100}, {"n": 400, "count": 18},
           lambda s: [random(s["n"]), random(s["n"], seed=1), s["count"]], azimint_naive,
           azimint_naive_tensors),
    Kernel("azimint_hist", {"n": 400_000, "count": 1000}, {"n": 400, "count": 18},
           lambda s: [random(s["n"]), random(s["n"], seed=1), s["count"]], azimint_hist,
           azimint_hist_tensors, azimint_hist_loops),
    Kernel("mandelbrot1", {"n": 125, "steps": 50}, {"n": 9, "steps": 18}, _plane, mandelbrot1,
           mandelbrot1_tensors, mandelbrot1_loops),
    Kernel("nbody", {"n": 100, "steps": 50}, {"n": 5, "steps": 18}, _bodies, nbody,
           nbody_tensors),
    Kernel("spmv", {"rows": 4096, "each": 32}, {"rows": 9, "each": 3}, _sparse, spmv,
           spmv_tensors),
    Kernel("crc16", {"n": 20_000}, {"n": 18},
           lambda s: [np.random.default_rng(0).integers(0, 256, s["n"])], crc16, crc16_tensors),
    Kernel("stockham_fft", {"radix": 2, "power": 14}, {"radix": 2, "power": 4},
           lambda s: [random(s["radix"] ** s["power"]) + 0.5j, s["radix"], s["power"]],
           stockham_fft, stockham_fft_tensors),
]
