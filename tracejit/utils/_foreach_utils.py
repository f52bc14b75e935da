"""Tensors grouped for updates of many at once; PyTorch's `torch.utils._foreach_utils`.

In: lists of tensors, one element for each parameter. Out: the same by device and dtype. Called by
optimizers of packages; those here group nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import device
from tracejit.core.ops.types import dtype

Indices = list[int]
TensorListList = list[list[Tensor | None]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the types of devices on which `_foreach_add` and the like are fast: CUDA's."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of devices with optimizers of one kernel."""
    return ["cuda", "cpu"]


def _device_has_foreach_support(where: device) -> bool:
    """Return True if functions of many tensors at once run there: on all devices."""
    return where.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Tensor | None], where: device) -> bool:
    """Return True if these are tensors, or None, that functions of many at once take."""
    return _device_has_foreach_support(where) and all(
        x is None or isinstance(x, Tensor) for x in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[TensorListList, Indices]]:
    """Group lists of equal length by device and dtype of the first list's tensors. With
    `with_indices`, add the positions that these had.

    >>> import tracejit
    >>> x, y = tracejit.ones(1), tracejit.ones(1, dtype=tracejit.float64)
    >>> groups = _group_tensors_by_device_and_dtype([[x, y, x]], with_indices=True)
    >>> [places for _, places in groups.values()]
    [[0, 2], [1]]

    RuntimeError if the lists are of different lengths, or the first one holds None.
    """
    first = tensorlistlist[0]
    # Optimizers pass empty lists for state that they do not have.
    if any(len(one) not in (0, len(first)) for one in tensorlistlist):
        raise RuntimeError("Tensors of the same index must be on the same device and dtype: the "
                           "lists are of different lengths")
    groups: dict[tuple[device, dtype], tuple[TensorListList, Indices]] = {}
    for place, x in enumerate(first):
        if x is None:
            raise RuntimeError("a tensor of the first list is None")
        lists, places = groups.setdefault((x.device, x.dtype), ([[] for _ in tensorlistlist], []))
        for one, into in zip(tensorlistlist, lists):
            if one:
                into.append(one[place])
        if with_indices:
            places.append(place)
    return groups
