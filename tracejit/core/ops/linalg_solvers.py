"""Systems of linear equations and inverses.

In: square matrices A (..., n, n), right-hand sides (..., n, k), real or complex, of single or
double precision. Out: solutions; leading dimensions broadcast. Called by users as `linalg.solve`,
`linalg.inv` ..., by gradient rules. Programs call LAPACK.

All rules are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), sections 2.2.3 and 2.3.1.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops import linalg_arrays, shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import (
    by,
    must_agree,
    must_be_float,
    must_be_matrix,
    must_be_square,
    must_have_kernel,
    raise_first,
)
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import device_of, must_be_tensors
from tracejit.core.ops.rearranging import tril, triu
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType, int32

InvResult = namedtuple("linalg_inv_ex", ["inverse", "info"])  # type: ignore[name-match]
SolveResult = namedtuple("linalg_solve_ex", ["result", "info"])  # type: ignore[name-match]
TriangularResult = namedtuple(  # type: ignore[name-match]
    "triangular_solve", ["solution", "cloned_coefficient"]
)


def turned(x: Any) -> Any:
    """Exchange rows and columns of matrices."""
    return x.transpose(-2, -1)


# -- inverses --------------------------------------------------------------------------------------
NO_INVERSE = (
    "The diagonal element {} is zero, the inversion could not be completed because the input matrix"
    " is singular."
)


def _inv_types(input: Any, check: str) -> tuple[TensorType, TensorType]:
    shape = tuple(input.shape)
    return (TensorType(input.dtype, shape, input.device),
            TensorType(int32, shape[:-2], input.device))  # fmt: skip


def _inv_array(xp: Any, a: Any, check: str) -> tuple[Any, Any]:
    if xp is np:
        try:
            return np.linalg.inv(a), np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    factors, pivots, info = linalg_arrays.lu(xp, a)
    if check:
        raise_first(check, info, NO_INVERSE)
    one = xp.eye(a.shape[-1], dtype=a.dtype)
    return linalg_arrays.solve_by_factors(xp, factors, pivots, one), info


def _inv_rule(grad: Any, inverse: Any) -> Any:
    return -matmul(turned(inverse), matmul(grad, turned(inverse)))


inv_record = Op(
    "linalg_inv_ex", "extern", ("input",), outputs=("inverse", "info"), infer=_inv_types,
    eager=_inv_array, rules={"input": _inv_rule}, may_fail=True,
)  # fmt: skip


def _check_square(name: str, A: Any, half: str | None = None) -> None:
    must_be_square(name, A)
    must_be_float(name, A, half, analytic=True)


@autocasts(cpu="float32")
def inv(A: Any) -> Any:
    """Invert square matrices (..., n, n).

    >>> import tracejit
    >>> tracejit.linalg.inv(tracejit.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]

    LinAlgError for a singular matrix, RuntimeError for other shapes, integers and halves.
    """
    _check_square("linalg.inv", A)
    return inv_record(A, check="linalg.inv")[0]


@autocasts(cpu="float32")
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """Return (inverse, info) of matrices (*, n, n).

    `info` (*) of int32 is 0, or the number of the first pivot that is 0; `check_errors` raises
    LinAlgError there.

    >>> import tracejit
    >>> tracejit.linalg.inv_ex(tracejit.eye(2) * 2)
    tracejit.return_types.linalg_inv_ex(
    inverse=tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]]),
    info=tensor(0, dtype=tracejit.int32))
    """
    _check_square("linalg.inv", A)
    return InvResult(*inv_record(A, check="linalg.inv_ex" if check_errors else ""))


@method()
@autocasts(cpu="float32")
def inverse(input: Any) -> Any:
    """Call `linalg.inv`: inverses of matrices (*, n, n). LinAlgError where one has none.

    >>> import tracejit
    >>> tracejit.inverse(tracejit.eye(2) * 2)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    return inv(input)


# -- solve -----------------------------------------------------------------------------------------
_NO_SOLUTION = "The solver failed because the input matrix is singular."


def product_batch(A: Any, B: Any) -> tuple:
    """Return the leading dimensions of two stacks of matrices that broadcast."""
    return shapes.broadcast(tuple(A.shape[:-2]), tuple(B.shape[:-2]))


def solution_type(A: Any, B: Any, **attributes: Any) -> TensorType:
    """Return the type of the X of A @ X = B."""
    shape = (*product_batch(B, A), A.shape[-1], B.shape[-1])
    return TensorType(B.dtype, shape, device_of((A, B)))


def _solve_types(A: Any, B: Any, check: str) -> tuple[TensorType, TensorType]:
    kind = solution_type(A, B)
    return kind, TensorType(int32, tuple(A.shape[:-2]), kind.device)


def _solve_array(xp: Any, a: Any, b: Any, check: str) -> tuple[Any, Any]:
    if xp is np:
        try:
            return np.linalg.solve(a, b), np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    factors, pivots, info = linalg_arrays.lu(xp, a)
    if check:
        raise_first(check, info, _NO_SOLUTION)
    return linalg_arrays.solve_by_factors(xp, factors, pivots, b), info


def _backward_solution(grad: Any, A: Any) -> Any:
    return solve_record(turned(A), grad, check="")[0]


solve_record = Op(
    "linalg_solve_ex", "extern", ("A", "B"), outputs=("result", "info"), infer=_solve_types,
    eager=_solve_array, may_fail=True,
    rules={
        "A": lambda grad, A, result: -matmul(_backward_solution(grad, A), turned(result)),
        "B": _backward_solution,
    },
)  # fmt: skip


def is_vector(A: Any, B: Any) -> bool:
    """Return True if B counts as a (stack of) vector(s) beside the matrices A."""
    return len(B.shape) == 1 or (
        len(A.shape) - 1 == len(B.shape) and shapes.same_shape(tuple(A.shape[:-1]), tuple(B.shape))
    )


def check_sides(name: str, A: Any, B: Any, left: bool) -> None:
    """Raise RuntimeError where matrices cannot stand in AX = B, or XA = B."""
    must_be_matrix(name, B, "B")
    must_be_square(name, A)
    if not shapes.equal(A.shape[-2], B.shape[-2 if left else -1]):
        sides = [by(x.shape[-2], x.shape[-1], "x") for x in (A, B)]
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX' if left else 'XA'} = B ({sides[0]} and {sides[1]})"
        )


def _solved(name: str, A: Any, B: Any, left: bool, check: str) -> tuple[Any, Any]:
    must_be_matrix(name, A)
    must_be_float(name, A, "lu_cpu", analytic=True)
    must_agree(name, A, B)
    vector = is_vector(A, B)
    B = B.unsqueeze(-1) if vector else B
    check_sides(name, A, B, left)
    if left:
        result, info = solve_record(A, B, check=check)
    else:
        result, info = solve_record(turned(A), turned(B), check=check)
        result = turned(result)
    return (result.squeeze(-1) if vector else result), info


@autocasts(cpu="float32")
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """Solve A @ X = B, or X @ A = B where `left` is False.

    A (..., n, n); B (..., n, k), or (..., n) for vectors; both of one dtype.

    >>> import tracejit
    >>> tracejit.linalg.solve(tracejit.tensor([[2.0, 0.0], [0.0, 4.0]]), tracejit.ones(2)).tolist()
    [0.5, 0.25]

    LinAlgError for a singular matrix, RuntimeError where shapes or dtypes do not fit.
    """
    return _solved("linalg.solve", A, B, bool(left), "torch.linalg.solve")[0]


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return (result, info), see `solve`.

    `info` (*) of int32 is 0, or the number of the first pivot of A that is 0; `check_errors` raises
    LinAlgError there.

    >>> import tracejit
    >>> tracejit.linalg.solve_ex(tracejit.eye(2) * 2, tracejit.ones(2)).result
    tensor([0.5000, 0.5000])
    """
    check = "torch.linalg.solve_ex" if check_errors else ""
    return SolveResult(*_solved("linalg.solve", A, B, bool(left), check))


# -- triangles -------------------------------------------------------------------------------------
def _triangle_rule(grad: Any, A: Any, out: Any, upper: bool, unitriangular: bool) -> Any:
    whole = -matmul(_triangle_backward(grad, A, upper, unitriangular), turned(out))
    return triu(whole, int(unitriangular)) if upper else tril(whole, -int(unitriangular))


def _triangle_backward(grad: Any, A: Any, upper: bool, unitriangular: bool) -> Any:
    return triangular_record(turned(A), grad, upper=not upper, unitriangular=unitriangular)


triangular_record = Op(
    "linalg_solve_triangular", "extern", ("A", "B"), infer=solution_type,
    eager=lambda xp, a, b, upper, unitriangular: linalg_arrays.solve_triangular(
        xp, a, b, upper, unitriangular
    ),
    rules={"A": _triangle_rule, "B": _triangle_backward},
)  # fmt: skip


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Any:  # fmt: skip
    """Solve as `solve` for triangular A; only one triangle is read; inf or nan for a singular one.

    unitriangular  the diagonal counts as ones and is not read

    >>> import tracejit
    >>> A = tracejit.tensor([[1.0, 9.0], [2.0, 1.0]])
    >>> tracejit.linalg.solve_triangular(A, tracejit.ones(2, 1), upper=False).tolist()
    [[1.0], [-1.0]]

    RuntimeError where shapes or dtypes do not fit.
    """
    name = "linalg.solve_triangular"
    check_sides(name, A, B, left)
    must_have_kernel(name, A, "triangular_solve_cpu", analytic=True)
    must_agree(name, A, B)
    unit = bool(unitriangular)
    if left:
        return triangular_record(A, B, upper=bool(upper), unitriangular=unit)
    found = triangular_record(turned(A), turned(B), upper=not upper, unitriangular=unit)
    return turned(found)


@method()
@autocasts(cpu="float32")
def triangular_solve(input: Any, A: Any, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Any:  # fmt: skip
    """Return (solution of A @ X = input, A); of A.T @ X = input where `transpose`.

    A (*, n, n) is triangular, upper unless told; input and solution are (*, n, k). RuntimeError
    where sizes do not fit.

    >>> import tracejit
    >>> tracejit.triangular_solve(tracejit.ones(2, 1), tracejit.eye(2) * 2).solution
    tensor([[0.5000],
            [0.5000]])
    """
    must_be_tensors("triangular_solve", ("A",), (A,))
    for x, what in ((input, "b"), (A, "A")):
        if len(x.shape) < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it "
                f"has {len(x.shape)} dimensions instead"
            )
    found = solve_triangular(turned(A) if transpose else A, input,
                             upper=upper is not transpose, unitriangular=unitriangular)  # fmt: skip
    return TriangularResult(found, A.expand((*found.shape[:-2], *A.shape[-2:])).clone())
