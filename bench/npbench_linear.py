"""NPBench's linear algebra: products, factorisations, triangular solutions, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from bench.npbench_kernel import Kernel, Sizes, positive, random

ALPHA, BETA = 1.5, 1.2


# -- products; the texts serve NumPy, numba and tensors ---------------------------------------
def gemm(C: Any, A: Any, B: Any) -> None:
    C[:] = ALPHA * (A @ B) + BETA * C


def k2mm(A: Any, B: Any, C: Any, D: Any) -> None:
    D[:] = ALPHA * (A @ B @ C) + BETA * D


def k3mm(A: Any, B: Any, C: Any, D: Any) -> Any:
    return (A @ B) @ (C @ D)


def atax(A: Any, x: Any) -> Any:
    return (A @ x) @ A


def bicg(A: Any, p: Any, r: Any) -> Any:
    return r @ A, A @ p


def mvt(x: Any, z: Any, y: Any, w: Any, A: Any) -> None:
    x += A @ y
    z += w @ A


def gesummv(A: Any, B: Any, x: Any) -> Any:
    return ALPHA * (A @ x) + BETA * (B @ x)


def gemver(A: Any, u1: Any, v1: Any, u2: Any, v2: Any, w: Any, x: Any, y: Any, z: Any) -> None:
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += BETA * (y @ A) + z
    w += ALPHA * (A @ x)


def doitgen(A: Any, C: Any) -> None:
    r, q, p = A.shape
    A[:] = (A.reshape(r * q, p) @ C).reshape(r, q, p)


def syrk(C: Any, A: Any) -> None:
    for i in range(A.shape[0]):
        C[i, : i + 1] *= BETA
        for k in range(A.shape[1]):
            C[i, : i + 1] += ALPHA * A[i, k] * A[: i + 1, k]


def syrk_tensors(C: Any, A: Any) -> None:
    C[:] = tj.tril(BETA * C + ALPHA * (A @ A.T)) + tj.triu(C, 1)


def syr2k(C: Any, A: Any, B: Any) -> None:
    for i in range(A.shape[0]):
        C[i, : i + 1] *= BETA
        for k in range(A.shape[1]):
            C[i, : i + 1] += ALPHA * (A[: i + 1, k] * B[i, k] + B[: i + 1, k] * A[i, k])


def syr2k_tensors(C: Any, A: Any, B: Any) -> None:
    C[:] = tj.tril(BETA * C + ALPHA * (A @ B.T + B @ A.T)) + tj.triu(C, 1)


def symm(C: Any, A: Any, B: Any) -> None:
    C *= BETA
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += ALPHA * B[i, j] * A[i, :i]
            C[i, j] += ALPHA * (B[i, j] * A[i, i] + np.dot(B[:i, j], A[i, :i]))


def symm_tensors(C: Any, A: Any, B: Any) -> None:
    whole = tj.tril(A) + tj.tril(A, -1).T
    C[:] = BETA * C + ALPHA * (whole @ B)


def trmm(A: Any, B: Any) -> None:
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= ALPHA


def trmm_tensors(A: Any, B: Any) -> None:
    B[:] = ALPHA * (B + tj.tril(A, -1).T @ B)


# -- factorisations and solutions -------------------------------------------------------------
def cholesky(A: Any) -> None:
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - np.dot(A[i, :j], A[j, :j])) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - np.dot(A[i, :i], A[i, :i]))


def cholesky_tensors(A: Any) -> None:
    A[:] = tj.linalg.cholesky(A) + tj.triu(A, 1)


def cholesky2(A: Any) -> None:
    A[:] = np.linalg.cholesky(A) + np.triu(A, 1)


def lu(A: Any) -> None:
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


def lu_tensors(A: Any) -> None:
    """Eliminate a column of the whole matrix at once."""
    places, left = tj.arange(A.shape[0]), A
    for k in range(A.shape[0]):
        column = left[:, k]
        below = places > k
        factors = tj.where(below, column / (column * (places == k)).sum(), 0.0)
        row = tj.where(below, left[k], 0.0)
        left = left - tj.outer(factors, row)
        left = tj.where(below[:, None] & (places == k), factors[:, None], left)
    A[:] = left


def ludcmp(A: Any, b: Any) -> Any:
    lu(A)
    n = A.shape[0]
    x, y = np.zeros_like(b), np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def ludcmp_tensors(A: Any, b: Any) -> Any:
    lu_tensors(A)
    y = tj.linalg.solve_triangular(A, b[:, None], upper=False, unitriangular=True)
    x = tj.linalg.solve_triangular(A, y, upper=True)
    return x[:, 0], y[:, 0]


def trisolv(L: Any, x: Any, b: Any) -> None:
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def trisolv_tensors(L: Any, x: Any, b: Any) -> None:
    x[:] = tj.linalg.solve_triangular(L, b[:, None], upper=False)[:, 0]


def durbin(r: Any) -> Any:
    y = np.zeros_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(r[:k][::-1].copy(), y[:k])) / beta
        y[:k] += alpha * y[:k][::-1].copy()
        y[k] = alpha
    return y


def durbin_tensors(r: Any) -> Any:
    """Zeros stand where the solution has not come yet; gathers turn its first part around."""
    n = r.shape[0]
    places, zeros = tj.arange(n), tj.zeros_like(r)
    y = tj.where(places == 0, -r[0], zeros)
    alpha, beta = -r[0], tj.ones_like(r[0])
    for k in range(1, n):
        beta = beta * (1.0 - alpha * alpha)
        turned = k - 1 - places
        there = turned >= 0
        other = turned.clamp(min=0)
        alpha = -(r[k] + (tj.where(there, r[other], zeros) * y).sum()) / beta
        y = y + alpha * tj.where(there, y[other], zeros)
        y = tj.where(places == k, alpha, y)
    return y


def gramschmidt(A: Any) -> Any:
    n = A.shape[1]
    Q, R = np.zeros_like(A), np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def gramschmidt_tensors(A: Any) -> Any:
    """A row of R at once; what is left of the columns is carried."""
    places = tj.arange(A.shape[1])
    left, qs, rs = A, [], []
    for k in range(A.shape[1]):
        column = left[:, k]
        norm = column.square().sum().sqrt()
        q = column / norm
        later = tj.where(places > k, q @ left, 0.0)
        left = left - tj.outer(q, later)
        qs.append(q)
        rs.append(tj.where(places == k, norm, later))
    A[:] = left
    return tj.stack(qs).T, tj.stack(rs)


# -- statistics and paths ---------------------------------------------------------------------
def covariance(data: Any) -> Any:
    n, m = data.shape
    mean = data.sum(0) / n
    data -= mean
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i:, i] = data[:, i] @ data[:, i:] / (n - 1.0)
        cov[i, i:] = cov[i:, i]
    return cov


def covariance_tensors(data: Any) -> Any:
    data -= data.mean(0)
    return data.T @ data / (data.shape[0] - 1.0)


def covariance2(data: Any) -> Any:
    return np.cov(data.T)


def correlation(data: Any) -> Any:
    n, m = data.shape
    data -= data.sum(0) / n
    spread = np.sqrt((data * data).sum(0) / n)
    data /= np.sqrt(n) * np.where(spread <= 0.1, 1.0, spread)
    corr = np.eye(m)
    for i in range(m - 1):
        corr[i + 1 :, i] = data[:, i] @ data[:, i + 1 :]
        corr[i, i + 1 :] = corr[i + 1 :, i]
    return corr


def correlation_tensors(data: Any) -> Any:
    n, m = data.shape
    data -= data.mean(0)
    spread = data.square().mean(0).sqrt()
    data /= n ** 0.5 * tj.where(spread <= 0.1, 1.0, spread)
    own = tj.eye(m, dtype=data.dtype)
    return data.T @ data * (1.0 - own) + own


def floyd_warshall(path: Any) -> None:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k][:, None] + path[k])


def floyd_warshall_loops(path: Any) -> None:
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


def floyd_warshall_tensors(path: Any) -> None:
    left = path
    for k in range(path.shape[0]):
        left = tj.minimum(left, left[:, k][:, None] + left[k])
    path[:] = left


def _matrices(*shapes: str) -> Any:
    """Return a maker of random arrays: "mn" has sizes m and n."""
    return lambda s: [random(*(s[key] for key in shape), seed=k) for k, shape in enumerate(shapes)]


def _lower(s: Sizes) -> list[Any]:
    n = s["n"]
    return [np.tril(random(n, n)) + n * np.eye(n), np.zeros(n), random(n, seed=1)]


def _dominant(s: Sizes) -> list[Any]:
    return [random(s["n"], s["n"]) + s["n"] * np.eye(s["n"])]


SMALL = {"m": 5, "n": 6, "k": 7, "l": 4}
MIDDLE = {"m": 500, "n": 600, "k": 550, "l": 450}
LONG = {"m": 1500, "n": 1700}
KERNELS = [
    Kernel("gemm", MIDDLE, SMALL, _matrices("mn", "mk", "kn"), gemm),
    Kernel("k2mm", MIDDLE, SMALL, _matrices("mk", "kn", "nl", "ml"), k2mm),
    Kernel("k3mm", MIDDLE, SMALL, _matrices("mk", "kn", "nl", "lm"), k3mm),
    Kernel("atax", LONG, SMALL, _matrices("mn", "n"), atax),
    Kernel("bicg", LONG, SMALL, _matrices("mn", "n", "m"), bicg),
    Kernel("mvt", LONG, SMALL, _matrices("m", "m", "m", "m", "mm"), mvt),
    Kernel("gesummv", LONG, SMALL, _matrices("mm", "mm", "m"), gesummv),
    Kernel("gemver", LONG, SMALL, _matrices("mm", *["m"] * 8), gemver),
    Kernel("doitgen", {"r": 60, "q": 60, "p": 128}, {"r": 3, "q": 4, "p": 5},
           _matrices("rqp", "pp"), doitgen),
    Kernel("syrk", {"n": 200, "k": 150}, SMALL, _matrices("nn", "nk"), syrk, syrk_tensors),
    Kernel("syr2k", {"n": 150, "k": 100}, SMALL, _matrices("nn", "nk", "nk"), syr2k,
           syr2k_tensors),
    Kernel("symm", {"m": 120, "n": 150}, SMALL, _matrices("mn", "mm", "mn"), symm, symm_tensors),
    Kernel("trmm", {"m": 120, "n": 150}, SMALL, _matrices("mm", "mn"), trmm, trmm_tensors),
    Kernel("cholesky", {"n": 200}, {"n": 6}, lambda s: [positive(s["n"])], cholesky,
           cholesky_tensors),
    Kernel("cholesky2", {"n": 500}, {"n": 6}, lambda s: [positive(s["n"])], cholesky2),
    Kernel("lu", {"n": 150}, {"n": 18}, _dominant, lu, lu_tensors),
    Kernel("ludcmp", {"n": 150}, {"n": 18}, lambda s: [*_dominant(s), random(s["n"])], ludcmp,
           ludcmp_tensors),
    Kernel("trisolv", {"n": 1000}, {"n": 6}, _lower, trisolv, trisolv_tensors),
    Kernel("durbin", {"n": 600}, {"n": 18}, lambda s: [random(s["n"]) / s["n"]], durbin,
           durbin_tensors),
    Kernel("gramschmidt", {"m": 150, "n": 100}, {"m": 20, "n": 18}, _matrices("mn"), gramschmidt,
           gramschmidt_tensors),
    Kernel("covariance", {"m": 300, "n": 200}, SMALL, _matrices("mn"), covariance,
           covariance_tensors),
    Kernel("covariance2", MIDDLE, SMALL, _matrices("mn"), covariance2),
    Kernel("correlation", {"m": 300, "n": 200}, SMALL, _matrices("mn"), correlation,
           correlation_tensors),
    Kernel("floyd_warshall", {"n": 150}, {"n": 18}, _matrices("nn"), floyd_warshall,
           floyd_warshall_tensors, floyd_warshall_loops),
]
