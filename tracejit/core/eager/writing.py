"""Writes to tensors in place: checks, memory, version, history.

In: `self._assign(result)` from every in-place op, `copy_`, `fill_`, `zero_`, `tensor.data = x`.
Out: the tensor's memory holds the result, and its version is raised. The tensor, and the base it
views, have the result's history.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.eager.history import LEAF_VIEW, check_rebase, keep_original, rebase
from tracejit.core.eager.nodes import edge_of, grad_fn_of
from tracejit.core.eager.origins import check_write
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import over_same_memory
from tracejit.core.eager.state import TensorState, shape_of
from tracejit.core.eager.tape import refresh
from tracejit.core.eager.views import (
    AliasFamily,
    View,
    canonical,
    chain_of,
    counting_family,
    family_of,
    standing_for,
)
from tracejit.core.memory.readers import about_to_write
from tracejit.core.ops import creation, pointwise
from tracejit.core.ops.fitting import fitting, is_int
from tracejit.core.ops.shapes import broadcast, shape_text
from tracejit.core.ops.types import FLOATING, must_cast

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory "
    "location. Please clone() the tensor before performing the operation."
)
INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
    "to "
    "get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 "
    "for more details."
)


def assign(self: TensorState, result: Any, overwrites: bool = False, since: int = 0) -> Any:
    """Store `result` in the memory of `self`; every in-place op ends with this.

    overwrites  the result does not depend on `self`: the gradient of the old elements is zero
    since       the number of the op's first node

    Raises RuntimeError for leaves that require grad (in grad mode), and for tensors whose elements
    share memory. Also for results that are larger than `self` or of a dtype of a higher kind.
    """
    check_writable(self)
    must_cast(result._dtype, self._dtype)
    return store(self, result, overwrites, since)


def check_writable(self: TensorState, overlap: bool = False) -> None:
    """Check if an in-place op may write. `overlap`: elements may share memory."""
    repeats = not overlap and shared_dims(self)  # first: a tracer may resolve `self` meanwhile
    if self._view is not None:
        self = canonical(self)
        refresh(self)
        if family_of(self).inference and not active.inference:
            raise RuntimeError(INFERENCE_WRITE)
    seen = type(self._view) is View
    if active.grad_enabled and (self._requires_grad or seen and chain_of(self)[0]._requires_grad):
        if seen:
            check_write(self)
        leaf = leaf_error(self)
        if leaf is not None:
            raise RuntimeError(leaf)
    if repeats:
        raise RuntimeError(OVERLAP)


def leaf_error(self: TensorState) -> str | None:
    """Return the error text for a write to a leaf that requires grad, or to a view of one, in grad
    mode. None if the tensor may be written."""
    base, steps = chain_of(self)
    if steps:
        if grad_fn_of(base) is None or grad_fn_of(self) is None:
            return LEAF_VIEW
        return None
    return LEAF if grad_fn_of(self) is None else None


def shared_dims(self: TensorState) -> list[int]:
    """Return the dimensions along which elements share memory, as in an expanded tensor."""
    tracer = active.tracer
    if tracer is not None:
        shared = tracer.shared(self)
    else:
        shared = [d for d, s in enumerate(self._strides or ()) if s == 0]
    if not shared:
        return []
    shape = shape_of(self)
    return [] if any(n == 0 for n in shape) else [d for d in shared if shape[d] > 1]


def store(self: TensorState, result: Any, overwrites: bool = False, since: int = 0) -> Any:
    """Write a result that passed the checks: cast, broadcast, memory, version, history.

    overwrites  the result does not depend on `self`
    since       the number of the op's first node
    """
    if result._dtype is not self._dtype:
        result = pointwise.convert(result, self._dtype)
    shape = shape_of(self)
    if shape_of(result) != shape:
        result = _broadcast_to(result, shape)
    if active.grad_enabled and (self._requires_grad or result._requires_grad):
        check_rebase(self)
        if result._requires_grad and not overwrites:
            keep_original(self, edge_of(result)[0], since)
        write_memory(self, result)
        rebase(self, result, overwrites)
    else:
        write_memory(self, result)
    return self


def _broadcast_to(result: Any, shape: tuple) -> Any:
    given = shape_of(result)
    if len(given) > len(shape) or any(n != m and n != 1 for n, m in zip(given[::-1], shape[::-1])):
        broadcast(shape, given)  # raises if they do not fit in either direction
        raise RuntimeError(f"output with shape {shape_text(shape)} doesn't match the broadcast "
                           "shape "
                           f"{shape_text(given)}")
    return result.expand(shape)


def write_memory(self: TensorState, result: Any) -> None:
    """Copy elements (same shape and dtype) and raise the version. The history stays."""
    tracer = active.tracer
    if tracer is not None:
        tracer.write(self, result)
        return
    if self._storage is None:
        raise RuntimeError(self._traced.escaped())
    if self._storage.readonly:
        raise ValueError("assignment destination is read-only: the memory belongs to an array that "
                         "may not be written")
    about_to_write(self._storage)
    if self._device.type == "cpu":
        np.copyto(writable_array(self), result.array)
    elif self._device.type == "cuda":
        self.array[...] = result.array
    bump_version(self)


def writable_array(self: TensorState) -> np.ndarray:
    """Return an array over the tensor's memory that may be written. NumPy makes read-only arrays
    when it broadcasts: such a one is replaced."""
    if not self.array.flags.writeable:
        self._array = None
    return self.array


def bump_version(self: TensorState, times: int = 1) -> None:
    """Count a write to the memory of a concrete tensor. `times` -1 takes a write back that did not
    happen."""
    family = counting_family(self)
    if family is not None:
        family.version += times  # type: ignore[operator]
    else:
        self._storage.version += times  # type: ignore[union-attr]


def set_data(self: TensorState, value: Any) -> None:
    """Do `self.data = value`: the tensor looks at the memory of `value` from now on; its history
    stays."""
    if not isinstance(value, TensorState):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if value._dtype.category < FLOATING and self._requires_grad:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or "
                           "complex dtype")
    tracer = active.tracer
    if tracer is not None:
        # all samples share one memory, so only their elements can be replaced
        if tracer.mapped and tracer.has(self):  # type: ignore[attr-defined]
            tracer.write(self, value)
            return
        if tracer.same_place(self, value):
            return
        tracer.break_graph(
            self, "the function replaces tensor.data", "write into it: tensor.data.copy_(...)")
    about_to_write(self._storage)  # type: ignore[arg-type]
    take_memory(self, value)


def take_memory(self: TensorState, other: TensorState) -> None:
    """Look at the memory of `other`, a concrete tensor, from now on."""
    if other._storage is None:
        raise RuntimeError(other._traced.escaped())
    for x in (self, *standing_for(self)):
        x._storage, x._offset, x._shape = other._storage, other._offset, other._shape
        x._strides, x._dtype, x._device = other._strides, other._dtype, other._device
        x._array, x._traced = other._array, None


def get_data(self: TensorState) -> Any:
    """Return `self.data`: the same memory without history. Writes through it do not count against
    saved tensors."""
    tracer = active.tracer
    t = over_same_memory(self if tracer is None else tracer.severed(self))
    if tracer is not None and self._requires_grad:
        tracer.forgets(t)
    t._view = AliasFamily(version=0)
    return t


def copy_(self: TensorState, source: Any, non_blocking: bool = False) -> Any:
    """Write `source`, a tensor or a number, cast, moved and broadcast to this shape; gradients flow
    to it.

    RuntimeError for shapes that do not broadcast, TypeError for what is neither.

    >>> import tracejit
    >>> tracejit.zeros(2).copy_(tracejit.tensor([1, 2]))
    tensor([1., 2.])
    """
    if isinstance(source, (bool, int, float, complex)):
        return fill_(self, source)
    if not isinstance(source, TensorState):
        raise TypeError("copy_(): argument 'other' (position 1) must be Tensor, not "
                        f"{type(source).__name__}")
    check_writable(self)
    moved = source.to(self._device) if source._device != self._device else source
    if moved._dtype is not self._dtype:
        moved = pointwise.convert(moved, self._dtype)
    elif moved._requires_grad and active.grad_enabled or active.tracer is not None:
        moved = moved.clone()
    return store(self, moved, overwrites=True)


def fill_(self: TensorState, value: Any) -> Any:
    """Write one number (or 0-dim tensor) everywhere; the shape stays. RuntimeError for a tensor
    with dimensions.

    >>> import tracejit
    >>> tracejit.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if isinstance(value, TensorState):
        if shape_of(value):
            raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                               f"{len(shape_of(value))} dimensions.")
        return copy_(self, value)
    if value is None or isinstance(value, (str, list, tuple)):
        raise TypeError(f"fill_(): argument 'value' must be Number or Tensor, not "
                        f"{type(value).__name__}")
    check_writable(self, overlap=True)
    if not is_int(value) and not getattr(value, "is_weak", False):
        value = pointwise.coerce(fitting(value, self._dtype), self._dtype)
    return store(self, creation.filled(shape_of(self), value, self._dtype, self._device, self))
