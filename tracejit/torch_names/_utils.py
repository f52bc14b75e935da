"""Many tensors as one, and what pickles make tensors by; PyTorch's `torch._utils`, as far as
programs use it.

In: tensors, or parts of one out of a pickle. Out: their elements behind each other, and views of
such a tensor in their shapes; the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.joining import cat
from tracejit.saving.rebuilding import rebuild_meta_tensor as _rebuild_meta_tensor_no_storage
from tracejit.saving.rebuilding import rebuild_parameter as _rebuild_parameter
from tracejit.saving.rebuilding import rebuild_parameter_with_state as _rebuild_parameter_with_state
from tracejit.saving.rebuilding import rebuild_tensor as _rebuild_tensor
from tracejit.saving.rebuilding import rebuild_tensor_v2 as _rebuild_tensor_v2
from tracejit.saving.rebuilding import rebuild_tensor_v3 as _rebuild_tensor_v3

__all__ = [
    "_flatten_dense_tensors", "_rebuild_meta_tensor_no_storage", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_sparse_tensor", "_rebuild_tensor",
    "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_unflatten_dense_tensors",
]  # fmt: skip


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> Any:
    """Make a sparse tensor of its parts: indices, values, size and more. RuntimeError for parts
    that do not fit."""
    import tracejit

    if layout == tracejit.sparse_coo:
        indices, values, size, *coalesced = data
        return tracejit.sparse_coo_tensor(indices, values, size, check_invariants=True,
                                          is_coalesced=coalesced[0] if coalesced else None)
    return tracejit.sparse_compressed_tensor(*data, layout=layout, check_invariants=True)


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
