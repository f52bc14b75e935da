"""Embedding: rows of a weight by index.

In: integer tensors. Out: tensors with one dimension more.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class Embedding(Module):
    """Rows of `weight`, (num_embeddings, embedding_dim), by index.

    padding_idx  this row starts at zero and gets no gradient

    >>> import tracejit
    >>> tracejit.nn.Embedding(10, 4)(tracejit.tensor([[1, 2, 3]])).shape
    tracejit.Size([1, 3, 4])

    Raises ValueError where padding_idx is out of range.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        _weight: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = Parameter(tracejit.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ValueError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Standard normal; the padding row zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tracejit.no_grad():
                self.weight.select(0, self.padding_idx).fill_(0)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """An Embedding over a given matrix, not trained unless `freeze=False`."""
        if embeddings.dim() != 2:
            raise ValueError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        made = cls(rows, width, padding_idx=padding_idx, _weight=embeddings)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
