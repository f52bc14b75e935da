"""Powers, exponentials and long products of matrices.

In: square matrices (..., n, n); lists of matrices. Out: matrices. Called by users as
`linalg.matrix_power`, `linalg.matrix_exp`, `linalg.multi_dot`, `chain_matmul`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import eye_of, zeros_of
from tracejit.core.ops.joining import cat
from tracejit.core.ops.linalg import dot, matmul
from tracejit.core.ops.linalg_checks import must_be_square, title
from tracejit.core.ops.linalg_solvers import inv, turned
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, equal, shape_text
from tracejit.core.ops.types import CPP_NAMES, FLOATING, TensorType


# -- powers ----------------------------------------------------------------------------------------
@method()
def matrix_power(A: Any, n: int) -> Any:
    """Multiply A by itself `n` times; its inverse where `n` is negative.

    >>> import tracejit
    >>> tracejit.linalg.matrix_power(tracejit.tensor([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]

    RuntimeError unless A is square, LinAlgError for the inverse of a singular one.
    """
    must_be_square("linalg.matrix_power", A)
    exponent = as_size(n)
    if exponent == 0:
        one = eye_of(A, A.shape[-1], A.shape[-1], A.dtype)
        return where(one == one, one, A)  # the identity, with a gradient of 0 to A
    power = inv(A) if exponent < 0 else A
    left, result = abs(exponent), None
    while True:
        if left % 2:
            result = power if result is None else matmul(result, power)
        left //= 2
        if not left:
            return result.clone() if abs(exponent) == 1 and result is A else result
        power = matmul(power, power)


# -- exponential -----------------------------------------------------------------------------------
_LARGEST = 5.371920351148152  # Higham's theta_13


@lru_cache(maxsize=1)
def _coefficients() -> list[float]:
    """Return those of the numerator of the [13/13] Pade approximant of exp, from the constant
    up."""
    found = [1.0]
    for k in range(13):
        found.append(found[-1] * (13 - k) / ((26 - k) * (k + 1)))
    return found


def _exponential(xp: Any, a: Any) -> Any:
    """Compute the exponential by scaling and squaring.

    Source: N. Higham, "The scaling and squaring method for the matrix exponential revisited"
    (2005).
    """
    if not a.size:
        return a.copy()
    x = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    norms = abs(x).sum(-2).max(-1)
    known = xp.isfinite(norms) & (norms > _LARGEST)
    halvings = xp.where(known, xp.ceil(xp.log2(xp.where(known, norms, 1) / _LARGEST)), 0)
    x = x / (2.0**halvings)[..., None, None]
    b, one, square = _coefficients(), xp.eye(a.shape[-1]), x @ x
    even, odd, power = b[0] * one, b[1] * one, one
    for k in range(2, 14, 2):
        power = power @ square
        even = even + b[k] * power
        odd = odd + b[k + 1] * power
    odd = x @ odd
    result = xp.linalg.solve(even - odd, even + odd)
    for k in range(int(halvings.max())):
        result = xp.where((k < halvings)[..., None, None], result @ result, result)
    return result.astype(a.dtype)


def _exponential_rule(grad: Any, input: Any) -> Any:
    """Read the derivative off the exponential of a block matrix, where it stands beside the
    diagonal.

    Source: N. Higham, "Functions of matrices" (2008), equation (3.16).
    """
    n, At = input.shape[-1], turned(input)
    zeros = zeros_of(grad, TensorType(grad.dtype, tuple(input.shape), input.device))
    blocks = cat((cat((At, grad), -1), cat((zeros, At), -1)), -2)
    return matrix_exp_record(blocks).narrow(-2, 0, n).narrow(-1, n, n)


matrix_exp_record: Op = Op(
    "linalg_matrix_exp", "extern", ("input",), eager=_exponential,
    infer=lambda input: TensorType(input.dtype, tuple(input.shape), input.device),
    rules={"input": _exponential_rule},
)  # fmt: skip


@method()
def matrix_exp(A: Any) -> Any:
    """Return the exponential of square matrices, 1 + A + A @ A / 2 + ..., computed in double
    precision.

    >>> import tracejit
    >>> tracejit.linalg.matrix_exp(tracejit.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]

    RuntimeError unless A is square, and floating or complex.
    """
    must_be_square("linalg.matrix_exp", A)
    if A.dtype.category < FLOATING:
        raise RuntimeError(
            "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got "
            f"{title(A)}"
        )
    return matrix_exp_record(A)


# -- long products ---------------------------------------------------------------------------------


def _check_chain(tensors: Sequence[Any]) -> None:
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    for x, which in ((first, "first"), (last, "last")):
        if len(x.shape) not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {which} tensor must be 1D or 2D but got {len(x.shape)}D"
            )
    for k, x in enumerate(tensors):
        if 0 < k < len(tensors) - 1 and len(x.shape) != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {len(x.shape)}D")
        if x.dtype is not first.dtype:
            names = [CPP_NAMES[y.dtype.name] for y in (first, x)]
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{names[0]} and tensor {k} {names[1]}"
            )
    for k, (x, y) in enumerate(zip(tensors, tensors[1:])):
        if not equal(x.shape[-1], y.shape[0]):
            raise RuntimeError(
                f"multi_dot(): tensors {k} and {k + 1} with shapes {shape_text(x.shape)} and "
                f"{shape_text(y.shape)} cannot be multiplied"
            )


def _cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split the product of matrices i to j, for the fewest multiplications."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            found = [
                costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            costs[i, j] = min(found)
            splits[i, j] = i + found.index(costs[i, j])
    return splits


def _chained(matrices: Sequence[Any]) -> Any:
    if len(matrices) == 2:
        return matmul(*matrices)
    # The order decides how sums are rounded, so known sizes choose it, as in eager mode.
    splits = _cheapest([as_size(matrices[0].shape[0]), *(as_size(x.shape[1]) for x in matrices)])

    def part(i: int, j: int) -> Any:
        if i == j:
            return matrices[i]
        return matmul(part(i, splits[i, j]), part(splits[i, j] + 1, j))

    return part(0, len(matrices) - 1)


@autocasts(cpu="lower", cuda="lower")
def multi_dot(tensors: Sequence[Any]) -> Any:
    """Multiply two or more matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors, as a row and as a column.

    >>> import tracejit
    >>> x = tracejit.ones(2, 2)
    >>> tracejit.linalg.multi_dot([x, x, tracejit.ones(2)]).tolist()
    [4.0, 4.0]

    RuntimeError where shapes or dtypes do not fit.
    """
    _check_chain(tensors)
    first, *between, last = tensors
    if not between and len(first.shape) == len(last.shape) == 1:
        return dot(first, last)
    row, column = len(first.shape) == 1, len(last.shape) == 1
    first = first.unsqueeze(0) if row else first
    last = last.unsqueeze(-1) if column else last
    result = _chained([first, *between, last])
    result = result.squeeze(-1) if column else result
    return result.squeeze(0) if row else result


@autocasts(cpu="lower", cuda="lower")
def chain_matmul(*matrices: Any) -> Any:
    """Call `linalg.multi_dot` with the arguments, which are matrices; one alone is returned.

    RuntimeError for no matrices and for other dimensions.

    >>> import tracejit
    >>> tracejit.chain_matmul(tracejit.ones(2, 3), tracejit.ones(3, 4), tracejit.ones(4, 1)).shape
    tracejit.Size([2, 1])
    """
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in matrices:
        if len(x.shape) != 2:
            raise RuntimeError(f"Tensor dimension is {len(x.shape)}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)
