"""Rows of a matrix by index, and vectors that are 1 at an index: embedding and one_hot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.ops import creation
from tracejit.core.ops.gather_scatter import (
    as_index,
    element_index,
    index_add_record,
    index_eager,
    index_put_record,
    index_record,
    scatter_record,
    zeros_for,
)
from tracejit.core.ops.movement import typed
from tracejit.core.ops.pointwise import where
from tracejit.core.ops.pointwise_record import must_be_tensors
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size, numel
from tracejit.core.ops.types import INTEGER, SCALAR_NAMES, TensorType, bool_, int64

_sparse: list[Callable[[Any, Any, tuple], Any]] = []


def install_rows(make: Callable[[Any, Any, tuple], Any]) -> None:
    """Install `make(places, rows, size)`, which gives a gradient that keeps only some rows."""
    _sparse[:] = [make]


def _rule(grad: Any, weight_type: TensorType, indices: Any, padding_idx: Any,
          scale_grad_by_freq: bool, sparse: bool) -> Any:
    if sparse:
        return _of_rows(grad, weight_type, indices, padding_idx, scale_grad_by_freq)
    if scale_grad_by_freq:
        zeros = creation.full_of(grad, weight_type.shape[:1], 0, grad.dtype)
        ones = creation.full_of(grad, tuple(indices.shape), 1, grad.dtype)
        counts = index_add_record(zeros, ones, indices, dims=(0,), wrap=False)
        grad = grad / index_record(counts, indices, dims=(0,), wrap=False).unsqueeze(-1)
    if padding_idx is not None:
        grad = where((indices == padding_idx).unsqueeze(-1), 0, grad)
    return index_add_record(zeros_for(grad, weight_type), grad, indices, dims=(0,), wrap=False)


def _of_rows(grad: Any, weight_type: TensorType, indices: Any, padding_idx: Any,
             scale_grad_by_freq: bool) -> Any:
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse "
                           "gradients")
    places, rows = indices.reshape(-1), grad.reshape(numel(indices.shape), *weight_type.shape[1:])
    if padding_idx is not None:
        kept = (places != padding_idx).nonzero().squeeze(1)
        places, rows = places.index_select(0, kept), rows.index_select(0, kept)
    return _sparse[0](places, rows, weight_type.shape)


embedding_record: Op = Op(
    "embedding", "movement", ("weight", "indices"), may_fail=True,
    infer=lambda weight, indices, padding_idx, scale_grad_by_freq, sparse: typed(
        weight, (*indices.shape, *weight.shape[1:])),
    eager=lambda xp, weight, indices, padding_idx, scale_grad_by_freq, sparse: index_eager(
        xp, weight, indices, dims=(0,), wrap=False),
    element=lambda emit, index, padding_idx, scale_grad_by_freq, sparse: emit.operand(
        0, element_index(emit, index, (0,), False, 1)),
    rules={"weight": _rule},
)  # fmt: skip


def embedding(input: Any, weight: Any, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Return the rows of `weight` at the positions in `input`; row `padding_idx` gets no gradient.

    input (*) of integers, weight (n, width); out (*, width).

    max_norm          rows that are read and longer are first shortened to this, in `weight`
    norm_type         p of that norm
    scale_grad_by_freq  a row's gradient is divided by how often it was read
    sparse            the gradient of `weight` keeps the rows that were read, no others

    IndexError for a position outside, AssertionError for a `padding_idx` outside.

    >>> import tracejit
    >>> tracejit.nn.functional.embedding(tracejit.tensor([1, 0]), tracejit.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [1.]])
    """
    if len(weight.shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if input.dtype.category != INTEGER:
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following "
                           f"scalar types: Long, Int; but got {SCALAR_NAMES[input.dtype.name]}")
    if padding_idx is not None:
        padding_idx = as_size(padding_idx)
        rows = weight.shape[0]
        assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
        padding_idx = padding_idx if padding_idx >= 0 else rows + padding_idx
    places = as_index(input)
    if max_norm is not None:
        _shorten(weight.detach(), places, max_norm, norm_type)
    return embedding_record(weight, places, padding_idx=padding_idx,
                            scale_grad_by_freq=bool(scale_grad_by_freq), sparse=bool(sparse))


def _shorten(weight: Any, places: Any, max_norm: float, norm_type: float) -> None:
    """Scale rows at `places` that are longer than `max_norm` to this length, in place."""
    no = creation.full_of(weight, weight.shape[:1], False, bool_)
    yes = creation.full_of(weight, tuple(places.shape), True, bool_)
    read = index_put_record(no, yes, places, dims=(0,), wrap=False)
    norms = weight.norm(p=norm_type, dim=1, keepdim=True)
    shorter = weight * (max_norm / (norms + 1e-7))  # PyTorch's constant
    weight.copy_(where(read.unsqueeze(1) & (norms > max_norm), shorter, weight))


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Return int64 vectors with a 1 at the place each element of `tensor` names, zeros elsewhere.

    tensor       (*) of int64
    num_classes  length C of the vectors; -1 takes the largest element plus one, which reads the
                 values

    The result is (*, C). RuntimeError for other dtypes and for elements out of range.

    >>> import tracejit
    >>> tracejit.nn.functional.one_hot(tracejit.tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    must_be_tensors("one_hot", ("input",), (tensor,))
    if isinstance(num_classes, float):
        raise TypeError("one_hot(): argument 'num_classes' (position 2) must be int, not float")
    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes <= 0 and numel(tuple(tensor.shape)) == 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes == -1:
        num_classes = int(tensor.max()) + 1
    rows = creation.full_of(tensor, (*tensor.shape, max(num_classes, 0)), 0, int64)
    ones = creation.full_of(tensor, (*tensor.shape, 1), 1, int64)
    return scatter_record(rows, tensor.unsqueeze(-1), ones, dim=len(tensor.shape), naming="class")
