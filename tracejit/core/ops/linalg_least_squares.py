"""Pseudo-inverses, ranks and least squares: small singular values count as zero.

In: matrices (..., m, n), real or complex, of single or double precision, bounds. Out: matrices and
numbers. Called by users as `linalg.pinv`, `linalg.matrix_rank`, `linalg.lstsq`. Singular values up
to atol, or rtol times the largest, count as 0. Programs call LAPACK.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops import linalg_arrays
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import LinAlgError, must_be_float, must_be_square, title
from tracejit.core.ops.linalg_solvers import is_vector, product_batch, solution_type
from tracejit.core.ops.linalg_spectra import eigh_array, must_be_finite, smaller
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import adjoint
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import equal, same_structure, shape_text
from tracejit.core.ops.types import FLOATING, TensorType, int64

LstsqResult = namedtuple(  # type: ignore[name-match]
    "linalg_lstsq", ["solution", "residuals", "rank", "singular_values"]
)


def _bound(xp: Any, a: Any, values: Any, atol: Any, rtol: Any) -> Any:
    """Return the bound that singular values (..., k) must exceed, (..., 1)."""
    if rtol is None:
        rtol = 0 if atol is not None else xp.finfo(a.dtype).eps * max(a.shape[-2:])
    nothing = xp.zeros((*values.shape[:-1], 1), values.dtype)  # there may be no value at all
    largest = xp.concatenate([nothing, values], -1).max(-1, keepdims=True)
    atol, rtol = (
        xp.asarray(x, values.dtype)[..., None] for x in (0 if atol is None else atol, rtol)
    )
    return xp.maximum(atol, rtol * largest)


def _no_rows_refused(name: str, A: Any, hermitian: bool) -> None:
    if hermitian:
        must_be_square("linalg.eigh", A)
    must_be_float(name, A, analytic=True)


# -- pseudo-inverse --------------------------------------------------------------------------------
def _pinv_array(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    *batch, m, n = a.shape
    if not a.size:
        return xp.zeros((*batch, n, m), a.dtype)
    if hermitian:
        values, u = eigh_array(xp, a, False)
        vh = u.swapaxes(-2, -1).conj()
    else:
        must_be_finite(xp, a)
        u, values, vh = xp.linalg.svd(a, full_matrices=False)
    kept = abs(values) > _bound(xp, a, abs(values), atol, rtol)
    over = xp.where(kept, 1 / xp.where(kept, values, 1), 0)
    v, uh = vh.swapaxes(-2, -1).conj(), u.swapaxes(-2, -1).conj()
    return ((v * over[..., None, :]) @ uh).astype(a.dtype)


def _pinv_rule(grad: Any, out: Any, input: Any) -> Any:
    """Apply equation (4.12) of G. Golub and V. Pereyra, "The differentiation of pseudo-inverses"
    (1973).

    dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
    """
    P, Pt, Gt = out, adjoint(out), adjoint(grad)
    first = matmul(matmul(Gt, P), Pt)
    second = matmul(Pt, matmul(P, Gt))
    through = -matmul(matmul(Pt, grad), Pt)
    return (through + first - matmul(input, matmul(P, first))
            + second - matmul(matmul(second, P), input))  # fmt: skip


pinv_record = Op(
    "linalg_pinv", "extern", ("input", "atol", "rtol"), eager=_pinv_array,
    infer=lambda input, atol, rtol, hermitian: TensorType(
        input.dtype, (*input.shape[:-2], input.shape[-1], input.shape[-2]), input.device
    ),
    rules={"input": _pinv_rule}, adjoint=True, may_fail=True,
)  # fmt: skip


@autocasts(cpu="float32")
def pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
         rtol: Any = None) -> Any:  # fmt: skip
    """Return the pseudo-inverse (..., n, m) of matrices (..., m, n).

    atol, rtol  singular values up to atol or rtol times the largest count as 0: numbers, or tensors
                with one for each matrix; rtol as a rule eps * max(m, n). rcond  the same as rtol
    hermitian   A is Hermitian, and only its lower triangle is read

    >>> import tracejit
    >>> tracejit.linalg.pinv(tracejit.tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]

    RuntimeError for vectors, integers and halves.
    """
    if len(A.shape) < 2 or A.dtype.category < FLOATING or A.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({title(A)}{{{shape_text(A.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    _no_rows_refused("linalg.pinv", A, hermitian)
    return pinv_record(A, atol, rcond if rtol is None else rtol, hermitian=bool(hermitian))


@method()
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Call `linalg.pinv`: pseudoinverses (*, n, m) of matrices (*, m, n).

    >>> import tracejit
    >>> tracejit.pinverse(tracejit.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rcond)


# -- rank ------------------------------------------------------------------------------------------
def _rank_array(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not a.size:
        return xp.zeros(a.shape[:-2], np.int64)
    if hermitian:
        values = abs(eigh_array(xp, a, False)[0])
    else:
        must_be_finite(xp, a)
        values = xp.linalg.svd(a, compute_uv=False)
    return xp.asarray((values > _bound(xp, a, values, atol, rtol)).sum(-1), np.int64)


rank_record = Op(
    "matrix_rank", "extern", ("input", "atol", "rtol"), eager=_rank_array,
    infer=lambda input, atol, rtol, hermitian: TensorType(
        int64, tuple(input.shape[:-2]), input.device
    ),
    may_fail=True,
)  # fmt: skip


@autocasts(cpu="float32")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None,
                rtol: Any = None) -> Any:  # fmt: skip
    """Count the singular values of matrices that are not 0, int64; bounds as those of `pinv`.

    tol  the same as atol

    >>> import tracejit
    >>> tracejit.linalg.matrix_rank(tracejit.ones(3, 2)).item()
    1
    """
    if len(A.shape) < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if A.dtype.category < FLOATING or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    _no_rows_refused("linalg.matrix_rank", A, hermitian)
    return rank_record(A, tol if atol is None else atol, rtol, hermitian=bool(hermitian))


# -- least squares ---------------------------------------------------------------------------------
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _lstsq_types(A: Any, B: Any, rcond: Any, full: bool) -> tuple[TensorType, ...]:
    solution = solution_type(A, B)
    batch = solution.shape[:-2]
    values = solution._replace(
        dtype=A.dtype.to_real(), shape=(*batch, smaller(*A.shape[-2:])))
    return solution, solution._replace(dtype=int64, shape=batch), values


def _lstsq_array(xp: Any, a: Any, b: Any, rcond: Any, full: bool) -> tuple[Any, Any, Any]:
    *_, m, n = a.shape
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    k, columns = min(m, n), b.shape[-1]
    x = xp.zeros((*batch, n, columns), a.dtype)
    rank, values = xp.zeros(batch, np.int64), xp.zeros((*batch, k), a.real.dtype)
    if not a.size or not b.size:
        return x, rank, values
    stacks = (linalg_arrays.flattened(xp.broadcast_to(y, (*batch, *y.shape[-2:]))) for y in (a, b))
    bound = xp.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond

    def one(left: Any, right: Any) -> tuple:
        if not (xp.isfinite(left).all() and xp.isfinite(right).all()):
            return (xp.full((n, columns), np.nan, a.dtype), xp.asarray(0),
                    xp.full(k, np.nan, a.real.dtype))  # fmt: skip
        found, _, count, sizes = xp.linalg.lstsq(left, right, rcond=bound)
        return found, xp.asarray(count), sizes

    x, rank, values = linalg_arrays.for_each(xp, one, *stacks)
    rank = rank.reshape(batch).astype(np.int64)
    if full and (rank < k).any():
        least = values.reshape(*batch, k).argmin(-1).ravel()[int((rank < k).ravel().argmax())]
        raise LinAlgError(
            "torch.linalg.lstsq: The least squares solution could not be computed because the "
            f"input matrix does not have full rank (error code: {int(least) + 1})."
        )
    return x.reshape(*batch, n, columns), rank, values.reshape(*batch, k)


def _lstsq_rule(grad: Any, A: Any, B: Any) -> Any:
    """Derive the solution as pinv(A) @ B."""
    P = pinv_record(A, None, None, hermitian=False)
    return _pinv_rule(matmul(grad, adjoint(B)), P, A)


lstsq_record = Op(
    "linalg_lstsq", "extern", ("A", "B", "rcond"), outputs=("solution", "rank", "values"),
    infer=_lstsq_types, eager=_lstsq_array, may_fail=True,
    rules={
        "A": _lstsq_rule,
        "B": lambda grad, A: matmul(adjoint(pinv_record(A, None, None, hermitian=False)), grad),
    },
    adjoint=True,
)  # fmt: skip


def _check_lstsq(A: Any, B: Any, driver: str | None) -> None:
    name = "torch.linalg.lstsq"
    if len(A.shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if len(B.shape) < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{title(A)} and other's dtype {title(B)}"
        )
    if not 0 <= len(A.shape) - len(B.shape) <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            "other.dim()) <= 1"
        )
    if A.dtype.category < FLOATING or A.dtype.itemsize == 2:
        raise RuntimeError("This function doesn't handle types other than float and double")
    must_be_float(name, A, analytic=True)
    if driver not in (None, *_DRIVERS):
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(_DRIVERS)})")


@autocasts(cpu="float32")
def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Return (solution, residuals, rank, singular_values): the X for which A @ X is nearest to B.

    A (..., m, n); B (..., m, k), or (..., m) for vectors. Of several the smallest X.

    driver  the results beside the solution; the others are empty: "gelsy" (also None) the rank,
            "gelsd" and "gelss" all, "gels" residuals, and A must have full rank

    >>> import tracejit
    >>> A, B = tracejit.tensor([[1.0], [1.0]]), tracejit.tensor([[1.0], [3.0]])
    >>> round(tracejit.linalg.lstsq(A, B).solution.item(), 6)
    2.0

    LinAlgError ("gels") for lower rank, RuntimeError where shapes or dtypes do not fit.
    """
    _check_lstsq(A, B, driver)
    vector = is_vector(A, B)
    right = B.unsqueeze(-1) if vector else B
    m, n = A.shape[-2:]
    if not equal(m, right.shape[-2]):
        other = f"other.size({'-1' if vector else '-2'})"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match {other}")
    product_batch(A, right)
    X, rank, values = lstsq_record(A, right, rcond, full=driver == "gels")
    no_rank = A.new_zeros((0,), dtype=int64)
    nothing = X.reshape((-1,)).narrow(0, 0, 0)
    residuals = (nothing.real if A.is_complex() else nothing).clone()
    no_values = residuals.detach().clone()
    tall = driver in ("gels", "gelsd", "gelss") and not same_structure(m, n) and m > n
    if tall and (driver == "gels" or bool((rank == n).all())):
        away = matmul(A, X) - right
        residuals = (away * away.conj()).real.sum(-2) if A.is_complex() else (away * away).sum(-2)
    return LstsqResult(
        X.squeeze(-1) if vector else X, residuals, no_rank if driver == "gels" else rank,
        values.detach() if driver in ("gelsd", "gelss") else no_values,
    )  # fmt: skip
