"""Many tensors as one; PyTorch's `torch._utils`, as far as programs use it.

In: tensors. Out: their elements behind each other, and views of such a tensor in their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.joining import cat


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """Return the elements of all tensors in one dimension.

    >>> import tracejit
    >>> _flatten_dense_tensors([tracejit.ones(1, 2), tracejit.zeros(1)])
    tensor([1., 1., 0.])
    """
    return cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return views of `flat`, one behind the other, in the shapes of the tensors.

    >>> import tracejit
    >>> a, b = _unflatten_dense_tensors(tracejit.arange(3), [tracejit.ones(1, 2), tracejit.ones(1)])
    >>> a.tolist(), b.tolist()
    ([[0, 1]], [2])
    """
    views, start = [], 0
    for t in tensors:
        views.append(flat.narrow(0, start, t.numel()).view(t.shape))
        start += t.numel()
    return tuple(views)
