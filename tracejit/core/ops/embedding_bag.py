"""Sums, means and maxima of bags of rows of a table.

In: indices, a table, where each bag begins. Out: one row for each bag. Called by users as
`nn.functional.embedding_bag`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import creation
from tracejit.core.ops.control import ErrorOf, raise_if_record
from tracejit.core.ops.embedding import embedding
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.scatter_reduce import index_reduce
from tracejit.core.ops.searching import searchsorted
from tracejit.core.ops.shapes import as_size, same_shape, shape_text
from tracejit.core.ops.types import bfloat16, float16, float32, int32, int64


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Return the sum, mean or maximum of bags of rows of `weight`.

    input               (bags, length); or (n,) with `offsets`, (bags,): where each bag begins
    include_last_offset `offsets` has one number more: where the last bag ends
    per_sample_weights  like `input`: factors of the rows, in mode "sum"
    padding_idx         rows at this index are left out; an empty bag is zero

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> table, bags = tracejit.arange(4.0).reshape(4, 1), tracejit.tensor([0, 2])
    >>> F.embedding_bag(tracejit.tensor([1, 2, 3]), table, bags, mode="sum").tolist()
    [[3.0], [3.0]]

    Out (bags, width). Other arguments as for `embedding`. ValueError for arguments that do not fit
    each other, RuntimeError for offsets that do not fit the input, and for positions outside.
    """
    _check_weights(input, per_sample_weights)
    # PyTorch's kernel for sums and means of these keeps to the end of the last bag.
    kept = mode != "max" and padding_idx is None and weight.dtype in (float32, float16, bfloat16)
    flat, bags = _bags(input, offsets, include_last_offset and not kept)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    text = "embedding_bag: Expected idx >= 0 && idx < num_embeddings"
    outside = (flat < 0) | (flat >= weight.shape[0])
    raise_if_record(outside.any(), error=ErrorOf(RuntimeError, (text,)))
    keep = None
    if padding_idx is not None:
        count, padding_idx = weight.shape[0], as_size(padding_idx)
        if not -count <= padding_idx < count:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{count} through "
                f"{count - 1}, but got {padding_idx}"
            )
        keep = flat != (padding_idx if padding_idx >= 0 else padding_idx + count)
    dropped = padding_idx if sparse else None  # else their gradients are zeros
    rows = embedding(flat, weight, dropped, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {weight.type()} does not equal "
            f"{per_sample_weights.type()} (while checking arguments for embedding_bag)"
        )
    if weight.dtype in (float16, bfloat16):  # sums are rounded once
        rows = rows.to(float32)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1).unsqueeze(-1).to(rows.dtype)
    count = _bag_count(input, offsets, include_last_offset)
    return _reduced(rows, bags, count, keep, mode).to(weight.dtype)


def _check_weights(input: Any, factors: Any) -> None:
    if factors is not None and not same_shape(input.shape, factors.shape):
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({shape_text(factors.shape)}) is not None, "
            f"then it must have the same shape as the input ({shape_text(input.shape)})"
        )


def _bags(input: Any, offsets: Any, ends: bool) -> tuple[Any, Any]:
    """Return the indices in a row, and for each the number of its bag."""
    if len(input.shape) == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                "of fixed length sequences. However, found offsets of type "
                "<class 'tracejit.Tensor'>"
            )
        numbers = creation.arange(input.shape[0], device=input.device).unsqueeze(1)
        return input.reshape(-1), numbers.expand(tuple(input.shape)).reshape(-1)
    if len(input.shape) != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {len(input.shape)}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if len(offsets.shape) != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if input.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input.type()} instead (while checking arguments for "
            "embedding_bag)"
        )
    text = (
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
        "position 0."
    )
    begin = creation.arange(offsets.shape[0], device=offsets.device) == 0
    raise_if_record(((offsets != 0) & begin).any(), error=ErrorOf(RuntimeError, (text,)))
    text = "offsets[-1] can not be greater than input's length"  # no numbers: they may change
    raise_if_record((offsets > input.shape[0]).any(), error=ErrorOf(RuntimeError, (text,)))
    if ends:  # the last bag goes on to the last index, wherever it is said to end
        offsets = offsets[:-1]
    places = creation.arange(input.shape[0], device=input.device)
    return input, searchsorted(offsets.to(int64), places, right=True) - 1


def _bag_count(input: Any, offsets: Any, ends: bool) -> Any:
    if offsets is None:
        return input.shape[0]
    return offsets.shape[0] - 1 if ends else offsets.shape[0]


def _reduced(rows: Any, bags: Any, count: Any, keep: Any, mode: str) -> Any:
    """Reduce bags of rows. Rows that are left out go to one bag more, which is cut off."""
    if keep is not None:
        bags = where(keep, bags, count)
    start = creation.full_of(rows, (count + 1, rows.shape[1]), 0, rows.dtype)
    if mode == "max":
        return _largest(rows, bags, start).narrow(0, 0, count)
    total = start.index_add(0, bags, rows).narrow(0, 0, count)
    if mode == "sum":
        return total
    ones = creation.full_of(rows, (count + 1,), 0, rows.dtype)
    sizes = ones.index_add(0, bags, bags.to(rows.dtype) * 0 + 1).narrow(0, 0, count)
    return total / sizes.clamp(min=1).unsqueeze(-1)


def _largest(rows: Any, bags: Any, start: Any) -> Any:
    """Take the first of each bag's largest elements, which alone has a gradient.

    As in PyTorch NaN counts only where it begins a bag: nothing is larger than it then.
    """
    places = creation.arange(rows.shape[0], device=rows.device).unsqueeze(-1).expand(
        tuple(rows.shape))
    none = creation.full_of(start, tuple(start.shape), rows.shape[0], int64)
    begin = places == index_reduce(none, 0, bags, places, "amin").index_select(0, bags)
    values = rows.detach()
    sized = where(values != values, where(begin, float("inf"), -float("inf")), values)
    most = index_reduce(start, 0, bags, sized, "amax", include_self=False).index_select(0, bags)
    found = index_reduce(none, 0, bags, where(sized == most, places, rows.shape[0]), "amin")
    return cat([rows, start[:1]]).gather(0, found)  # the last row serves empty bags
