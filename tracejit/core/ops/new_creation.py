"""Tensors made in the dtype and on the device of another: `x.new_zeros(2, 3)` and its kin.

In: a tensor, sizes, maybe a number. Out: new tensors, contiguous. Called by users.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.memory.devices import makes_dense
from tracejit.core.ops.creation import _marked, filled, sizes_given
from tracejit.core.ops.operators import method
from tracejit.core.ops.types import dtype


@method()
@makes_dense
def new_full(input: Any, size: Any, fill_value: Any, *, dtype: dtype | None = None,
             device: Any = None, requires_grad: bool = False) -> Any:
    """Return `fill_value` in shape `size`, in the dtype and on the device of `input`.

    >>> import tracejit
    >>> tracejit.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    sizes = sizes_given(tuple(size) if isinstance(size, (tuple, list)) else (size,))
    place = input.device if device is None else device
    return _marked(filled(sizes, fill_value, dtype or input.dtype, place, input), requires_grad)


@method()
@makes_dense
def new_zeros(input: Any, *sizes: Any, size: Any = None, dtype: dtype | None = None,
              device: Any = None, requires_grad: bool = False) -> Any:
    """Return zeros of shape `size` in the dtype and on the device of `input`.

    >>> import tracejit
    >>> tracejit.ones(1).new_zeros(2)
    tensor([0., 0.])
    """
    return new_full(input, sizes_given(sizes, size), 0, dtype=dtype, device=device,
                    requires_grad=requires_grad)


@method()
@makes_dense
def new_ones(input: Any, *sizes: Any, size: Any = None, dtype: dtype | None = None,
             device: Any = None, requires_grad: bool = False) -> Any:
    """Return ones of shape `size` in the dtype and on the device of `input`.

    >>> import tracejit
    >>> tracejit.zeros(1).new_ones(2)
    tensor([1., 1.])
    """
    return new_full(input, sizes_given(sizes, size), 1, dtype=dtype, device=device,
                    requires_grad=requires_grad)


@method()
@makes_dense
def new_empty(input: Any, *sizes: Any, size: Any = None, dtype: dtype | None = None,
              device: Any = None, requires_grad: bool = False) -> Any:
    """Return a tensor to be written later, of shape `size`, like `input`; it holds zeros.

    >>> import tracejit
    >>> tracejit.ones(1).new_empty(2, 3).shape
    tracejit.Size([2, 3])
    """
    return new_full(input, sizes_given(sizes, size), 0, dtype=dtype, device=device,
                    requires_grad=requires_grad)
