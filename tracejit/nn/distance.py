"""Distances between vectors, as layers.

In: two tensors that broadcast. Out: tensors with one dimension less.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class CosineSimilarity(Module):
    """Cosine of the angle between vectors: x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)).

    dim  dimension that holds the vectors; default 1
    eps  least length that divides; a number, default 1e-8

    Inputs of the same shape (*, d, *), or of shapes that broadcast; output (*, *), without `dim`,
    in [-1, 1]. Raises IndexError for a dimension that the inputs lack.

    >>> import tracejit
    >>> tracejit.nn.CosineSimilarity(0)(tracejit.tensor([1.0, 0.0]), tracejit.tensor([2.0, 0.0]))
    tensor(1.)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Norm of the difference of vectors in the last dimension: (sum |x1 - x2 + eps|^p)^(1/p).

    p        order of the norm; a number, default 2
    eps      number added to each difference; default 1e-6
    keepdim  True: the last dimension stays, with size 1; default False

    Inputs (N, d) or (d,), which broadcast; output (N,) or (), with `keepdim` (N, 1) or (1,). Raises
    RuntimeError for shapes that do not broadcast.

    >>> import tracejit
    >>> tracejit.nn.PairwiseDistance()(tracejit.tensor([[0.0, 0.0]]), tracejit.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
