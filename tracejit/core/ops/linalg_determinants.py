"""Determinants and their logarithms.

In: square matrices (..., n, n), real or complex, of single or double precision. Out: one number for
each. Called by users as `linalg.det`, `linalg.slogdet`, `logdet`. The gradient of a determinant is
the matrix of cofactors, which a singular matrix has too.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import must_be_float, must_be_square
from tracejit.core.ops.linalg_solvers import inv_record, turned
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import adjoint, complex, conj, imag
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import TensorType

SlogdetResult = namedtuple("slogdet", ["sign", "logabsdet"])  # type: ignore[name-match]


def _number_type(input: Any) -> TensorType:
    return TensorType(input.dtype, tuple(input.shape[:-2]), input.device)


def _same_type(input: Any) -> TensorType:
    return TensorType(input.dtype, tuple(input.shape), input.device)


def _each(x: Any) -> Any:
    """Return a number for each matrix as a stack of (1, 1)."""
    return x.unsqueeze(-1).unsqueeze(-1)


# -- cofactors -------------------------------------------------------------------------------------
def _cofactors(xp: Any, a: Any) -> Any:
    """Return det(A) A^-T.

    Where A is nearly singular it is det(U @ Vh) U diag(p) Vh. Each p is the product of all singular
    values but one.
    """
    if not a.size:
        return a.copy()
    inverse = _sure_inverse(xp, a)
    if inverse is not None:
        return xp.linalg.det(a)[..., None, None] * inverse.swapaxes(-2, -1)
    a, bad = _without_odd(xp, a)
    u, s, vh = xp.linalg.svd(a)
    n = s.shape[-1]
    others = xp.where(xp.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    turn = xp.linalg.det(u) * xp.linalg.det(vh)
    if a.dtype.kind != "c":
        turn = xp.rint(turn)  # determinants of orthogonal matrices are 1 or -1
    found = (u.conj() * (turn[..., None] * others)[..., None, :]) @ vh.conj()
    return xp.where(bad, np.nan, found).astype(a.dtype)


def _without_odd(xp: Any, a: Any) -> tuple[Any, Any]:
    """Replace matrices with inf or nan by zeros; return also which these are."""
    bad = ~xp.isfinite(a).all((-2, -1), keepdims=True)
    return xp.where(bad, 0, a).astype(a.dtype), bad


def _sure_inverse(xp: Any, a: Any) -> Any:
    """Return the inverse, or None where rounding may have lost half its digits."""
    try:
        inverse = xp.linalg.inv(a)
    except np.linalg.LinAlgError:
        return None
    condition = abs(a).sum(-1).max(-1) * abs(inverse).sum(-1).max(-1)
    return inverse if (condition**2 * xp.finfo(a.dtype).eps < 1).all() else None


def _regular_inverse(xp: Any, a: Any) -> Any:
    """Return the inverse; for a singular matrix that of a regular one as near as rounding
    allows."""
    if not a.size:
        return a.copy()
    a, bad = _without_odd(xp, a)
    u, s, vh = xp.linalg.svd(a)
    least = xp.finfo(a.dtype).eps * xp.maximum(s[..., :1], xp.finfo(a.dtype).tiny)
    s = xp.maximum(s, least)
    found = ((u / s[..., None, :]) @ vh).conj().swapaxes(-2, -1)
    return xp.where(bad, np.nan, found).astype(a.dtype)


regular_inverse_record = Op(
    "regular_inverse", "extern", ("input",), infer=_same_type, eager=_regular_inverse,
    rules={"input": lambda grad, out: -matmul(turned(out), matmul(grad, turned(out)))},
)  # fmt: skip


def _cofactors_rule(grad: Any, input: Any, out: Any) -> Any:
    """Differentiate det(A) A^-T, by d det(A) = <cofactors, dA> and d A^-1 = -A^-1 dA A^-1."""
    inverse = turned(regular_inverse_record(input))
    whole = _each((grad * out).sum((-2, -1))) * inverse
    return whole - matmul(matmul(out, turned(grad)), inverse)


cofactors_record = Op(
    "cofactors", "extern", ("input",), infer=_same_type, eager=_cofactors,
    rules={"input": _cofactors_rule},
)  # fmt: skip


# -- determinants ----------------------------------------------------------------------------------
det_record = Op(
    "linalg_det", "extern", ("input",), infer=_number_type,
    eager=lambda xp, a: xp.asarray(xp.linalg.det(a)),
    rules={"input": lambda grad, input: _each(grad) * cofactors_record(input)},
)  # fmt: skip

def _slogdet_array(xp: Any, a: Any) -> tuple[Any, Any]:
    sign, logarithm = map(xp.asarray, xp.linalg.slogdet(a))
    return xp.where(xp.isnan(logarithm), 0, sign).astype(a.dtype), logarithm



def _slogdet_types(input: Any) -> tuple[TensorType, TensorType]:
    sign = _number_type(input)
    kind = sign.dtype
    return sign, sign._replace(dtype=kind.to_real() if kind.is_complex else kind)


def _slogdet_rule(grad_sign: Any, grad_logabsdet: Any, sign: Any, input: Any) -> Any:
    grad = grad_logabsdet
    if input.is_complex():  # a complex sign has a gradient, too
        turn = imag(conj(grad_sign) * sign)
        grad = complex(grad, -turn)
    return _each(grad) * adjoint(inv_record(input, check="")[0])


slogdet_record = Op(
    "linalg_slogdet", "extern", ("input",), outputs=("sign", "logabsdet"),
    infer=_slogdet_types,
    eager=_slogdet_array, rules={"input": _slogdet_rule}, adjoint=True,
)  # fmt: skip


@method()
def det(A: Any) -> Any:
    """Return the determinants of square matrices (..., n, n), with a gradient for singular ones
    too.

    >>> import tracejit
    >>> tracejit.linalg.det(tracejit.tensor([[2.0, 1.0], [1.0, 2.0]])).item()
    3.0

    RuntimeError for other shapes, integers and halves.
    """
    must_be_square("linalg.det", A)
    must_be_float("linalg.det", A, "lu_cpu", analytic=True)
    return det_record(A)


def _slogdet(name: str, A: Any) -> tuple[Any, Any]:
    must_be_square(name, A)
    must_be_float(name, A, analytic=True)
    return slogdet_record(A)


@method()
def slogdet(A: Any) -> Any:
    """Return (sign, logarithm of the absolute value) of determinants; (0, -inf) of singular
    matrices.

    >>> import tracejit
    >>> tracejit.linalg.slogdet(-tracejit.eye(3)).sign.item()
    -1.0
    """
    return SlogdetResult(*_slogdet("linalg.slogdet", A))


@method()
def logdet(input: Any) -> Any:
    """Return the logarithms (*) of determinants of matrices (*, n, n); nan where real ones are
    negative.

    >>> import tracejit
    >>> tracejit.logdet(tracejit.eye(2) * 2)
    tensor(1.3863)
    """
    sign, logabsdet = _slogdet("logdet", input)
    if input.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1, math.nan, logabsdet)
