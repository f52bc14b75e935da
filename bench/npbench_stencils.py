"""NPBench's grids: heat, Jacobi, Seidel, fields, flows, sweeps, weather."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from bench.npbench_kernel import Kernel, Sizes, random


def jacobi_1d(steps: int, A: Any, B: Any) -> None:
    for _ in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_2d(steps: int, A: Any, B: Any) -> None:
    for _ in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1]
                               + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1]
                               + B[:-2, 1:-1])


def heat_3d(steps: int, A: Any, B: Any) -> None:
    for _ in range(1, steps):
        c = A[1:-1, 1:-1, 1:-1]
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * c + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * c + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * c + A[1:-1, 1:-1, :-2]) + c)
        c = B[1:-1, 1:-1, 1:-1]
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * c + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * c + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * c + B[1:-1, 1:-1, :-2]) + c)


def fdtd_2d(ex: Any, ey: Any, hz: Any, pulse: Any) -> None:
    for t in range(pulse.shape[0]):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def hdiff(field: Any, out: Any, coeff: Any) -> None:
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:]
                                     + field[1:-1, :-2])
    res = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = np.where(res * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0.0, res)
    res = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = np.where(res * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0.0, res)
    out[:, :, :] = field[2:-2, 2:-2] - coeff * (flx[1:] - flx[:-1] + fly[:, 1:] - fly[:, :-1])


def seidel_2d(steps: int, A: Any) -> None:
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            A[i, 1:-1] += (A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:]
                           + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:])
            for j in range(1, n - 1):
                A[i, j] = (A[i, j] + A[i, j - 1]) / 9.0


def seidel_2d_tensors(steps: int, A: Any) -> None:
    """Sum the neighbours of a row at once; the row's own recurrence is a product."""
    n = A.shape[0]
    places = tj.arange(n - 2, dtype=A.dtype)
    apart = places[:, None] - places[None, :]
    spread = tj.where(apart >= 0, 9.0 ** -(apart + 1.0), tj.zeros((), dtype=A.dtype))
    for _ in range(steps):
        above, rows = A[0], []
        for own, below in zip(A[1:-1], A[2:]):
            known = (own[1:-1] + above[:-2] + above[1:-1] + above[2:] + own[2:] + below[:-2]
                     + below[1:-1] + below[2:])
            inner = spread @ known + own[0] * 9.0 ** -(places + 1.0)
            above = tj.cat([own[:1], inner, own[-1:]])
            rows.append(above)
        A[1:-1] = tj.stack(rows)


def adi(steps: int, u: Any) -> None:
    n = u.shape[0]
    a, d = -n * n / steps, -0.5 * n * n / steps
    b, e = 1.0 - 2.0 * a, 1.0 - 2.0 * d
    v = np.zeros_like(u)
    p, q = np.zeros_like(u), np.zeros_like(u)
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = 1.0
        for j in range(1, n - 1):
            p[1:-1, j] = -a / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (-d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - d * u[j, 2:]
                          - a * q[1:-1, j - 1]) / (a * p[1:-1, j - 1] + b)
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = 1.0
        for j in range(1, n - 1):
            p[1:-1, j] = -d / (d * p[1:-1, j - 1] + e)
            q[1:-1, j] = (-a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - a * v[2:, j]
                          - d * q[1:-1, j - 1]) / (d * p[1:-1, j - 1] + e)
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def _solved(a: float, b: float, rows: Any) -> Any:
    """Solve a tridiagonal system along the first dimension; 1 at both ends."""
    p, q = tj.zeros_like(rows[0]), tj.ones_like(rows[0])
    ps, qs = [], []
    for row in rows:
        below = a * p + b
        p, q = -a / below, (row - a * q) / below
        ps.append(p)
        qs.append(q)
    x, xs = tj.ones_like(q), []
    for factor, known in zip(tj.stack(ps).flip(0), tj.stack(qs).flip(0)):
        x = factor * x + known
        xs.append(x)
    return tj.stack(xs).flip(0)


def adi_tensors(steps: int, u: Any) -> None:
    n = u.shape[0]
    a, d = -n * n / steps, -0.5 * n * n / steps
    b, e = 1.0 - 2.0 * a, 1.0 - 2.0 * d
    v = tj.zeros_like(u)
    for _ in range(steps):
        v[0, 1:-1], v[-1, 1:-1] = 1.0, 1.0
        side = -d * u[1:-1, :-2] + (1.0 + 2.0 * d) * u[1:-1, 1:-1] - d * u[1:-1, 2:]
        v[1:-1, 1:-1] = _solved(a, b, side)
        u[1:-1, 0], u[1:-1, -1] = 1.0, 1.0
        side = -a * v[:-2, 1:-1] + (1.0 + 2.0 * a) * v[1:-1, 1:-1] - a * v[2:, 1:-1]
        u[1:-1, 1:-1] = _solved(d, e, side.T).T


def deriche(alpha: float, x: Any) -> Any:
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    b1, b2 = 2.0 ** -alpha, -np.exp(-2.0 * alpha)
    a2, a3 = k * np.exp(-alpha) * (alpha - 1.0), k * np.exp(-alpha) * (alpha + 1.0)
    y, z = np.zeros_like(x), np.zeros_like(x)
    for _ in range(2):
        y[:, 0] = k * x[:, 0]
        y[:, 1] = k * x[:, 1] + a2 * x[:, 0] + b1 * y[:, 0]
        for j in range(2, x.shape[1]):
            y[:, j] = k * x[:, j] + a2 * x[:, j - 1] + b1 * y[:, j - 1] + b2 * y[:, j - 2]
        z[:, -1] = 0.0
        z[:, -2] = a3 * x[:, -1]
        for j in range(x.shape[1] - 3, -1, -1):
            z[:, j] = a3 * x[:, j + 1] + k * b2 * x[:, j + 2] + b1 * z[:, j + 1] + b2 * z[:, j + 2]
        x = np.ascontiguousarray((y + z).T)
        y, z = np.zeros_like(x), np.zeros_like(x)
    return x


def _recursive(rows: Any, b1: Any, b2: Any) -> Any:
    y = older = tj.zeros_like(rows[0])
    ys = []
    for row in rows:
        y, older = row + b1 * y + b2 * older, y
        ys.append(y)
    return tj.stack(ys)


def deriche_tensors(alpha: float, x: Any) -> Any:
    fall = tj.exp(tj.tensor(-alpha, dtype=x.dtype))
    k = (1.0 - fall) ** 2 / (1.0 + alpha * fall - 1.0 / (fall * fall))
    b1, b2 = 2.0 ** -alpha, -fall * fall
    a2, a3 = k * fall * (alpha - 1.0), k * fall * (alpha + 1.0)
    x = x.T
    for _ in range(2):
        zeros = tj.zeros_like(x[:1])
        before = tj.cat([zeros, x[:-1]])
        after = tj.cat([x[1:], zeros])
        later = tj.cat([x[2:], zeros, zeros])
        y = _recursive(k * x + a2 * before, b1, b2)
        z = _recursive((a3 * after + k * b2 * later).flip(0), b1, b2).flip(0)
        x = (y + z).T
    return x.T


def cavity_flow(steps: int, inner: int, u: Any, v: Any, p: Any) -> None:
    n = u.shape[0]
    dx = dy = 2.0 / (n - 1)
    dt, rho, nu = 0.1 / ((n - 1) * (n - 1)), 1.0, 0.1
    for _ in range(steps):
        ux, uy = u[1:-1, 2:] - u[1:-1, :-2], u[2:, 1:-1] - u[:-2, 1:-1]
        vx, vy = v[1:-1, 2:] - v[1:-1, :-2], v[2:, 1:-1] - v[:-2, 1:-1]
        b = rho * ((ux / (2 * dx) + vy / (2 * dy)) / dt - (ux / (2 * dx)) ** 2
                   - 2 * (uy / (2 * dy)) * (vx / (2 * dx)) - (vy / (2 * dy)) ** 2)
        for _ in range(inner):
            p[1:-1, 1:-1] = (((p[1:-1, 2:] + p[1:-1, :-2]) * dy ** 2
                              + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx ** 2
                              - dx ** 2 * dy ** 2 * b) / (2 * (dx ** 2 + dy ** 2)))
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        x, y = u[1:-1, 1:-1], v[1:-1, 1:-1]
        un = (x - x * dt / dx * (x - u[1:-1, :-2]) - y * dt / dy * (x - u[:-2, 1:-1])
              - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
              + nu * dt * ((u[1:-1, 2:] - 2 * x + u[1:-1, :-2]) / dx ** 2
                           + (u[2:, 1:-1] - 2 * x + u[:-2, 1:-1]) / dy ** 2))
        vn = (y - x * dt / dx * (y - v[1:-1, :-2]) - y * dt / dy * (y - v[:-2, 1:-1])
              - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
              + nu * dt * ((v[1:-1, 2:] - 2 * y + v[1:-1, :-2]) / dx ** 2
                           + (v[2:, 1:-1] - 2 * y + v[:-2, 1:-1]) / dy ** 2))
        u[1:-1, 1:-1] = un
        v[1:-1, 1:-1] = vn
        u[-1, :] = 1.0


def vadv(stage: Any, u: Any, wcon: Any, pos: Any, utens: Any) -> None:
    """Levels are the first dimension here; they are the last in NPBench."""
    dtr, levels = 3.0 / 20.0, stage.shape[0]
    c, d = np.zeros_like(stage), np.zeros_like(stage)
    gc = 0.25 * (wcon[1, 1:] + wcon[1, :-1])
    b = 1.0 / (dtr - 0.5 * gc)
    c[0] = 0.5 * gc * b
    d[0] = (dtr * pos[0] + utens[0] + stage[0] - 0.5 * gc * (u[1] - u[0])) * b
    for k in range(1, levels - 1):
        ga = -0.25 * (wcon[k, 1:] + wcon[k, :-1])
        gc = 0.25 * (wcon[k + 1, 1:] + wcon[k + 1, :-1])
        change = -0.5 * ga * (u[k - 1] - u[k]) - 0.5 * gc * (u[k + 1] - u[k])
        b = 1.0 / (dtr - 0.5 * ga - 0.5 * gc - c[k - 1] * 0.5 * ga)
        c[k] = 0.5 * gc * b
        d[k] = (dtr * pos[k] + utens[k] + stage[k] + change - d[k - 1] * 0.5 * ga) * b
    ga = -0.25 * (wcon[-1, 1:] + wcon[-1, :-1])
    b = 1.0 / (dtr - 0.5 * ga - c[-2] * 0.5 * ga)
    d[-1] = (dtr * pos[-1] + utens[-1] + stage[-1] - 0.5 * ga * (u[-2] - u[-1])
             - d[-2] * 0.5 * ga) * b
    x = d[-1].copy()
    stage[-1] = dtr * (x - pos[-1])
    for k in range(levels - 2, -1, -1):
        x = d[k] - c[k] * x
        stage[k] = dtr * (x - pos[k])


def vadv_tensors(stage: Any, u: Any, wcon: Any, pos: Any, utens: Any) -> None:
    dtr = 3.0 / 20.0
    g = 0.125 * (wcon[:, 1:] + wcon[:, :-1])
    zeros = tj.zeros_like(g[:1])
    below, above = tj.cat([zeros, -g[1:]]), tj.cat([g[1:], zeros])
    rise = tj.cat([u[1:] - u[:-1], zeros])
    fall = tj.cat([zeros, u[:-1] - u[1:]])
    side = dtr * pos + utens + stage - below * fall - above * rise
    c, d, cs, ds = tj.zeros_like(g[0]), tj.zeros_like(g[0]), [], []
    for low, high, known in zip(below, above, side):
        b = 1.0 / (dtr - low - high - c * low)
        c, d = high * b, (known - d * low) * b
        cs.append(c)
        ds.append(d)
    x, xs = tj.zeros_like(g[0]), []
    for factor, known in zip(tj.stack(cs).flip(0), tj.stack(ds).flip(0)):
        x = known - factor * x
        xs.append(x)
    stage[:] = dtr * (tj.stack(xs).flip(0) - pos)


def _vadv_arrays(s: Sizes) -> list[Any]:
    k, n = s["k"], s["n"]
    return [random(k, n, n), random(k, n, n, seed=1), random(k, n + 1, n, seed=2),
            random(k, n, n, seed=3), random(k, n, n, seed=4)]


def _cubes(s: Sizes) -> list[Any]:
    cube = random(s["n"], s["n"], s["n"])
    return [s["steps"], cube, cube.copy()]


def _planes(s: Sizes) -> list[Any]:
    return [s["steps"], random(s["n"], s["n"]), random(s["n"], s["n"], seed=1)]


KERNELS = [
    Kernel("jacobi_1d", {"steps": 400, "n": 3200}, {"steps": 20, "n": 9},
           lambda s: [s["steps"], random(s["n"]), random(s["n"], seed=1)], jacobi_1d),
    Kernel("jacobi_2d", {"steps": 50, "n": 200}, {"steps": 20, "n": 7}, _planes, jacobi_2d),
    Kernel("heat_3d", {"steps": 20, "n": 50}, {"steps": 18, "n": 5}, _cubes, heat_3d),
    Kernel("fdtd_2d", {"steps": 40, "n": 200}, {"steps": 18, "n": 7},
           lambda s: [*(random(s["n"], s["n"] + 3, seed=k) for k in range(3)),
                      random(s["steps"])], fdtd_2d),
    Kernel("hdiff", {"n": 128, "k": 32}, {"n": 6, "k": 2},
           lambda s: [random(s["n"] + 4, s["n"] + 4, s["k"]), random(s["n"], s["n"], s["k"]),
                      random(s["n"], s["n"], s["k"], seed=1)], hdiff),
    Kernel("seidel_2d", {"steps": 10, "n": 120}, {"steps": 3, "n": 7},
           lambda s: [s["steps"], random(s["n"], s["n"])], seidel_2d, seidel_2d_tensors),
    Kernel("adi", {"steps": 5, "n": 100}, {"steps": 2, "n": 6},
           lambda s: [s["steps"], random(s["n"], s["n"])], adi, adi_tensors),
    Kernel("deriche", {"n": 400}, {"n": 6}, lambda s: [0.25, random(s["n"], s["n"] + 40)],
           deriche, deriche_tensors),
    Kernel("cavity_flow", {"steps": 25, "inner": 10, "n": 101}, {"steps": 2, "inner": 3, "n": 7},
           lambda s: [s["steps"], s["inner"], *(np.zeros((s["n"], s["n"])) for _ in range(3))],
           cavity_flow),
    Kernel("vadv", {"n": 60, "k": 40}, {"n": 3, "k": 5}, _vadv_arrays, vadv, vadv_tensors),
]
