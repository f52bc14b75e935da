"""Rows of a weight by index: Embedding, and sums, means and maxima of bags of them, EmbeddingBag.

In: integer tensors. Out: tensors with one dimension more, or one row for each bag.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class Embedding(Module):
    """Lookup table: rows of `weight` by index.

    num_embeddings, embedding_dim  number of rows, and their length
    padding_idx       this row starts at zero and gets no gradient; default None
    max_norm          rows that are read and longer are shortened to this, in place; default None
    norm_type         order of that norm; default 2
    scale_grad_by_freq  True: a row's gradient is divided by how often a batch read it
    sparse            True: the gradient of `weight` is sparse: it keeps the rows that were read
    device, dtype     of the parameter

    `weight` (num_embeddings, embedding_dim) is a parameter, drawn from N(0, 1). Input (*) of int32
    or int64; output (*, embedding_dim). Raises IndexError for an index out of range, AssertionError
    where padding_idx is out of range or `_weight` has another shape.

    >>> import tracejit
    >>> tracejit.nn.Embedding(10, 4)(tracejit.tensor([[1, 2, 3]])).shape
    tracejit.Size([1, 3, 4])
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
            # a negative one counts from the end
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
        """Fill with standard normal numbers, the padding row with zeros."""
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
        """Make an Embedding over a given matrix, not trained unless `freeze=False`."""
        assert embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional"
        count, size = embeddings.shape
        return cls(count, size, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
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


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of rows of `weight`, without the rows in between.

    num_embeddings, embedding_dim  number of rows, and their length
    mode              "sum", "mean" (default) or "max"
    include_last_offset  True: offsets have one number more: the end of the last bag
    padding_idx       rows at this index are left out, and get no gradient
    max_norm, norm_type, scale_grad_by_freq, sparse  as in `Embedding`

    `weight` (num_embeddings, embedding_dim) is a parameter. Input (B, n), n indices for each of B
    bags; or (n,) with `offsets` (B,), where bags begin. `per_sample_weights`, in the input's shape,
    scale the rows of "sum". Output (B, embedding_dim). Raises AssertionError where padding_idx is
    out of range or `_weight` has another shape.

    >>> import tracejit
    >>> layer = tracejit.nn.EmbeddingBag(10, 4, mode="sum")
    >>> layer(tracejit.tensor([1, 2, 4, 5]), tracejit.tensor([0, 3])).shape
    tracejit.Size([2, 4])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = Parameter(tracejit.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight)
        self.mode, self.sparse = mode, sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Fill with standard normal numbers, the padding row with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tracejit.no_grad():
                self.weight.select(0, self.padding_idx).fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Make an EmbeddingBag over a given matrix, not trained unless `freeze=False`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        made = cls(
            rows,
            width,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        shown = [f"{self.num_embeddings}", f"{self.embedding_dim}"]
        if self.max_norm is not None:
            shown.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            shown.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            shown.append("scale_grad_by_freq=True")
        shown.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        return ", ".join(shown)
