"""Tensors to be written later, laid out by strides, or by an order of dimensions.

In: sizes, and strides or an order. Out: tensors that hold zeros, as `empty`'s do. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.memory.devices import makes_dense, makes_tensors
from tracejit.core.ops.creation import empty, sizes_given
from tracejit.core.ops.new_creation import new_empty
from tracejit.core.ops.operators import method
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.slicing import as_strided_record
from tracejit.core.ops.types import dtype


def _extent(size: tuple, stride: Sequence[Any]) -> tuple[tuple, Any]:
    """Return checked strides, and how many elements they reach over."""
    strides = tuple(map(as_size, stride))
    if len(size) != len(strides):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of "
                           f"strides ({len(strides)})")
    if any(s < 0 for s in strides):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and "
                           f"strides={list(strides)}")
    if any(n == 0 for n in size):
        return strides, 0
    return strides, 1 + sum((n - 1) * s for n, s in zip(size, strides))


def _seen(flat: Any, size: tuple, stride: tuple, requires_grad: bool) -> Any:
    made = as_strided_record(flat, size=size, stride=stride, offset=0).detach()
    return made.requires_grad_() if requires_grad else made


@makes_tensors
def empty_strided(size: Sequence[Any], stride: Sequence[Any], *, dtype: dtype | None = None,
                  device: Any = None, requires_grad: bool = False) -> Any:
    """Make a tensor of zeros, to be written later, of these sizes and strides.

    >>> import tracejit
    >>> tracejit.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)

    RuntimeError for negative sizes and strides, and where there are not as many of both.
    """
    sizes = sizes_given((tuple(size),))
    strides, count = _extent(sizes, stride)
    return _seen(empty(count, dtype=dtype, device=device), sizes, strides, requires_grad)


@method()
@makes_dense
def new_empty_strided(input: Any, size: Sequence[Any], stride: Sequence[Any], *,
                      dtype: dtype | None = None, device: Any = None,
                      requires_grad: bool = False) -> Any:
    """Make `empty_strided` in the dtype and on the device of `input`.

    >>> import tracejit
    >>> tracejit.ones(1).new_empty_strided((2, 3), (1, 2)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    sizes = sizes_given((tuple(size),))
    strides, count = _extent(sizes, stride)
    flat = new_empty(input, count, dtype=dtype, device=device)
    return _seen(flat, sizes, strides, requires_grad)


@makes_tensors
def empty_permuted(size: Sequence[Any], physical_layout: Sequence[int], *,
                   dtype: dtype | None = None, device: Any = None,
                   requires_grad: bool = False) -> Any:
    """Make a tensor of zeros, to be written later, without gaps, in that order of dimensions.

    physical_layout  dimensions, from the one with the largest stride to that with the smallest

    >>> import tracejit
    >>> tracejit.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)

    RuntimeError where the order does not name each dimension once.
    """
    sizes, order = sizes_given((tuple(size),)), tuple(map(as_size, physical_layout))
    if len(sizes) != len(order):
        raise RuntimeError("Number of dimensions in size does not match the length of the "
                           f"physical_layout; i.e. len(size) = {len(sizes)} is not equal to "
                           f"len(physical_layout) = {len(order)}")
    for k, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and "
                               f"{len(sizes) - 1}, but got {dim} at index {k}).  NB: negative dims "
                               "not currently supported; file an issue if you want it.")
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides: dict[int, Any] = {}
    step: Any = 1
    for dim in reversed(order):
        strides[dim], step = step, step * sizes[dim]
    return empty_strided(sizes, [strides[dim] for dim in range(len(sizes))], dtype=dtype,
                         device=device, requires_grad=requires_grad)
