"""Writing to tensors in place: checks, memory, version, history.

In: `self._assign(result)` from every in-place op, `copy_`, `fill_`, `zero_`, `tensor.data = x`.
Out: the tensor's memory holds the result; its version moved on; the tape knows that it does, also
when the tensor is a view.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from tracejit.eager.recording import active
from tracejit.eager.state import LEAKED, TensorState, make, shape_of
from tracejit.eager.tape import (
    Edge,
    Node,
    OpNode,
    Saved,
    SavedOutput,
    alias,
    edge_of,
    grad_fn_of,
    refresh,
    type_of,
)
from tracejit.eager.type_names import scalar_name, tensor_type_name
from tracejit.eager.views import Family, View, chain_of, family_of
from tracejit.ops import creation, pointwise
from tracejit.ops.record import apply
from tracejit.ops.shapes import shape_text
from tracejit.ops.types import FLOATING, TensorType, can_cast

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
NO_GRAD_VIEW = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given "
    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by "
    "moving both the view and the inplace either both inside the no_grad block (if you don't want "
    "the "
    "inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
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


def assign(self: TensorState, result: Any) -> Any:
    """Store `result` in the memory of `self`; what every in-place op ends with.

    Raises RuntimeError for leaves that require grad (in grad mode), for results that are larger
    than `self` or of a dtype of a higher kind, and for tensors whose elements share memory.
    """
    check_writable(self)
    if not can_cast(result._dtype, self._dtype):
        raise RuntimeError(f"result type {scalar_name(result._dtype)} can't be cast to the desired "
                           "output type "
                           f"{scalar_name(self._dtype)}")
    return store(self, result)


def check_writable(self: TensorState, overlap: bool = False) -> None:
    """The checks of an in-place op that need no result; `overlap`: elements may share memory."""
    view = self._view
    if view is not None:
        refresh(self)
        if family_of(self).inference and not active.inference:
            raise RuntimeError(INFERENCE_WRITE)
    if self._requires_grad and active.grad_enabled:
        if type(view) is View:
            base, _ = chain_of(self)
            if base._requires_grad and grad_fn_of(base) is None:
                raise RuntimeError(LEAF_VIEW)
        elif grad_fn_of(self) is None:
            raise RuntimeError(LEAF)
    if self._strides is not None and active.recorder is None and not overlap:
        if any(s == 0 and n > 1 for s, n in zip(self._strides, self._shape)):
            raise RuntimeError(OVERLAP)


def store(self: TensorState, result: Any) -> Any:
    """Write a result that passed the checks: cast, broadcast, memory, version, history."""
    if result._dtype is not self._dtype:
        result = pointwise.convert(result, self._dtype)
    shape = shape_of(self)
    if shape_of(result) != shape:
        result = _broadcast_to(result, shape)
    if active.grad_enabled and (self._requires_grad or result._requires_grad):
        check_rebase(self)
        if result._requires_grad:
            keep_original(self, edge_of(result)[0])
        write_memory(self, result)
        rebase(self, result)
    else:
        write_memory(self, result)
    return self


def _broadcast_to(result: Any, shape: tuple) -> Any:
    given = shape_of(result)
    if len(given) > len(shape) or any(n != m and n != 1 for n, m in zip(given[::-1], shape[::-1])):
        raise RuntimeError(f"output with shape {shape_text(shape)} doesn't match the broadcast "
                           "shape "
                           f"{shape_text(given)}")
    return result.expand(shape)


def write_memory(self: TensorState, result: Any) -> None:
    """Copy elements (same shape and dtype) and move the version on; nothing about history."""
    recorder = active.recorder
    if recorder is not None:
        recorder.write(self, result)
        return
    if self._storage is None:
        raise RuntimeError(LEAKED)
    if self._storage.readonly:
        raise ValueError("assignment destination is read-only: the memory belongs to an array that "
                         "may not be written")
    if self._device.type == "cpu":
        np.copyto(_writable_array(self), result.array)
    else:
        self.array[...] = result.array
    bump_version(self)


def _writable_array(self: TensorState) -> np.ndarray:
    """The array over the tensor's memory; the one NumPy made by broadcasting refuses writes."""
    if not self.array.flags.writeable:
        self._array = None
    return self.array


def bump_version(self: TensorState) -> None:
    """Say that the memory behind a concrete tensor was written."""
    if self._view is not None:
        family = family_of(self)
        if family.version is not None:
            family.version += 1
            return
    self._storage.version += 1  # type: ignore[union-attr]


def check_rebase(self: TensorState) -> None:
    """RuntimeError where a write needs a history that cannot be given."""
    if self._dtype.category < FLOATING:
        raise RuntimeError(f"cannot record a write to a tensor of dtype {self._dtype.name}: no "
                           "gradient")
    if type(self._view) is View:
        base, steps = chain_of(self)
        if any(step.untracked for step in steps):
            raise RuntimeError(NO_GRAD_VIEW)
        if base._requires_grad and grad_fn_of(base) is None:
            raise RuntimeError(LEAF_VIEW)


# nodes between what an in-place op read and its result: casts, the parts of a composite
_DEPTH_OF_AN_OP = 3


def keep_original(self: TensorState, node: Node) -> None:
    """Where the op that writes `self` saved it, save a copy instead: its old value is needed, by
    right.
    """
    original = None
    level = [node]
    for _ in range(_DEPTH_OF_AN_OP):
        for n in level:
            if not isinstance(n, OpNode) or n.operands is None:
                continue
            if any(type(x) is Saved and x.tensor is self for x in n.operands):
                original = _original(self) if original is None else original
                n.operands = tuple([original if type(x) is Saved and x.tensor is self else x
                                    for x in n.operands])
        level = [e[0] for n in level for e in n.edges if e is not None]


def _original(self: TensorState) -> Saved:
    """A copy of a tensor as it is now, with the history it has now."""
    copy = alias(self).clone()
    if self._requires_grad:
        copy._node, copy._output_nr = edge_of(self)
        copy._requires_grad = True
    return Saved(copy)


def rebase(self: TensorState, result: Any) -> None:
    """Make the history of `self` (and of the base it views) that of `result`."""
    if type(self._view) is View:
        base, steps = chain_of(self)
        source = edge_of(result) if result._requires_grad else None
        old = edge_of(base) if base._requires_grad else None
        set_history(base, CopySlices(old, source, steps, type_of(base), type_of(result)), 0)
        base._view.generation += 1
        refresh(self)
        return
    if result._requires_grad:
        node, number = edge_of(result)
        if type(node) is OpNode or isinstance(node, OpNode):
            _keep_written(node, number, self, result)
    else:
        node, number = Overwrite(edge_of(self), type_of(self)), 0
    set_history(self, node, number)
    if self._view is not None:
        self._view.generation += 1


def _keep_written(node: OpNode, number: int, self: TensorState, result: Any) -> None:
    """What the node saved of its result is now `self`: later writes to it are noticed, its copy is
    freed.
    """
    kept = node.outputs[number] if node.outputs is not None else None
    if type(kept) is SavedOutput and active.recorder is None and result._view is None:
        outputs = list(node.outputs)
        outputs[number] = SavedOutput(self, node, number)
        node.outputs = tuple(outputs)


def set_history(x: TensorState, node: Node, number: int) -> None:
    """x is from now on output `number` of `node`; a retained gradient moves along."""
    before = grad_fn_of(x)
    if before is not None and before.extras is not None:
        held = before.extras.retained.get(x._output_nr)
        if held is not None and held() is x:
            del before.extras.retained[x._output_nr]
            node.extra().retained[number] = weakref.ref(x)
    x._node, x._output_nr, x._requires_grad = node, number, True


class Overwrite(Node):
    """A write of something without gradient: what was there before gets zeros."""

    __slots__ = ("type",)

    def __init__(self, edge: Edge, type: TensorType):
        super().__init__((edge,))
        self.type = type

    def apply(self, grads: list) -> list:
        return [creation.zeros_of(grads[0], self.type)]

    def name(self) -> str:
        return "CopyBackwards"


class CopySlices(Node):
    """A write through a view: the base's gradient outside the view goes on, inside it goes to what
    was written.
    """

    __slots__ = ("steps", "base_type", "source_type")

    def __init__(self, base: Edge, source: Edge, steps: list[View], base_type: TensorType,
                 source_type: TensorType):
        super().__init__((base, source))
        self.steps = [(s.op, s.operands, s.attributes) for s in steps]
        self.base_type, self.source_type = base_type, source_type

    def apply(self, grads: list) -> list:
        seen = [grads[0]]
        for op, operands, attributes in self.steps:
            seen.append(apply(op, (seen[-1], *operands), attributes))
        base = self._without_slice(seen) if self.edges[0] is not None else None
        return [base, seen[-1] if self.edges[1] is not None else None]

    def _without_slice(self, seen: list) -> Any:
        from tracejit.ops.movement import VIEW_INVERSE

        grad = creation.zeros_of(seen[0], self.source_type)
        for (op, _, attributes), before in zip(reversed(self.steps), reversed(seen[:-1])):
            grad = VIEW_INVERSE[op.name](before, grad, **attributes)
        return grad


def set_data(self: TensorState, value: Any) -> None:
    """`self.data = value`: the tensor looks at the memory of `value` from now on; its history
    stays.
    """
    if not isinstance(value, TensorState):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if value._dtype.category < FLOATING and self._requires_grad:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or "
                           "complex dtype")
    recorder = active.recorder
    if recorder is not None:
        if value._dtype is self._dtype and recorder.shape(value) == recorder.shape(self):
            recorder.write(self, value)
            return
        recorder.need(self, "tensor.data was replaced by a tensor of another shape or dtype")
    take_memory(self, value)


def take_memory(self: TensorState, other: TensorState) -> None:
    """Look at the memory of a concrete tensor."""
    if other._storage is None:
        raise RuntimeError(LEAKED)
    self._storage, self._offset, self._shape = other._storage, other._offset, other._shape
    self._strides, self._dtype, self._device = other._strides, other._dtype, other._device
    self._array, self._traced = other._array, None


def get_data(self: TensorState) -> Any:
    """`self.data`: the same memory without history; writes through it are not counted against saved
    tensors.
    """
    if active.recorder is not None:
        return active.recorder.alias(self)
    t = make(self._storage, self._offset, self._shape, self._strides, self._dtype, self._device)
    t._array, t._traced = self._array, self._traced
    t._view = Family(version=0)
    return t


def copy_(self: TensorState, source: Any, non_blocking: bool = False) -> Any:
    """Write `source`, cast, moved and broadcast as needed; gradients flow to it."""
    if not isinstance(source, TensorState):
        raise TypeError("copy_(): argument 'other' (position 1) must be Tensor, not "
                        f"{type(source).__name__}")
    check_writable(self)
    moved = source.to(self._device) if source._device != self._device else source
    if moved._dtype is not self._dtype:
        moved = pointwise.convert(moved, self._dtype)
    elif moved._requires_grad and active.grad_enabled or active.recorder is not None:
        moved = moved.clone()
    return store(self, moved)


def fill_(self: TensorState, value: Any) -> Any:
    """Write one number (or 0-dim tensor) everywhere."""
    if isinstance(value, TensorState):
        if shape_of(value):
            raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                               f"{len(shape_of(value))} dimensions.")
        return copy_(self, value)
    check_writable(self, overlap=True)
    number = pointwise.coerce(value, self._dtype)
    return store(self, creation.full_of(self, shape_of(self), number, self._dtype, self._device))


def type_text(x: TensorState) -> str:
    """`x.type()`."""
    return tensor_type_name(x._dtype, x._device)
