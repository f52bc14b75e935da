"""Eigenvalues and eigenvectors of matrices of any kind: complex numbers.

In: matrices (..., n, n), real or complex, of single or double precision. Out: complex values (...,
n), and vectors as the columns of (..., n, n). Called by users as `linalg.eig` and `linalg.eigvals`.
Programs call LAPACK.

Derivatives: M. Giles, "Collected matrix derivative results" (2008), section 2.3.4; of vectors of
length 1: C. Boeddeker et al., "On the computation of complex-valued gradients" (2017), equation
4.77. Where values are equal their vectors have no derivative. A vector may be turned by any angle:
a loss must not depend on that.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tracejit.core.ops.creation import eye_of
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.linalg_checks import must_be_square, title
from tracejit.core.ops.linalg_solvers import solve_record
from tracejit.core.ops.pointwise_complex import adjoint, conj, real
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import FLOATING, TensorType, bool_

EigResult = namedtuple("linalg_eig", ["eigenvalues", "eigenvectors"])  # type: ignore[name-match]


def _types(input: Any) -> tuple[TensorType, TensorType]:
    kind, shape = input.dtype.to_complex(), tuple(input.shape)
    return TensorType(kind, shape[:-1], input.device), TensorType(kind, shape, input.device)


def _array(xp: Any, a: Any) -> tuple[Any, Any]:
    if not xp.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return np.linalg.eig(a if xp is np else xp.asnumpy(a))


def _rule(grad_values: Any, grad_vectors: Any, values: Any, vectors: Any) -> Any:
    n = values.shape[-1]
    diagonal = eye_of(values, n, n, bool_)
    back = adjoint(vectors)
    along = matmul(back, grad_vectors)
    lengths = real(along).diagonal(0, -2, -1)  # all vectors have length 1
    across = along - matmul(back, vectors * convert(lengths, vectors.dtype).unsqueeze(-2))
    gaps = conj(values.unsqueeze(-2) - values.unsqueeze(-1))
    core = where(diagonal, grad_values.unsqueeze(-2), across / where(diagonal, 1, gaps))
    return solve_record(back, matmul(core, back), check="")[0]


eig_record = Op(
    "linalg_eig", "extern", ("input",), outputs=("values", "vectors"), infer=_types, eager=_array,
    rules={"input": _rule}, adjoint=True, may_fail=True,
)  # fmt: skip


def _found(name: str, A: Any) -> tuple[Any, Any]:
    must_be_square(name, A)
    if A.dtype.category == FLOATING and A.dtype.itemsize == 2:
        raise NotImplementedError(f"\"linalg_eig_out_cpu\" not implemented for '{title(A)}'")
    A.dtype.to_complex()  # raises the error for integers
    return eig_record(A)


def eig(A: Any) -> Any:
    """Return (eigenvalues, eigenvectors) of square matrices; complex, in no order.

    >>> import tracejit
    >>> turn = tracejit.tensor([[0.0, -1.0], [1.0, 0.0]])
    >>> tracejit.linalg.eig(turn).eigenvalues
    tensor([0.+1.j, 0.-1.j])

    RuntimeError for integers, other shapes, and where there are infinities or nan.
    """
    return EigResult(*_found("linalg.eig", A))


def eigvals(A: Any) -> Any:
    """Return the eigenvalues of square matrices; complex, in no order.

    >>> import tracejit
    >>> tracejit.linalg.eigvals(tracejit.tensor([[2.0, 1.0], [0.0, 3.0]])).real
    tensor([2., 3.])
    """
    return _found("linalg.eigvals", A)[0]
