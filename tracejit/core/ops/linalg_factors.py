"""Factors of matrices: Cholesky, QR and LU.

In: matrices, or stacks of them, real or complex, of single or double precision. Out: triangular
matrices and what stands beside them. Called by users as `linalg.cholesky`, `linalg.qr`, `linalg.lu`
... Programs call LAPACK.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tracejit.core.ops import linalg_arrays
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import eye_of
from tracejit.core.ops.joining import cat
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import (
    must_agree,
    must_be_float,
    must_be_matrix,
    must_be_square,
    must_have_kernel,
    raise_first,
)
from tracejit.core.ops.linalg_solvers import check_sides, triangular_record, turned
from tracejit.core.ops.linalg_spectra import smaller
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import adjoint, conj, real
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.rearranging import tril, triu
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import same_structure, shape_text
from tracejit.core.ops.types import TensorType, bool_, dtype, int32

CholeskyResult = namedtuple("linalg_cholesky_ex", ["L", "info"])  # type: ignore[name-match]
QrResult = namedtuple("linalg_qr", ["Q", "R"])  # type: ignore[name-match]
LuResult = namedtuple("linalg_lu", ["P", "L", "U"])  # type: ignore[name-match]
LuFactorResult = namedtuple("linalg_lu_factor", ["LU", "pivots"])  # type: ignore[name-match]
LuFactorExResult = namedtuple(  # type: ignore[name-match]
    "linalg_lu_factor_ex", ["LU", "pivots", "info"]
)


# -- Cholesky --------------------------------------------------------------------------------------
_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {} is not positive-definite)."
)


def _cholesky_types(input: Any, upper: bool, check: str) -> tuple[TensorType, TensorType]:
    shape = tuple(input.shape)
    return (TensorType(input.dtype, shape, input.device),
            TensorType(int32, shape[:-2], input.device))  # fmt: skip


def _cholesky_array(xp: Any, a: Any, upper: bool, check: str) -> tuple[Any, Any]:
    factor, info = linalg_arrays.cholesky(xp, a, upper)
    if check:
        raise_first(check, info, _NOT_POSITIVE)
    return factor, info


def _cholesky_rule(grad: Any, L: Any, upper: bool) -> Any:
    """Apply equations (8) and (10) of I. Murray, "Differentiation of the Cholesky decomposition"
    (2016).

    The gradient is that of a symmetric matrix, as PyTorch's.
    """
    if upper:
        L, grad = adjoint(L), adjoint(grad)
    inner = matmul(adjoint(L), grad)
    inner = (tril(inner) + adjoint(tril(inner, -1))) / 2
    left = triangular_record(adjoint(L), inner, upper=True, unitriangular=False)
    return adjoint(triangular_record(adjoint(L), adjoint(left), upper=True, unitriangular=False))


cholesky_record = Op(
    "linalg_cholesky_ex", "extern", ("input",), outputs=("L", "info"), infer=_cholesky_types,
    eager=_cholesky_array, rules={"input": _cholesky_rule}, adjoint=True, may_fail=True,
)  # fmt: skip


def _cholesky(A: Any, upper: bool, check: str) -> tuple[Any, Any]:
    must_be_square("linalg.cholesky", A)
    must_be_float("linalg.cholesky", A, "cholesky_cpu", analytic=True)
    return cholesky_record(A, upper=bool(upper), check=check)


@autocasts(cpu="float32")
def cholesky(A: Any, *, upper: bool = False) -> Any:
    """Return the lower triangular L with A = L @ L.mH, of positive-definite Hermitian matrices
    (..., n, n).

    Only the lower triangle of A is read. With `upper` only the upper one is read, and the result is
    U with A = U.mH @ U.

    >>> import tracejit
    >>> tracejit.linalg.cholesky(tracejit.tensor([[4.0, 0.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]

    LinAlgError for other symmetric matrices, RuntimeError for other shapes and dtypes.
    """
    return _cholesky(A, upper, "linalg.cholesky")[0]


@autocasts(cpu="float32")
def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return (L, info) of Hermitian matrices (*, n, n), where A = L @ L.mH.

    `info` (*) of int32 is 0, or the order of the first minor that is not positive; `check_errors`
    raises LinAlgError there.

    >>> import tracejit
    >>> tracejit.linalg.cholesky_ex(tracejit.eye(2) * 4)
    tracejit.return_types.linalg_cholesky_ex(
    L=tensor([[2., 0.],
            [0., 2.]]),
    info=tensor(0, dtype=tracejit.int32))
    """
    return CholeskyResult(*_cholesky(A, upper, "linalg.cholesky_ex" if check_errors else ""))


@autocasts(cpu="float32")
def old_cholesky(input: Any, upper: bool = False) -> Any:
    """Call `linalg.cholesky` of matrices (*, n, n).

    >>> import tracejit
    >>> tracejit.cholesky(tracejit.eye(2) * 4)
    tensor([[2., 0.],
            [0., 2.]])
    """
    must_be_square("cholesky", input)
    return _cholesky(input, upper, "cholesky")[0]


method("cholesky")(old_cholesky)


# -- QR --------------------------------------------------------------------------------------------
def _qr_types(input: Any, mode: str) -> tuple[TensorType, TensorType]:
    *batch, m, n = input.shape
    k = m if mode == "complete" else smaller(m, n)
    q = (0,) if mode == "r" else (*batch, m, k)
    return (TensorType(input.dtype, q, input.device),
            TensorType(input.dtype, (*batch, k, n), input.device))  # fmt: skip


def _qr_array(xp: Any, a: Any, mode: str) -> tuple[Any, Any]:
    *batch, m, n = a.shape
    if not a.size:  # CuPy and NumPy refuse some of these
        k = m if mode == "complete" else min(m, n)
        q = xp.broadcast_to(xp.eye(m, k, dtype=a.dtype), (*batch, m, k)).copy()
        return (xp.zeros(0, a.dtype) if mode == "r" else q), xp.zeros((*batch, k, n), a.dtype)
    if mode == "r":
        return xp.zeros(0, a.dtype), xp.linalg.qr(a, "r")
    return tuple(xp.linalg.qr(a, mode))


def _qr_rule(grad_Q: Any, grad_R: Any, Q: Any, R: Any, input: Any, mode: str) -> Any:
    """Apply equations (3) and (4.5) of D. Roberts and L. Roberts.

    Source: "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and deep
    matrices" (2020).
    """
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = input.shape[-2:]
    k = R.shape[-2]
    if mode == "complete" and not same_structure(m, n) and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if same_structure(k, n):
        return _tall_qr(grad_Q, grad_R, Q, R)
    rest = grad_R.narrow(-1, k, n - k)
    whole = grad_Q + matmul(input.narrow(-1, k, n - k), adjoint(rest))
    first = _tall_qr(whole, grad_R.narrow(-1, 0, k), Q, R.narrow(-1, 0, k))
    return cat((first, matmul(Q, rest)), -1)


def _tall_qr(grad_Q: Any, grad_R: Any, Q: Any, R: Any) -> Any:
    M = matmul(R, adjoint(grad_R)) - matmul(adjoint(grad_Q), Q)
    lower = tril(M)
    if M.is_complex():  # the diagonal of R is real
        k = M.shape[-1]
        lower = where(eye_of(M, k, k, bool_), convert(real(lower), M.dtype), lower)
    whole = grad_Q + matmul(Q, lower + adjoint(tril(M, -1)))
    return adjoint(triangular_record(R, adjoint(whole), upper=True, unitriangular=False))


qr_record = Op(
    "linalg_qr", "extern", ("input",), outputs=("Q", "R"), infer=_qr_types, eager=_qr_array,
    rules={"input": _qr_rule}, adjoint=True,
)  # fmt: skip


@autocasts(cpu="float32")
def qr(A: Any, mode: str = "reduced") -> Any:
    """Return (Q, R) with A = Q @ R: orthogonal columns, and an upper triangle.

    A (..., m, n). mode "reduced": Q (..., m, min(m, n)); "complete": Q (..., m, m); "r": Q is
    empty, and there is no gradient

    >>> import tracejit
    >>> Q, R = tracejit.linalg.qr(tracejit.tensor([[0.0, 2.0], [3.0, 0.0]]))
    >>> (Q @ R).tolist()
    [[0.0, 2.0], [3.0, 0.0]]

    RuntimeError for other modes, vectors, integers and halves.
    """
    must_be_matrix("linalg.qr", A)
    must_be_float("linalg.qr", A, "geqrf_cpu", analytic=True)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    return QrResult(*qr_record(A, mode=mode))


@method("qr")
def old_qr(input: Any, some: bool = True) -> Any:
    """Call `linalg.qr` of matrices (*, m, n), reduced or complete.

    >>> import tracejit
    >>> Q, R = tracejit.qr(tracejit.eye(2))
    >>> Q @ R
    tensor([[1., 0.],
            [0., 1.]])
    """
    return qr(input, "reduced" if some else "complete")


# -- LU --------------------------------------------------------------------------------------------
def _lu_types(input: Any) -> tuple[TensorType, ...]:
    *batch, m, n = input.shape
    return (TensorType(input.dtype, tuple(input.shape), input.device),
            TensorType(int32, (*batch, smaller(m, n)), input.device),
            TensorType(int32, tuple(batch), input.device))  # fmt: skip


def _lu_rule(grad_LU: Any, LU: Any, pivots: Any) -> Any:
    """Derive from dA = P (dL U + L dU).

    L^-1 P^T dA U^-1 has dL's part strictly below the diagonal, dU's above. For a wide A the rest of
    U follows from L, for a tall A the rest of L from U.
    """
    m, n = LU.shape[-2:]
    k = pivots.shape[-1]
    square, grad = (x.narrow(-2, 0, k).narrow(-1, 0, k) for x in (LU, grad_LU))
    of_L = matmul(turned(tril(square, -1)), tril(grad, -1)) + tril(grad, -1)
    of_U = matmul(triu(grad), turned(triu(square)))
    rest = None
    if not same_structure(n, k):  # wide
        rest = grad_LU.narrow(-1, k, n - k)
        of_L = of_L - matmul(rest, turned(LU.narrow(-1, k, n - k)))
    elif not same_structure(m, k):
        rest = grad_LU.narrow(-2, k, m - k)
        of_U = of_U - matmul(turned(LU.narrow(-2, k, m - k)), rest)
        rest = _times_inverse_of_turned(rest, square)
    inner = _times_inverse_of_turned(tril(of_L, -1) + triu(of_U), square)
    if not same_structure(n, k):
        inner = cat((inner, rest), -1)
    result = triangular_record(turned(square), inner, upper=True, unitriangular=True)
    if not same_structure(m, k):
        result = cat((result, rest), -2)
    return matmul(permutation_record(pivots, rows=m, dtype=LU.dtype), result)


def _times_inverse_of_turned(x: Any, LU: Any) -> Any:
    """Return x @ U^-T."""
    return turned(triangular_record(LU, turned(x), upper=True, unitriangular=False))


lu_record = Op(
    "linalg_lu_factor_ex", "extern", ("input",), outputs=("LU", "pivots", "info"),
    infer=_lu_types, eager=lambda xp, a: linalg_arrays.lu(xp, a), rules={"input": _lu_rule},
)  # fmt: skip


def _permutation_array(xp: Any, pivots: Any, rows: int, dtype: dtype) -> Any:
    if pivots.size and (pivots.min() < 1 or pivots.max() > rows):
        raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                           "Did you properly pass the result of lu_factor?")
    order = linalg_arrays.permutation(xp, pivots, rows)
    return (xp.arange(rows)[:, None] == order[..., None, :]).astype(dtype.numpy)


permutation_record = Op(
    "lu_permutation", "extern", ("pivots",), eager=_permutation_array, may_fail=True,
    infer=lambda pivots, rows, dtype: TensorType(
        dtype, (*pivots.shape[:-1], rows, rows), pivots.device
    ),
)  # fmt: skip


def _factored(name: str, A: Any, pivot: bool) -> tuple[Any, Any, Any]:
    if len(A.shape) < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: "
            f"{shape_text(A.shape)} instead"
        )
    must_have_kernel(name, A, "lu_cpu", analytic=True)
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return lu_record(A)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return (LU, pivots, info) of matrices (*, m, n), see `lu_factor`.

    `info` (*) of int32 is 0, or the number of the first pivot that is 0.

    >>> import tracejit
    >>> tracejit.linalg.lu_factor_ex(tracejit.eye(2)).info
    tensor(0, dtype=tracejit.int32)
    """
    LU, pivots, info = _factored("torch.lu_factor_ex", A, pivot)
    if check_errors:
        _must_be_regular("torch.linalg.lu_factor_ex", info)
    return LuFactorExResult(LU, pivots, info)


def _must_be_regular(name: str, info: Any) -> None:
    _regular_record(info, check=name)


def _first_zero(xp: Any, info: Any, check: str) -> Any:
    numbers = info.get() if hasattr(info, "get") else info
    if numbers.any():
        place = int((numbers.ravel() != 0).argmax())
        element = f"(Batch element {place}): " if numbers.ndim else ""
        k = int(numbers.ravel()[place])
        raise RuntimeError(
            f"{check}: {element}U[{k},{k}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling "
            "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return info


_regular_record = Op(
    "lu_regular", "extern", ("info",), eager=_first_zero, may_fail=True,
    infer=lambda info, check: TensorType(int32, tuple(info.shape), info.device),
)  # fmt: skip


def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """Return (LU, pivots): both factors in one matrix, and which rows were exchanged, from 1.

    >>> import tracejit
    >>> LU, pivots = tracejit.linalg.lu_factor(tracejit.tensor([[0.0, 2.0], [3.0, 1.0]]))
    >>> LU.tolist(), pivots.tolist()
    ([[3.0, 1.0], [0.0, 2.0]], [2, 2])

    RuntimeError where a pivot is 0, for vectors, integers and halves.
    """
    LU, pivots, info = _factored("torch.lu_factor", A, pivot)
    _must_be_regular("torch.linalg.lu_factor", info)
    return LuFactorResult(LU, pivots)


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:  # fmt: skip
    """Return (P, L, U) from what `linalg.lu_factor` returns: LU (*, m, n) and pivots (*, k), int32.

    P is (*, m, m), L (*, m, k) and U (*, k, n), k being the smaller of m and n. What is not
    unpacked is empty.

    >>> import tracejit
    >>> LU, pivots = tracejit.linalg.lu_factor(tracejit.tensor([[0.0, 1.0], [2.0, 0.0]]))
    >>> P, L, U = tracejit.lu_unpack(LU, pivots)
    >>> P @ L @ U
    tensor([[0., 1.],
            [2., 0.]])
    """
    if len(LU_data.shape) < 2:
        raise RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{shape_text(LU_data.shape)} instead")
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a tensor of tracejit.int32"
                           " dtype: what lu_factor returns.")
    m, n = LU_data.shape[-2:]
    k = smaller(m, n)
    empty = LU_data.new_zeros((0,))
    P, L, U = empty, empty, empty
    if unpack_pivots:
        P = permutation_record(LU_pivots, rows=m, dtype=LU_data.dtype)
    if unpack_data:
        lower = LU_data if same_structure(n, k) else LU_data.narrow(-1, 0, k)
        L = tril(lower, -1) + eye_of(LU_data, m, k, LU_data.dtype)
        U = triu(LU_data if same_structure(m, k) else LU_data.narrow(-2, 0, k))
    return LuResult(P, L, U)


def lu(A: Any, *, pivot: bool = True) -> Any:
    """Return (P, L, U) with A = P @ L @ U: exchanged rows, a lower triangle with ones, an upper
    triangle.

    >>> import tracejit
    >>> P, L, U = tracejit.linalg.lu(tracejit.tensor([[0.0, 2.0], [3.0, 1.0]]))
    >>> (P @ L @ U).tolist()
    [[0.0, 2.0], [3.0, 1.0]]
    """
    LU, pivots, _ = _factored("linalg.lu", A, pivot)
    return lu_unpack(LU, pivots)


@autocasts(cpu="float32")
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """Solve as `linalg.solve` with the result of `linalg.lu_factor` for A (*, n, n); for A.mH where
    `adjoint`.

    B is (*, n, k), with `left` False (*, k, n); so is the solution.

    >>> import tracejit
    >>> LU, pivots = tracejit.linalg.lu_factor(tracejit.eye(2) * 2)
    >>> tracejit.linalg.lu_solve(LU, pivots, tracejit.ones(2, 1))
    tensor([[0.5000],
            [0.5000]])
    """
    check_sides("linalg.lu_solve", LU, B, left)
    must_have_kernel("linalg.lu_solve", LU, "lu_solve_cpu", analytic=True)
    must_agree("linalg.lu_solve", LU, B, ("LU", "B"))
    if not left:
        found = lu_solve(LU, pivots, conj(turned(B)), adjoint=not adjoint)
        return conj(turned(found))
    P = permutation_record(pivots, rows=LU.shape[-1], dtype=LU.dtype)
    if adjoint:
        LU = conj(LU)
        found = triangular_record(turned(LU), B, upper=False, unitriangular=False)
        found = triangular_record(turned(LU), found, upper=True, unitriangular=True)
        return matmul(P, found)
    found = triangular_record(LU, matmul(turned(P), B), upper=False, unitriangular=True)
    return triangular_record(LU, found, upper=True, unitriangular=False)


@method("lu_solve")
def old_lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """Call `linalg.lu_solve`: b is (*, n, k), LU (*, n, n).

    >>> import tracejit
    >>> LU, pivots = tracejit.lu(tracejit.eye(2) * 2)
    >>> tracejit.lu_solve(tracejit.ones(2, 1), LU, pivots)
    tensor([[0.5000],
            [0.5000]])
    """
    return lu_solve(LU_data, LU_pivots, input)


@method("lu")
def old_lu(input: Any, pivot: bool = True, get_infos: bool = False) -> tuple:
    """Factor matrices (*, m, n) as `linalg.lu_factor`, but singular ones too; with `get_infos` as
    `linalg.lu_factor_ex`.

    >>> import tracejit
    >>> LU, pivots = tracejit.lu(tracejit.eye(2) * 2)
    >>> LU, pivots
    (tensor([[2., 0.],
            [0., 2.]]), tensor([1, 2], dtype=tracejit.int32))
    """
    found = lu_factor_ex(input, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])
