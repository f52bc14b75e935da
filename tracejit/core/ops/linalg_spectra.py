"""Singular values, and the eigenvalues of symmetric matrices.

In: matrices (..., m, n), real or complex, of single or double precision. Out: vectors and values.
Called by users as `linalg.svd`, `linalg.eigh` ..., by `linalg_norms.py` and
`linalg_least_squares.py`. Programs call LAPACK.

Derivatives: M. Giles, "Collected matrix derivative results" (2008), section 3; of vectors J.
Townsend, "Differentiating the singular value decomposition" (2016). Where values are equal their
vectors have no derivative. A gradient of 0 for such vectors gives 0, another one inf or nan.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import eye_of
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import (
    LinAlgError,
    must_be_float,
    must_be_matrix,
    must_be_square,
    must_have_kernel,
)
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import adjoint, imag
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.random import within_record
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import same_structure
from tracejit.core.ops.types import TensorType, bool_, dtype

SvdResult = namedtuple("linalg_svd", ["U", "S", "Vh"])  # type: ignore[name-match]
OldSvdResult = namedtuple("svd", ["U", "S", "V"])  # type: ignore[name-match]
EighResult = namedtuple("linalg_eigh", ["eigenvalues", "eigenvectors"])  # type: ignore[name-match]


def smaller(m: Any, n: Any) -> Any:
    """Return the smaller of two sizes."""
    return m if same_structure(m, n) or m <= n else n


def diagonals(values: Any) -> Any:
    """Turn rows of numbers into rows that scale the columns of matrices."""
    return values.unsqueeze(-2)


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _must_not_turn(name: str, along: Any, vectors: str) -> None:
    """Raise RuntimeError where a loss depends on the phases of vectors, which nothing
    determines."""
    within_record(
        imag(along).diagonal(0, -2, -1), low=-1e-2, high=1e-2,
        message=f"{name}_backward: The {vectors} in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this quantity, so it "
        "is ill-defined.")  # fmt: skip


def _over_gaps(x: Any, values: Any) -> Any:
    """Return x_ij / (values_j - values_i); 0 where x is 0 between equal values, and on the
    diagonal."""
    gaps = diagonals(values) - values.unsqueeze(-1)
    none = (gaps == 0) & (x == 0) | eye_of(x, x.shape[-1], x.shape[-1], bool_)
    return where(none, 0, x) / where(none, 1, gaps)


# -- singular values -------------------------------------------------------------------------------
def _value_type(input: Any) -> TensorType:
    shape = (*input.shape[:-2], smaller(*input.shape[-2:]))
    return TensorType(_real(input.dtype), shape, input.device)


def _real(kind: dtype) -> dtype:
    """Return the dtype of singular values and of eigenvalues of Hermitian matrices."""
    return kind.to_real() if kind.is_complex else kind


def _svd_types(input: Any, full_matrices: bool) -> tuple[TensorType, ...]:
    *batch, m, n = input.shape
    values = _value_type(input)
    k = values.shape[-1]
    return (
        TensorType(input.dtype, (*batch, m, m if full_matrices else k), input.device),
        values,
        TensorType(input.dtype, (*batch, n if full_matrices else k, n), input.device),
    )


def must_be_finite(xp: Any, a: Any) -> None:
    """Raise LinAlgError for inf and nan: such matrices have no singular values."""
    bad = ~xp.isfinite(a).all((-2, -1))
    if not bad.any():
        return
    element = f"(Batch element {int(bad.ravel().argmax())}): " if bad.ndim else ""
    raise LinAlgError(
        f"linalg.svd: {element}The algorithm failed to converge because the input matrix contained "
        "non-finite values."
    )


def _svd_array(xp: Any, a: Any, full_matrices: bool) -> tuple:
    must_be_finite(xp, a)
    return tuple(xp.linalg.svd(a, full_matrices=full_matrices))


def _values_array(xp: Any, a: Any) -> Any:
    must_be_finite(xp, a)
    return xp.linalg.svd(a, compute_uv=False)


def _svd_rule(grad_U: Any, grad_S: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    k = S.shape[-1]
    U, grad_U = (x.narrow(-1, 0, k) for x in (U, grad_U))  # what is beyond k is not determined
    Vh, grad_Vh = (x.narrow(-2, 0, k) for x in (Vh, grad_Vh))
    of_U, of_V = matmul(adjoint(U), grad_U), matmul(Vh, adjoint(grad_Vh))
    plus = diagonals(S) + S.unsqueeze(-1)
    turning = (_over(_over_gaps(_skew(of_U), S), plus) * diagonals(S)
               + S.unsqueeze(-1) * _over(_over_gaps(_skew(of_V), S), plus))  # fmt: skip
    core = turning + eye_of(S, k, k, S.dtype) * diagonals(grad_S)
    if core.is_complex():  # vectors are determined but for phases, which both sides share
        _must_not_turn("svd", of_U + of_V, "singular vectors")
        phases = _over(_skew(of_U), 2 * diagonals(S))
        core = core + where(eye_of(S, k, k, bool_), phases, 0)
    result = matmul(matmul(U, core), Vh)
    m, n = U.shape[-2], Vh.shape[-1]
    if not same_structure(m, k):
        beside = grad_U - matmul(U, of_U)
        result = result + matmul(_over(beside, diagonals(S)), Vh)
    if not same_structure(n, k):
        beside = grad_Vh - matmul(adjoint(of_V), Vh)
        result = result + matmul(U, _over(beside, S.unsqueeze(-1)))
    return result


def _over(x: Any, by: Any) -> Any:
    """Return x / by, and 0 where both are 0."""
    none = (x == 0) & (by == 0)
    return where(none, 0, x) / where(none, 1, by)


svd_record = Op(
    "linalg_svd", "extern", ("input",), outputs=("U", "S", "Vh"), infer=_svd_types,
    eager=_svd_array, rules={"input": _svd_rule}, adjoint=True, may_fail=True,
)  # fmt: skip


def _values_rule(grad: Any, input: Any) -> Any:
    U, _, Vh = svd_record(input, full_matrices=False)
    return matmul(U * diagonals(grad), Vh)


svdvals_record = Op(
    "linalg_svdvals", "extern", ("input",), infer=_value_type, eager=_values_array,
    rules={"input": _values_rule}, adjoint=True, may_fail=True, node_name="LinalgSvdBackward0",
)  # fmt: skip


def _check_svd(A: Any, driver: str | None) -> None:
    must_be_matrix("linalg.svd", A)
    must_be_float("linalg.svd", A, "linalg_svd_cpu", analytic=True)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )


@autocasts(cpu="float32")
def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return (U, S, Vh) with A = U @ diag(S) @ Vh: orthogonal matrices, and values in falling
    order.

    A (..., m, n); with full_matrices=False of U and Vh only the first min(m, n) vectors.

    >>> import tracejit
    >>> tracejit.linalg.svd(tracejit.tensor([[3.0, 0.0], [0.0, 4.0]])).S.tolist()
    [4.0, 3.0]

    LinAlgError for inf and nan, RuntimeError for vectors, integers and halves.
    """
    _check_svd(A, driver)
    return SvdResult(*svd_record(A, full_matrices=bool(full_matrices)))


@autocasts(cpu="float32")
def svdvals(A: Any, *, driver: str | None = None) -> Any:
    """Return the singular values (*, k) of matrices (*, m, n), the largest first; k is the smaller
    size.

    >>> import tracejit
    >>> tracejit.linalg.svdvals(tracejit.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    _check_svd(A, driver)
    return svdvals_record(A)


def svd_with_v(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Return (U, S, V) of matrices (*, m, n), with input = U @ diag(S) @ V.mH; `some`: only the
    first min(m, n) vectors.

    >>> import tracejit
    >>> U, S, V = tracejit.svd(tracejit.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> S
    tensor([4., 3.])
    """
    if not compute_uv:
        m, n = input.shape[-2:]
        values = svdvals(input)
        zeros = (input.new_zeros((*input.shape[:-2], k, k)) for k in (m, n))
        return OldSvdResult(next(zeros), values, next(zeros))
    U, S, Vh = svd(input, not some)
    return OldSvdResult(U, S, adjoint(Vh))


method("svd")(svd_with_v)


# -- eigenvalues of symmetric matrices -------------------------------------------------------------
def _eigenvalue_type(input: Any, upper: bool) -> TensorType:
    return TensorType(_real(input.dtype), tuple(input.shape[:-1]), input.device)


def _eigh_types(input: Any, upper: bool) -> tuple[TensorType, TensorType]:
    vectors = TensorType(input.dtype, tuple(input.shape), input.device)
    return _eigenvalue_type(input, upper), vectors


def _finite_or_nan(xp: Any, a: Any) -> Any:
    """Replace matrices that have an inf or a nan by nan."""
    bad = ~xp.isfinite(a).all((-2, -1), keepdims=True)
    return xp.where(bad, np.nan, a).astype(a.dtype) if bad.any() else a


def eigh_array(xp: Any, a: Any, upper: bool) -> tuple:
    """Return eigenvalues and vectors; nan for matrices that have none."""
    a = _finite_or_nan(xp, a)
    try:
        return tuple(xp.linalg.eigh(a, "U" if upper else "L"))
    except np.linalg.LinAlgError:
        return tuple(_each_eigh(a, upper))


def _each_eigh(a: Any, upper: bool) -> tuple[Any, Any]:
    """Do `eigh_array` matrix by matrix."""
    values = np.full(a.shape[:-1], np.nan, a.real.dtype)
    vectors = np.full(a.shape, np.nan, a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        if np.isfinite(a[place]).all():
            values[place], vectors[place] = np.linalg.eigh(a[place], "U" if upper else "L")
    return values, vectors


def _eigh_rule(grad_eigenvalues: Any, grad_eigenvectors: Any, eigenvalues: Any,
               eigenvectors: Any) -> Any:  # fmt: skip
    V, n = eigenvectors, eigenvalues.shape[-1]
    along = matmul(adjoint(V), grad_eigenvectors)
    if along.is_complex():
        _must_not_turn("linalg_eigh", along, "eigenvectors")
    turning = _over_gaps(_skew(along), eigenvalues) / 2
    core = turning + eye_of(V, n, n, V.dtype) * diagonals(grad_eigenvalues)
    return matmul(matmul(V, core), adjoint(V))


eigh_record = Op(
    "linalg_eigh", "extern", ("input",), outputs=("eigenvalues", "eigenvectors"),
    infer=_eigh_types, eager=eigh_array, rules={"input": _eigh_rule}, adjoint=True,
)  # fmt: skip


def _eigenvalues_rule(grad: Any, input: Any, upper: bool) -> Any:
    _, V = eigh_record(input, upper=upper)
    return matmul(V * diagonals(grad), adjoint(V))


eigvalsh_record = Op(
    "linalg_eigvalsh", "extern", ("input",), infer=_eigenvalue_type,
    eager=lambda xp, a, upper: eigh_array(xp, a, upper)[0],
    rules={"input": _eigenvalues_rule}, adjoint=True, node_name="LinalgEighBackward0",
)  # fmt: skip


def _is_upper(A: Any, UPLO: str) -> bool:
    must_be_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    must_have_kernel("linalg.eigh", A, "linalg_eigh_cpu", analytic=True)
    return UPLO.upper() == "U"


@autocasts(cpu="float32")
def eigh(A: Any, UPLO: str = "L") -> Any:
    """Return (eigenvalues in rising order, eigenvectors as columns) of symmetric matrices (..., n,
    n).

    UPLO  "L" or "U": the triangle that is read

    >>> import tracejit
    >>> tracejit.linalg.eigh(tracejit.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]

    RuntimeError for other shapes; nan for matrices with inf or nan.
    """
    return EighResult(*eigh_record(A, upper=_is_upper(A, UPLO)))


@autocasts(cpu="float32")
def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues (*, n) of Hermitian matrices (*, n, n), ascending: those of `eigh`.

    >>> import tracejit
    >>> tracejit.linalg.eigvalsh(tracejit.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    return eigvalsh_record(A, upper=_is_upper(A, UPLO))
