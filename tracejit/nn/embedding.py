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

    padding_idx         this row starts at zero and gets no gradient
    max_norm            rows that are read and longer are shortened to this, in place
    norm_type           which norm that is
    scale_grad_by_freq  a row's gradient is divided by how often a batch read it
    sparse              True only where no call is made: NotImplementedError then

    >>> import tracejit
    >>> tracejit.nn.Embedding(10, 4)(tracejit.tensor([[1, 2, 3]])).shape
    tracejit.Size([1, 3, 4])

    Raises AssertionError where padding_idx is out of range, or `_weight` of another shape.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            assert -num_embeddings <= padding_idx < num_embeddings, (
                "Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            made = tracejit.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(made, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            assert tuple(_weight.shape) == shape, (
                "Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Standard normal; the padding row zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tracejit.no_grad():
                self.weight.select(0, self.padding_idx).fill_(0)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding over a given matrix, not trained unless `freeze=False`."""
        assert embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional"
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)

    def forward(self, input: Any) -> Any:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        shown = [f"{self.num_embeddings}", f"{self.embedding_dim}"]
        for name, plain in (("padding_idx", None), ("max_norm", None), ("norm_type", 2.0),
                            ("scale_grad_by_freq", False), ("sparse", False)):
            value = getattr(self, name)
            if value != plain:
                shown.append(f"{name}={value}")
        return ", ".join(shown)
