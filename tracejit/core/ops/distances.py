"""Distances between vectors, by angle or by norm.

In: two tensors that broadcast, a dimension. Out: tensors without it. Called by users as
`nn.functional.cosine_similarity`, `pairwise_distance`, `cdist`, `pdist`, `dist`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.diagonals import triu_indices
from tracejit.core.ops.numpy_names import numpy_names
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import broadcast, equal, hint, same
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES, promote_types


@numpy_names
@autocasts(cuda="float32")
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosine of the angle between vectors along `dim` of two floating tensors that
    broadcast.

    eps  lower bound of the norms

    >>> import tracejit
    >>> x = tracejit.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> tracejit.nn.functional.cosine_similarity(x, tracejit.tensor([[0.0, 2.0]]))
    tensor([0.0000, 0.7071])

    RuntimeError for integers, and where shapes do not broadcast.
    """
    common = promote_types(x1.dtype, x2.dtype)  # both count, whatever their dimensions
    if common.category != FLOATING:
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{SCALAR_NAMES[common.name]}")
    shape = broadcast(x1.shape, x2.shape)
    x1, x2 = (convert(x, common).expand(shape) for x in (x1, x2))
    unit = [x / _at_least(x.norm(2, dim, True), eps) for x in (x1, x2)]
    return (unit[0] * unit[1]).sum(dim)


def _differing(away: Any) -> Any:
    """Count the elements of rows that are not 0; unlike that of a norm, the gradient is zeros."""
    return away.sign().abs().sum(-1)


def _at_least(norm: Any, eps: float) -> Any:
    """Return `norm`, at least `eps`; gradients go back as if it had not been limited, as in
    PyTorch."""
    return norm + (eps - norm).clamp(min=0).detach()  # an infinite norm stays: x / inf is 0


@numpy_names
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Any:  # fmt: skip
    """Return the p-norm of x1 - x2 + eps along the last dimension of two tensors that broadcast.

    >>> import tracejit
    >>> x, y = tracejit.tensor([[0.0, 0.0]]), tracejit.tensor([[3.0, 4.0]])
    >>> tracejit.nn.functional.pairwise_distance(x, y)
    tensor([5.0000])

    RuntimeError where shapes do not broadcast.
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@method()
@autocasts(cuda="float32")
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Return the p-norm of input - other, which broadcast.

    >>> import tracejit
    >>> tracejit.dist(tracejit.tensor([0.0, 0.0]), tracejit.tensor([3.0, 4.0])).item()
    5.0
    """
    away = input - other
    if away.dtype.category < FLOATING:
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{SCALAR_NAMES[away.dtype.name]} instead.")
    return away.norm(p)


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
          "donot_use_mm_for_euclid_dist")  # fmt: skip


@autocasts(cpu="float32", cuda="float32")
def cdist(x1: Any, x2: Any, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:  # fmt: skip
    """Return (..., n, m): p-norms of the differences of all rows of `x1` (..., n, k) and `x2` (...,
    m, k).

    Rows are subtracted whatever `compute_mode` says: products would lose digits where rows are near
    each other.

    >>> import tracejit
    >>> x = tracejit.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> tracejit.cdist(x, x).tolist()
    [[0.0, 5.0], [5.0, 0.0]]

    RuntimeError for vectors, integers, negative p, and where sizes or dtypes do not fit.
    """
    for x, name in ((x1, "X1"), (x2, "X2")):
        if x.dtype.category != FLOATING:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{SCALAR_NAMES[x.dtype.name]}")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if len(x.shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: "
                               f"{len(x.shape)}D")
    n, m = hint(x1.shape[-1]), hint(x2.shape[-1])
    same(x1.shape[-1], x2.shape[-1],
         f"X1 and X2 must have the same number of columns. X1: {n} X2: {m}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_NAMES[x1.dtype.name]} but found "
                           f"{SCALAR_NAMES[x2.dtype.name]}")
    if x1.dtype.itemsize == 2:
        raise NotImplementedError(f"\"cdist\" not implemented for '{SCALAR_NAMES[x1.dtype.name]}'")
    broadcast(x1.shape[:-2], x2.shape[:-2])
    away = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if equal(x1.shape[-1], 0):
        return away.sum(-1)
    return _differing(away) if p == 0 else away.norm(float(p), -1)


def pdist(input: Any, p: float = 2.0) -> Any:
    """Return the p-norms of the differences of all pairs of rows of a matrix.

    They are those of `cdist` above the diagonal, row by row.

    >>> import tracejit
    >>> tracejit.pdist(tracejit.tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]

    RuntimeError for what is no floating point matrix and for negative p.
    """
    if len(input.shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(input.shape)}D")
    if input.dtype.category != FLOATING:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    one, other = triu_indices(input.shape[0], input.shape[0], 1, device=input.device).unbind()
    away = input[one] - input[other]
    return _differing(away) if p == 0 else away.norm(float(p), -1)
