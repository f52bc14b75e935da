"""Linear algebra; PyTorch's `torch.linalg`.

In: matrices, and stacks of them, as tensors. Out: tensors. The functions are in `tracejit/ops`.
"""

# ruff: noqa: F401
from __future__ import annotations

from tracejit.ops.linalg_checks import LinAlgError
from tracejit.ops.linalg_determinants import det, slogdet
from tracejit.ops.linalg_factors import (
    cholesky,
    cholesky_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from tracejit.ops.linalg_solvers import inv, inv_ex, solve, solve_ex, solve_triangular
from tracejit.ops.linalg_spectra import eigh, eigvalsh, svd, svdvals
