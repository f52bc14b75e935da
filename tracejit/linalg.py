"""Linear algebra; PyTorch's `torch.linalg`.

In: matrices, and stacks of them, as tensors. Out: tensors. The functions are in `core/ops/`.
"""

# ruff: noqa: F401
from __future__ import annotations

from tracejit.core.ops import out as _out
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import LinAlgError
from tracejit.core.ops.linalg_determinants import det, slogdet
from tracejit.core.ops.linalg_eigenvalues import eig, eigvals
from tracejit.core.ops.linalg_factors import (
    cholesky,
    cholesky_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
    qr,
)
from tracejit.core.ops.linalg_least_squares import lstsq, matrix_rank, pinv
from tracejit.core.ops.linalg_norms import cond, matrix_norm, norm, vector_norm
from tracejit.core.ops.linalg_powers import matrix_exp, matrix_power, multi_dot
from tracejit.core.ops.linalg_reflectors import householder_product
from tracejit.core.ops.linalg_solvers import inv, inv_ex, solve, solve_ex, solve_triangular
from tracejit.core.ops.linalg_spectra import eigh, eigvalsh, svd, svdvals
from tracejit.core.ops.tensor_products import (
    cross_along as cross,
)
from tracejit.core.ops.tensor_products import (
    diagonal_of_matrices as diagonal,
)
from tracejit.core.ops.tensor_products import (
    tensorinv,
    tensorsolve,
    vander,
    vecdot,
)

globals().update(_out.with_out(globals(), _out.LINALG))

_sealing.seal_all(globals())
