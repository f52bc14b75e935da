"""Reductions of losses as numbers, and their older spelling; PyTorch's `torch.nn._reduction`."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number that the package's own losses take for a reduction.

    >>> get_enum("sum")
    2

    ValueError for what is no reduction.
    """
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. "
                      "Please use reduction='mean' instead.", stacklevel=2)
        return 1
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None,
                      emit_warning: bool = True) -> str:
    """Return the reduction that `size_average` and `reduce` mean. None is True."""
    summed = "sum" if size_average is not None and not size_average else "mean"
    meant = "none" if reduce is not None and not reduce else summed
    if emit_warning:
        warnings.warn("size_average and reduce args will be deprecated, please use "
                      f"reduction='{meant}' instead.", stacklevel=2)
    return meant


def legacy_get_enum(size_average: bool | None, reduce: bool | None,
                    emit_warning: bool = True) -> int:
    """`get_enum` of `legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
