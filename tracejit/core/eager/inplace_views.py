"""Tensors that get another shape in place: `t_`, `transpose_`, `squeeze_`, `unsqueeze_`,
`as_strided_`, `resize_` and their kin.

In: a tensor. Out: the same object with another layout of its memory. The view op runs on a stand-in
that takes over the tensor's history and its views; then the tensor becomes the result. In a
recording this breaks the graph, unless the call made the tensor's memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager.history import set_history
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.nodes import grad_fn_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import alias
from tracejit.core.eager.state import TensorState, make, shape_of
from tracejit.core.eager.storage_size import resize as resize_storage
from tracejit.core.eager.views import AliasFamily, View, family_of, stand_for, standing_for
from tracejit.core.eager.writing import bump_version, check_writable, take_memory
from tracejit.core.memory.referrers import referrers
from tracejit.core.ops import movement, slicing
from tracejit.core.ops.creation import sizes_given
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import must_be_tensors
from tracejit.core.ops.shapes import numel


def _views_of(x: TensorState) -> list[View]:
    """List the records of views whose parent is x, or a tensor that stands for it."""
    seen = [one for one in (x, *standing_for(x))
            if one._view is not None and (type(one._view) is not View or one._view.viewed)]
    return [v for one in seen for v in referrers([one])
            if type(v) is View and v.parent is one and v.op is not None]


def _concrete(x: TensorState) -> None:
    if active.tracer is not None:
        active.tracer.break_graph(x, "the function changes the shape of a tensor in place",
                                  "use the function that returns a new view")


def _stand_in(self: TensorState, views: list[View]) -> Any:
    """Make a tensor with the layout and history that `self` has now, and make it the parent of
    `views`."""
    tracer = active.tracer
    if self._traced is not None and tracer is not None:
        old = tracer.alias(self)
    else:
        old = make(self._storage, self._offset, self._shape, self._strides, self._dtype,
                   self._device)
        old._array = self._array
    old._requires_grad = self._requires_grad
    if grad_fn_of(self) is not None:
        old._node, old._output_nr = self._node, self._output_nr
    if views or type(self._view) is View:
        old._view = self._view
    for view in views:
        view.parent = old
    return old


def _become(self: Any, look: Callable[[Any], Any]) -> Any:
    """Turn `self` into `look(self)`, a view of it."""
    self = resolve_identity(self)
    check_writable(self, overlap=True)
    look(alias(self))  # errors come before anything changes
    tracer = active.tracer
    turns = tracer is not None and tracer.may_turn(self)
    if not turns:
        _concrete(self)
    views = _views_of(self)
    old = _stand_in(self, views)
    known = old._view is not None
    result = look(old)
    if turns:
        _turn(self, result)
    else:
        _concrete(result)
        take_memory(self, result)
    if known and type(result._view) is View:
        _as_before(result._view, old._view)
        self._view = result._view
    if grad_fn_of(result) is not None:
        set_history(self, result._node, result._output_nr)
    for x in standing_for(self):
        stand_for(x, self)
    if not turns:
        bump_version(self)
    return self


def _turn(self: Any, result: Any) -> None:
    """Give `self` the layout of `result`, a recorded view of it, and count that as a write."""
    for x in (self, *standing_for(self)):
        x._shape, x._traced = result._shape, result._traced
    result._traced.memory.version_counter.count += 1


def _as_before(view: View, before: Any) -> None:
    """Keep the origin that the tensor had before it became another view, whatever the grad mode is
    now."""
    view.origin = None
    if type(before) is View:
        view.origin, view.version, view.output = before.origin, before.version, before.output
        if view.origin is None and not active.grad_enabled:
            view.generation = -1  # its history leads through both


@method()
def t_(self: Any) -> Any:
    """Do `t` in place: the shape changes.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).t_().shape
    tracejit.Size([3, 2])
    """
    if len(shape_of(self)) > 2:
        raise RuntimeError("t_() expects a tensor with <= 2 dimensions, but self is "
                           f"{len(shape_of(self))}D")
    return _become(self, movement.t)


@method("transpose_", "swapaxes_", "swapdims_")
def transpose_(self: Any, dim0: int, dim1: int) -> Any:
    """In-place version of `transpose`.

    >>> import tracejit
    >>> x = tracejit.zeros(2, 3)
    >>> x.transpose_(0, 1) is x, x.shape
    (True, tracejit.Size([3, 2]))
    """
    return _become(self, lambda x: movement.transpose(x, dim0, dim1))


@method()
def squeeze_(self: Any, dim: Any = None) -> Any:
    """Do `squeeze` in place: the shape changes.

    >>> import tracejit
    >>> tracejit.zeros(1, 3).squeeze_().shape
    tracejit.Size([3])
    """
    return _become(self, lambda x: movement.squeeze(x, *() if dim is None else (dim,)))


@method()
def unsqueeze_(self: Any, dim: int) -> Any:
    """Do `unsqueeze` in place: the shape changes.

    >>> import tracejit
    >>> tracejit.zeros(3).unsqueeze_(0).shape
    tracejit.Size([1, 3])
    """
    return _become(self, lambda x: movement.unsqueeze(x, dim))


@method()
def as_strided_(self: Any, size: Sequence[int], stride: Sequence[int],
                storage_offset: int | None = None) -> Any:
    """Do `as_strided` in place: the shape changes.

    >>> import tracejit
    >>> tracejit.arange(4).as_strided_((2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    return _become(self, lambda x: slicing.as_strided(x, size, stride, storage_offset))


def detached_from_views(x: Any) -> None:
    """Prepare a tensor that is about to get other memory: it is no view any more.

    Its views keep the old memory, with a stand-in as their parent.
    """
    views, followers = _views_of(x), standing_for(x)
    if views:
        _stand_in(x, views)
    inference = x._view is not None and family_of(x).inference
    x._view = AliasFamily(inference=True) if inference else None
    for one in followers:
        stand_for(one, x)


# -- other sizes -----------------------------------------------------------------------------------
@method()
def resize_(self: Any, *sizes: Any, size: Any = None, memory_format: Any = None) -> Any:
    """Give the tensor these sizes; elements stay in the order of memory. New elements are zeros.

    >>> import tracejit
    >>> tracejit.arange(6).resize_(2, 2).tolist()
    [[0, 1], [2, 3]]

    Raises RuntimeError for tensors that require grad, for views and tensors with views. Also where
    the memory would have to grow but arrays look at it, or it is on a CUDA device.
    """
    shape = sizes_given(sizes, size)
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    self = resolve_identity(self)
    _concrete(self)
    shape = tuple(int(n) for n in shape)
    if any(n < 0 for n in shape):
        raise RuntimeError("Trying to create tensor with negative dimension "
                           f"{min(shape)}: {list(shape)}")
    if self._shape == shape:
        return self
    if type(self._view) is View or _views_of(self):
        raise RuntimeError("resize_: the tensor is a view or has views; resize a clone of it")
    count = numel(shape)
    needed = (self._offset + count) * self._dtype.itemsize
    if count and needed > self._storage.nbytes:
        if self._device.type != "cpu":
            raise RuntimeError("resize_: memory on a CUDA device does not grow; resize a clone of "
                               "it")
        resize_storage(self._storage, needed)
    self._shape, self._strides, self._array, self._traced = shape, None, None, None
    bump_version(self)
    return self


@method()
def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Give the tensor the shape of another; see `resize_`.

    >>> import tracejit
    >>> tracejit.zeros(2).resize_as_(tracejit.zeros(3)).shape
    tracejit.Size([3])
    """
    must_be_tensors("resize_as_", ("the_template",), (the_template,))
    return resize_(self, tuple(the_template.shape))


@method()
def resize(self: Any, *sizes: Any) -> Any:
    """Return the elements in another shape: PyTorch's older name of `reshape`, which warns.

    RuntimeError for another number of elements.

    >>> import tracejit
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     tracejit.zeros(2, 3).resize(6).shape
    tracejit.Size([6])
    """
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    shape = sizes_given(sizes)
    if numel(shape) != numel(self.shape):
        given, own = ("x".join(str(int(n)) for n in s) for s in (shape, self.shape))
        raise RuntimeError(
            f"requested resize to {given} ({numel(shape)} elements in total), but the given tensor "
            f"has a size of {own} ({self.numel()} elements). autograd's resize can only change the "
            "shape of a given tensor, while preserving the number of elements. ")
    return self.reshape(shape)


@method()
def resize_as(self: Any, tensor: Any) -> Any:
    """Return the elements in the shape of another tensor; see `resize`, which warns.

    >>> import tracejit
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     tracejit.zeros(2, 3).resize_as(tracejit.zeros(6)).shape
    tracejit.Size([6])
    """
    return resize(self, *tensor.shape)
