"""How far vectors are from each other, by angle or by norm.

In: two tensors that broadcast, a dimension. Out: tensors without it. Called by users as
`nn.functional.cosine_similarity` and `pairwise_distance`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.ops.pointwise_record import convert
from tracejit.ops.shapes import broadcast
from tracejit.ops.types import FLOATING, SCALAR_NAMES, result_type


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along `dim` of two floating tensors that broadcast.

    eps  the least that norms count as

    >>> import tracejit
    >>> x = tracejit.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> tracejit.nn.functional.cosine_similarity(x, tracejit.tensor([[0.0, 2.0]]))
    tensor([0.0000, 0.7071])

    RuntimeError for integers, and where shapes do not broadcast.
    """
    common = result_type(x1, x2)
    if common.category < FLOATING:
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{SCALAR_NAMES[common.name]}")
    shape = broadcast(x1.shape, x2.shape)
    x1, x2 = (convert(x, common).expand(shape) for x in (x1, x2))
    unit = [x / _at_least(x.norm(2, dim, True), eps) for x in (x1, x2)]
    return (unit[0] * unit[1]).sum(dim)


def _at_least(norm: Any, eps: float) -> Any:
    """`norm`, at least `eps`; gradients go back as if it had not been limited, as in PyTorch."""
    return norm + (norm.clamp(min=eps) - norm).detach()


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Any:  # fmt: skip
    """The p-norm of x1 - x2 + eps along the last dimension of two tensors that broadcast.

    >>> import tracejit
    >>> x, y = tracejit.tensor([[0.0, 0.0]]), tracejit.tensor([[3.0, 4.0]])
    >>> tracejit.nn.functional.pairwise_distance(x, y)
    tensor([5.0000])

    RuntimeError where shapes do not broadcast.
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)
