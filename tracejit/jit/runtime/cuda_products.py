"""Library products on a CUDA device: cuBLAS through CuPy, straight into the output's memory.

In: addresses of row-major matrices and the sizes a product instruction has. Out: what cuBLAS puts
on the current stream. Called by `cuda_executable`. As on the CPU the library sees the transposed
problem, column by column: out^T = op(b)^T op(a)^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.memory import DeviceUnavailable

NORMAL, TRANSPOSED = 0, 1  # cublasOperation_t


def matmul(cupy: Any, dtype: str, addresses: Sequence[int], sizes: Sequence[int]) -> None:
    """Compute out = op(a) @ op(b) for matrices, or stacks of them, at (a, b, out); float32 or
    float64.

    Raises DeviceUnavailable where cuBLAS is not installed.
    """
    trans_a, trans_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c = sizes[:12]
    if not (m and n and batch):
        return
    a, b, out = addresses
    one, zero = np.ones(1, dtype), np.zeros(1, dtype)
    cublas, handle = _library(cupy)
    letter = "s" if dtype == "float32" else "d"
    shape = (TRANSPOSED if trans_b else NORMAL, TRANSPOSED if trans_a else NORMAL, n, m, k)
    # cuBLAS checks that a leading dimension holds a column, even of a matrix without elements.
    steps = (max(ldb, 1, k if trans_b else n), max(lda, 1, m if trans_a else k), max(ldc, 1, n))
    scale = (int(one.ctypes.data), int(zero.ctypes.data))
    if batch == 1:
        gemm = getattr(cublas, letter + "gemm")
        gemm(handle, *shape, scale[0], b, steps[0], a, steps[1], scale[1], out, steps[2])
        return
    stacked = getattr(cublas, letter + "gemmStridedBatched")
    stacked(handle, *shape, scale[0], b, steps[0], stride_b, a, steps[1], stride_a, scale[1], out,
            steps[2], stride_c, batch)  # fmt: skip


def _library(cupy: Any) -> tuple[Any, int]:
    """Return CuPy's binding of cuBLAS, and the handle of the current device."""
    try:
        return cupy.cuda.cublas, cupy.cuda.device.get_cublas_handle()
    except ImportError as error:
        raise DeviceUnavailable(
            "products on a CUDA device need cuBLAS, which is not installed: pip install "
            f"nvidia-cublas ({error.args[0].splitlines()[0]})"
        ) from error
