"""Linear algebra; PyTorch's `torch.linalg`.

In: matrices, and stacks of them, as tensors. Out: tensors. The functions are in `tracejit/ops`.
"""

# ruff: noqa: F401
from __future__ import annotations

from tracejit.ops import out as _out
from tracejit.ops.linalg import matmul
from tracejit.ops.linalg_checks import LinAlgError
from tracejit.ops.linalg_determinants import det, slogdet
from tracejit.ops.linalg_eigenvalues import eig, eigvals
from tracejit.ops.linalg_factors import (
    cholesky,
    cholesky_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from tracejit.ops.linalg_least_squares import lstsq, matrix_rank, pinv
from tracejit.ops.linalg_norms import cond, matrix_norm, norm, vector_norm
from tracejit.ops.linalg_powers import matrix_exp, matrix_power, multi_dot
from tracejit.ops.linalg_reflectors import householder_product
from tracejit.ops.linalg_solvers import inv, inv_ex, solve, solve_ex, solve_triangular
from tracejit.ops.linalg_spectra import eigh, eigvalsh, svd, svdvals
from tracejit.ops.tensor_products import (
    cross_along as cross,
)
from tracejit.ops.tensor_products import (
    diagonal_of_matrices as diagonal,
)
from tracejit.ops.tensor_products import (
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)

globals().update(_out.with_out(globals(), _out.LINALG))
