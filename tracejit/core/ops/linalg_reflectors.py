"""Products of reflections (orthogonal matrices as LAPACK keeps them), and factors of low rank.

In: matrices, and stacks of them. Out: matrices. A reflection is I - tau v v^H, where v is a column
of the matrix: 0 above the diagonal, 1 on it. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.creation import eye_of
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import must_agree, must_be_float, must_be_matrix
from tracejit.core.ops.linalg_factors import qr
from tracejit.core.ops.linalg_spectra import svd
from tracejit.core.ops.operators import method
from tracejit.core.ops.random import randn
from tracejit.core.ops.rearranging import tril


def _reflections(name: str, input: Any, tau: Any) -> list[tuple[Any, Any]]:
    """Return (v, tau) of each reflection, with v as a column."""
    must_be_matrix(name, input, "input")
    must_be_float(name, input, analytic=True)
    must_agree(name, input, tau, ("input", "tau"))
    rows, columns = input.shape[-2:]
    if tau.shape[-1] > columns:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")
    if len(tau.shape) != len(input.shape) - 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got "
                           f"{len(tau.shape)} and {len(input.shape)}")
    if not shapes.same_shape(tuple(tau.shape[:-1]), tuple(input.shape[:-2])):
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be those of input")
    vectors = tril(input, -1) + eye_of(input, rows, columns, input.dtype)
    return [(vectors[..., k:k + 1], tau[..., k, None, None]) for k in range(tau.shape[-1])]


def _reflected(v: Any, tau: Any, x: Any) -> Any:
    """Return (I - tau v v^H) x."""
    return x - tau * matmul(v, matmul(v.mH, x))


def householder_product(A: Any, tau: Any) -> Any:
    """Multiply `A`'s reflections; return as many first columns of the product as `A` has.

    >>> import tracejit
    >>> tracejit.linalg.householder_product(tracejit.zeros(2, 1), tracejit.tensor([2.])).tolist()
    [[-1.0], [0.0]]

    RuntimeError where sizes or dtypes do not fit.
    """
    name = "torch.linalg.householder_product"
    found = _reflections(name, A, tau)
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")
    product = eye_of(A, A.shape[-2], A.shape[-1], A.dtype).expand(tuple(A.shape))
    for v, scale in reversed(found):
        product = _reflected(v, scale, product)
    return product if found else product + A * 0  # a gradient of 0 to A


@method()
def orgqr(input: Any, tau: Any) -> Any:
    """Call `linalg.householder_product` by its other name: matrices (*, m, n), tau (*, k).

    >>> import tracejit
    >>> tracejit.orgqr(tracejit.eye(2), tracejit.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return householder_product(input, tau)


@method()
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    """Multiply `other` (*, m, n) by the product Q of `input`'s reflections: Q other if `left`, else
    other Q.

    transpose  by Q's conjugate transpose instead

    RuntimeError where sizes or dtypes do not fit.

    >>> import tracejit
    >>> tracejit.ormqr(tracejit.eye(2), tracejit.zeros(2), tracejit.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    must_agree("torch.ormqr", input, other, ("input", "other"))
    found = _reflections("torch.ormqr", input, tau)
    rows = other.shape[-2 if left else -1]
    if rows < tau.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than "
                           "or equal to tau.shape[-1]")
    if not shapes.equal(rows, input.shape[-2]):
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to "
                           "input.shape[-2]")
    result = other if left else other.mH
    for v, scale in found if transpose == left else reversed(found):
        result = _reflected(v, scale.conj() if transpose == left else scale, result)
    result = result if left else result.mH
    return result if found else result + 0  # a new tensor, not `other`


# -- low rank --------------------------------------------------------------------------------------
def _basis(A: Any, count: int, rounds: int) -> Any:
    """Return an orthonormal basis of about the space that the largest singular vectors of A
    span."""
    drawn = randn((*A.shape[:-2], A.shape[-1], count), dtype=A.dtype, device=A.device)
    basis = qr(matmul(A, drawn)).Q
    for _ in range(rounds):
        basis = qr(matmul(A, qr(matmul(A.mH, basis)).Q)).Q
    return basis


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple:
    """Approximate (U, S, V) of the `q` largest singular values of A (of A - M).

    The result is that of A if A has rank `q`. Starts from random numbers.

    >>> import tracejit
    >>> _, s, _ = tracejit.svd_lowrank(tracejit.ones(3, 4), q=1)
    >>> round(s.item(), 4)
    3.4641
    """
    must_be_matrix("svd_lowrank", A)
    count, rounds = 6 if q is None else q, 2 if niter is None else niter
    A = A if M is None else A - M
    rows, columns = A.shape[-2:]
    if not 0 <= count <= min(rows, columns):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than "
                         f"min(m, n)={min(rows, columns)}")
    wide = rows < columns
    A = A.mH if wide else A
    basis = _basis(A, count, rounds)
    left, values, right = svd(matmul(basis.mH, A), full_matrices=False)
    left, right = matmul(basis, left), right.mH
    return (right, values, left) if wide else (left, values, right)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """Approximate (U, S, V) of the `q` (None: 6, or fewer) principal components of A's rows.

    A is (*, m, n); U (*, m, q), S (*, q) and V (*, n, q). Starting directions are drawn at random.
    ValueError for a `q` or `niter` out of range. The source is Halko, Martinsson and Tropp,
    "Finding structure with randomness" (2011).

    >>> import tracejit
    >>> [tuple(part.shape) for part in tracejit.pca_lowrank(tracejit.eye(4), q=2)]
    [(4, 2), (2,), (4, 2)]
    """
    rows, columns = A.shape[-2:]
    count = min(6, rows, columns) if q is None else q
    if not 0 <= count <= min(rows, columns):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than "
                         f"min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, count, niter)
