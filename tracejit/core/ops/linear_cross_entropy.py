"""Linear map and cross_entropy of its scores in one: the head of a classifier and its loss.

In: features, the map's weight and bias, targets. Out: the loss. Called by users as
`nn.functional.linear_cross_entropy`, by `nn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.ops.classification import cross_entropy
from tracejit.core.ops.linalg import linear
from tracejit.core.ops.shapes import equal, hint, same_shape


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Options of PyTorch: how it cuts the scores into pieces, and in which dtype it adds up
    gradients.

    They change PyTorch's memory, not the loss nor any shape. Here scores are not cut, and a second
    backward is refused no more than another loss's. ValueError for values that PyTorch does not
    know.

    >>> import tracejit
    >>> tracejit.nn.LinearCrossEntropyOptions(batch_chunk_size=16).acc_policy
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if (self.chunking_method or "auto").partition(":")[0] not in ("auto", "aspect_ratio"):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and self.batch_chunk_size <= 0:
            raise ValueError("batch_chunk_size must be positive int or None, got "
                             f"{self.batch_chunk_size}")


def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None,
                         weight: Any = None, reduction: str = "mean",
                         ignore_index: int | None = None, label_smoothing: float = 0.0,
                         options: LinearCrossEntropyOptions | None = None) -> Any:
    """Return `cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    input (N, k) or (k,); linear_weight (C, k), or (C, d1, ..., k) for scores at several places;
    linear_bias (C, d1, ...); target, weight and the rest as for `cross_entropy`. `options` changes
    nothing: see `LinearCrossEntropyOptions`.

    >>> import tracejit
    >>> x, w = tracejit.ones(2, 3), tracejit.zeros(4, 3)
    >>> tracejit.nn.functional.linear_cross_entropy(x, w, tracejit.tensor([0, 1]))
    tensor(1.3863)

    RuntimeError for shapes that do not fit, and for `ignore_index` beside probabilities.
    """
    classes, *places, width = _sizes(input, linear_weight, linear_bias)
    flat = linear_weight.reshape(-1, width) if places else linear_weight
    bias = linear_bias.reshape(-1) if linear_bias is not None and places else linear_bias
    scores = linear(input, flat, bias)
    if places:
        scores = scores.reshape(*input.shape[:-1], classes, *places)
    if ignore_index is None:
        ignore_index = -100
    elif same_shape(target.shape, scores.shape):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(scores, target, weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing)


def _sizes(input: Any, linear_weight: Any, linear_bias: Any) -> tuple[Any, ...]:
    """Return the shape of the weight. RuntimeError unless features and bias fit it."""
    rank, shape = len(input.shape), tuple(linear_weight.shape)
    if rank not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {rank}")
    if len(shape) < 2:
        raise RuntimeError("expected linear_weight with dimensionality at least 2, got "
                           f"{len(shape)}")
    if not equal(input.shape[-1], shape[-1]):
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), "
                           f"got {hint(input.shape[-1])} and {hint(shape[-1])}, respectively")
    if linear_bias is not None and not same_shape(linear_bias.shape, shape[:-1]):
        raise RuntimeError(f"expected linear_bias shape {tuple(map(hint, shape[:-1]))}, got "
                           f"{tuple(map(hint, linear_bias.shape))}")
    if len(shape) > 2 and rank == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(map(hint, shape))} requires "
            f"batched input, (N, {hint(shape[-1])}), got unbatched input with shape "
            f"{tuple(map(hint, input.shape))}")
    return shape
