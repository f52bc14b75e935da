"""Systems of linear equations with a given Cholesky factor.

In: triangular matrices L (..., n, n), right-hand sides (..., n, k), real or complex, of single or
double precision. Out: the solution of L @ L.mH @ X = B; leading dimensions broadcast. Called by
users as `cholesky_solve` and `cholesky_inverse`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import linalg_arrays, shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import (
    by,
    must_agree,
    must_be_square,
    must_have_kernel,
    raise_first,
)
from tracejit.core.ops.linalg_solvers import NO_INVERSE, product_batch
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import adjoint
from tracejit.core.ops.pointwise_record import device_of, must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType


def _solution_type(input: Any, L: Any, upper: bool) -> TensorType:
    shape = (*product_batch(L, input), *input.shape[-2:])
    return TensorType(input.dtype, shape, device_of((L, input)))


def _solved(xp: Any, b: Any, factor: Any, upper: bool) -> Any:
    turned = factor.swapaxes(-1, -2).conj()
    first, second = (turned, factor) if upper else (factor, turned)
    found = linalg_arrays.solve_triangular(xp, first, b, False, False)
    return linalg_arrays.solve_triangular(xp, second, found, True, False)


def _inverted(xp: Any, factor: Any, upper: bool) -> Any:
    singular = xp.diagonal(factor, axis1=-2, axis2=-1) == 0
    info = xp.where(singular.any(-1), singular.argmax(-1) + 1, 0) if singular.size else singular
    raise_first("cholesky_inverse", info, NO_INVERSE)
    one = xp.eye(factor.shape[-1], dtype=factor.dtype)
    return _solved(xp, one, factor, upper)


def _factor_rule(product: Any, L: Any, upper: bool) -> Any:
    """Return the gradient of L; `product` is that of -(L @ L.mH), and need not be symmetric.

    It covers the whole matrix, also the triangle that the solution does not read.
    """
    both = product + adjoint(product)
    return -matmul(L, both) if upper else -matmul(both, L)


def _solve_factor_rule(grad: Any, L: Any, out: Any, upper: bool) -> Any:
    back = cholesky_solve_record(grad, L, upper=upper)
    return _factor_rule(matmul(back, adjoint(out)), L, upper)


def _inverse_factor_rule(grad: Any, input: Any, out: Any, upper: bool) -> Any:
    return _factor_rule(matmul(out, matmul(grad, out)), input, upper)


def _solve_input_rule(grad: Any, L: Any, upper: bool) -> Any:
    return cholesky_solve_record(grad, L, upper=upper)


cholesky_solve_record = Op(
    "cholesky_solve", "extern", ("input", "L"), infer=_solution_type,
    eager=_solved, adjoint=True, rules={"input": _solve_input_rule, "L": _solve_factor_rule},
)  # fmt: skip
cholesky_inverse_record = Op(
    "cholesky_inverse", "extern", ("input",),
    infer=lambda input, upper: TensorType(input.dtype, tuple(input.shape), input.device),
    eager=_inverted, adjoint=True, rules={"input": _inverse_factor_rule}, may_fail=True,
)  # fmt: skip


@method()
@autocasts(cpu="float32")
def cholesky_solve(input: Any, L: Any, upper: bool = False) -> Any:
    """Solve L @ L.mH @ X = input, or L.mH @ L @ X = input where `upper`; (n, k) and (n, n).

    Only one triangle of L is read. The gradient uses all of L, as PyTorch's does. A triangle that
    is not zero, though it should be, takes part in it and has a gradient of its own.

    >>> import tracejit
    >>> tracejit.cholesky_solve(tracejit.ones(1, 1), tracejit.full((1, 1), 2.0)).item()
    0.25

    RuntimeError where shapes or dtypes do not fit.
    """
    must_be_tensors("cholesky_solve", ("input2",), (L,))
    for x, what in ((input, "b"), (L, "u")):
        if len(x.shape) < 2:
            raise RuntimeError(
                f"{what} should have at least 2 dimensions, but has {len(x.shape)} dimensions "
                "instead"
            )
    must_have_kernel("cholesky_solve", L, "cholesky_solve_cpu", analytic=True)
    must_agree("cholesky_solve", L, input, ("A", "b"))
    if not shapes.equal(L.shape[-1], input.shape[-2]):
        raise RuntimeError(
            "Incompatible matrix sizes for cholesky_solve: each A matrix is "
            f"{by(L.shape[-1], L.shape[-1])} but each b matrix is {by(*input.shape[-2:])}"
        )
    must_be_square("cholesky_solve", L)
    return cholesky_solve_record(input, L, upper=bool(upper))


@method()
@autocasts(cpu="float32")
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """Invert the symmetric matrix whose Cholesky factor (..., n, n) is given.

    >>> import tracejit
    >>> tracejit.cholesky_inverse(tracejit.tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]

    RuntimeError for other shapes and dtypes.
    """
    must_be_square("cholesky_inverse", input)
    must_have_kernel("cholesky_inverse", input, "cholesky_inverse_out_cpu", analytic=True)
    return cholesky_inverse_record(input, upper=bool(upper))
