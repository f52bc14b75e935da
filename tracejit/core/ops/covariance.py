"""Covariances and correlations of variables, the rows of a matrix, over their observations.

In: a matrix or a vector, and weights of the observations. Out: a matrix; of one variable a 0-dim
tensor. Written in sums and products. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import complex_record
from tracejit.core.ops.pointwise_logic import clamp, clamp_min
from tracejit.core.ops.pointwise_math import sqrt
from tracejit.core.ops.pointwise_record import convert, elementwise_type, is_tensor
from tracejit.core.ops.record import Op
from tracejit.core.ops.reduction import sum
from tracejit.core.ops.types import COMPLEX, FLOATING, SCALAR_NAMES, bool_, get_default_dtype


def _checked_weights(xp: Any, weights: Any, name: str) -> Any:
    if (weights < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")
    if name == "fweights" and not weights.any():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    return weights.copy()


weights_record: Op = Op(
    "cov_weights", "extern", ("weights",), eager=_checked_weights, may_fail=True,
    infer=lambda weights, name: elementwise_type(None)(weights),
    rules={"weights": lambda grad: grad},
)  # fmt: skip


def _weights(given: Any, name: str, kind: str, observations: Any) -> Any:
    if given is None:
        return None
    if len(given.shape) > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got "
                           f"{name} with {len(given.shape)} dimensions")
    if (given.dtype.category < FLOATING) != (kind == "integral") or given.dtype is bool_:
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with "
                           f"{SCALAR_NAMES[given.dtype.name]} dtype")
    count = shapes.numel(given.shape)
    if not shapes.equal(count, observations):
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are "
                           f"observations in the input but got {shapes.hint(count)} != "
                           f"{shapes.hint(observations)}")
    return weights_record(given, name=name).reshape((-1,))


@method()
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariances of the rows of `input` (variables) over its columns (observations).

    correction  subtracted from the number of observations
    fweights    how often each observation occurs, integers; aweights: how much it counts

    >>> import tracejit
    >>> tracejit.cov(tracejit.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])

    RuntimeError for more than two dimensions, and for weights that do not fit.
    """
    if len(input.shape) > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input "
                           f"with {len(input.shape)} dimensions")
    if input.dtype is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input if len(input.shape) == 2 else input.reshape((1, -1))
    observations = rows.shape[1]
    often = _weights(fweights, "fweights", "integral", observations)
    much = _weights(aweights, "aweights", "floating point", observations)
    x = rows if rows.dtype.category >= FLOATING else convert(rows, get_default_dtype())
    weights = much if often is None else often if much is None else often * much
    total = observations if weights is None else sum(weights)
    apart = x - (sum(x, 1, True) if weights is None else sum(x * weights, 1, True)) / total
    freedom = total - correction
    if much is not None and correction != 0:
        freedom = total - correction * sum(weights * much) / total
    if is_tensor(freedom):
        freedom = clamp_min(freedom, 0)
    elif freedom < 0:
        freedom = 0
    weighed = apart if weights is None else apart * weights
    result = matmul(weighed, apart.t().conj()) / freedom
    single = len(input.shape) < 2 or shapes.equal(input.shape[0], 1)
    return result.reshape(()) if single else result


@method()
def corrcoef(input: Any) -> Any:
    """Return the correlations (n, n) of the rows of `input` (n, m): n variables, m observations
    each. A vector gives a 0-dim 1.

    RuntimeError for more than two dimensions.

    >>> import tracejit
    >>> tracejit.corrcoef(tracejit.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if len(input.shape) > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {len(input.shape)} dimensions")
    c = cov(input)
    if not c.shape:
        return c / c
    deviation = sqrt(c.diagonal())
    scaled = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if scaled.dtype.category == COMPLEX:
        return complex_record(clamp(scaled.real, -1, 1), clamp(scaled.imag, -1, 1))
    return clamp(scaled, -1, 1)
