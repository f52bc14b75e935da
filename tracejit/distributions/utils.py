"""Parameters of distributions: numbers and tensors of one shape, chances and their logits;
PyTorch's `distributions.utils`.

In: the arguments of a constructor. Out: tensors that are broadcast to one shape. Called by the
distributions.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import shapes
from tracejit.core.ops.creation import full
from tracejit.core.ops.diagonals import tril_indices
from tracejit.core.ops.pointwise_record import is_number
from tracejit.core.ops.types import get_default_dtype
from tracejit.distributions.validation import lazy_property  # noqa: F401

EULER = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Return tensors of one shape. A number gets the dtype and device of the first tensor.

    >>> import tracejit
    >>> [x.tolist() for x in broadcast_all(tracejit.zeros(2), 1.0)]
    [[0.0, 0.0], [1.0, 1.0]]

    ValueError for what is neither.
    """
    if not all(isinstance(v, Tensor) or is_number(v) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects "
                         "implementing __torch_function__.")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    tensors = [v if isinstance(v, Tensor) else full((), v, dtype=dtype, device=device)
               for v in values]
    shape = shapes.broadcast(*[tuple(t.shape) for t in tensors])
    return tuple(t if shapes.known_same_shape(tuple(t.shape), shape) else t.expand(shape)
                 for t in tensors)


def given_one(probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of both is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def clamp_probs(probs: Any) -> Any:
    """Keep chances from 0 and 1 by the dtype's eps, so that their logarithms are finite."""
    eps = tracejit.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return log(p), or log(p / (1 - p)) for chances of one event.

    >>> import tracejit
    >>> probs_to_logits(tracejit.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return softmax(logits), or sigmoid(logits) for one event.

    >>> import tracejit
    >>> logits_to_probs(tracejit.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else tracejit.softmax(logits, -1)


def sum_rightmost(value: Any, dims: int) -> Any:
    """Sum over the last `dims` dimensions.

    >>> import tracejit
    >>> sum_rightmost(tracejit.ones(2, 3), 1)
    tensor([3., 3.])
    """
    return value if dims == 0 else value.sum(tuple(range(-dims, 0)))


_sum_rightmost = sum_rightmost  # PyTorch's name, which others import


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Return the elements of square matrices up to a diagonal, row by row.

    >>> import tracejit
    >>> tril_matrix_to_vec(tracejit.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag, device=mat.device).unbind()
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Make square matrices from their elements up to a diagonal, row by row. The others are 0.

    >>> import tracejit
    >>> vec_to_tril_matrix(tracejit.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count, b = int(vec.shape[-1]), 1 + 2 * diag
    # the root of the number of elements up to a diagonal, as a function of n
    n = round(((b * b + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5 - b) / 2)
    if n * (n + b) - abs(diag) * (diag + 1) != 2 * count:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as "
                         "the lower triangular part of a square D x D matrix.")
    rows, columns = tril_indices(n, n, diag, device=vec.device).unbind()
    empty = vec.new_zeros((*tuple(vec.shape)[:-1], n * n))
    return empty.index_copy(-1, rows * n + columns, vec).unflatten(-1, (n, n))


def standard_normal(shape: Any, like: Any) -> Any:
    """Draw normal numbers in the dtype and on the device of a tensor."""
    return tracejit.randn(tuple(shape), dtype=like.dtype, device=like.device)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Draw normal numbers, under the name that PyTorch's users import."""
    return tracejit.randn(tuple(shape), dtype=dtype, device=device)


def uniform(shape: Any, like: Any) -> Any:
    """Draw uniform numbers in [0, 1) in the dtype and on the device of a tensor."""
    return tracejit.rand(tuple(shape), dtype=like.dtype, device=like.device)

