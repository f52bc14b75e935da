"""Tensors that nodes keep from the forward computation, and the check that nobody overwrote them.

In: operands and results of ops. Out: the same tensors at backward, or the error that names the one
that was written since. Called by the tape and custom Functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tracejit.core.eager.nodes import Node, edge_of, grad_fn_of
from tracejit.core.eager.recording import active, ended_to_hints
from tracejit.core.eager.state import CUT, TensorState, make, shape_of
from tracejit.core.eager.type_names import tensor_type_name
from tracejit.core.eager.views import AliasFamily, canonical, counting_family, family_of
from tracejit.core.ops.shapes import shape_text


def version_of(x: TensorState) -> int:
    """Return how often the memory behind x was written."""
    family, tracer = counting_family(x), active.tracer
    if family is not None:
        return family.version  # type: ignore[return-value]
    if tracer is not None:
        return tracer.version(x)
    return 0 if x._storage is None else x._storage.version


def versions_of(tensors: Sequence[TensorState]) -> list[int]:
    if active.tracer is not None:
        return [version_of(x) for x in tensors]
    return [version_of(x) if x._view is not None or x._storage is None else x._storage.version
            for x in tensors]


def over_same_memory(x: TensorState) -> Any:
    """Make a tensor over the same memory, off the tape and of no family of views."""
    if active.tracer is not None:
        return active.tracer.alias(x)
    t = make(x._storage, x._offset, x._shape, x._strides, x._dtype, x._device)
    t._array, t._traced = x._array, x._traced
    return t


def detached(x: TensorState) -> Any:
    """Return an alias without history, as `detach()` does; for a tracer gradients do not pass it
    either."""
    tracer = active.tracer
    if tracer is None:
        return alias(x)
    t = alias(tracer.severed(x))
    if x._requires_grad:
        tracer.forgets(t)
    return t


def alias(x: TensorState) -> Any:
    """Make a tensor over the same memory without history. It stays in a family that counts writes,
    or is of inference mode."""
    t = over_same_memory(x)
    view = x._view
    if view is not None and (family_of(x).version is not None or family_of(x).inference):
        t._view = family_of(x)
    return t


class TensorLabel(NamedTuple):
    """Label of a written tensor in an error: its type, and the node and result number that made it.

    The name of the node is empty if there is none.
    """

    dtype: Any
    device: Any
    shape: tuple
    made: str
    number: int


def label_of(x: TensorState, node: Node | None, number: int, shape: tuple | None = None
             ) -> TensorLabel:
    """Label a tensor that is result `number` of a node. `shape`: as recorded, None: its own."""
    shape = shape_of(x) if shape is None else shape
    return TensorLabel(x._dtype, x._device, shape, "" if node is None else node.name(), number)


def label_of_itself(x: TensorState, shape: tuple | None = None) -> TensorLabel:
    """Label a tensor by its own history."""
    return label_of(x, grad_fn_of(x), x._output_nr, shape)


def label_now(itself: weakref.ref | None, before: TensorLabel, shape: tuple | None = None,
              family: AliasFamily | None = None) -> TensorLabel:
    """Label a result that may be gone. While it lives, its own history labels it, unless the node
    is that of a call, branch or loop: then `before` does.

    If the result is gone, its family knows the last node that wrote it.
    """
    x = None if itself is None else itself()
    if x is None:
        written = None if family is None else family.written_by
        return before if written is None else before._replace(made=written[0], number=written[1])
    node = grad_fn_of(x)
    return before if node and node.opaque else label_of_itself(x, shape)


class SavedResult:
    """Memory of a result that a node keeps without holding the user's tensor.

    label   of the tensor in errors
    itself  the user's tensor, if the node keeps that one; held weakly
    """

    __slots__ = ("tensor", "version", "label", "itself")

    def __init__(self, tensor: TensorState, label: TensorLabel, itself: TensorState | None):
        self.tensor = over_same_memory(tensor)
        self.version = version_of(self.tensor)
        self.label, self.itself = label, None if itself is None else weakref.ref(itself)

    def intact(self) -> bool:
        return version_of(self.tensor) == self.version

    def unpack(self) -> None:
        version = version_of(self.tensor)
        if version != self.version:
            raise modified(label_now(self.itself, self.label), version, self.version)


PACKED = -1  # version of a saved tensor that a packer keeps: nobody checks it


@contextmanager
def packing(packer: Callable[[Any], Any] | None) -> Iterator[None]:
    """Set the packer for the block: nodes made inside keep `packer(tensor)`; None: the tensor
    itself."""
    before, active.packer = active.packer, packer
    try:
        yield
    finally:
        active.packer = before


class KeptHistory:
    """History of a tensor that a packer keeps in another form."""

    __slots__ = ("edge", "sink")

    def __init__(self, tensor: TensorState):
        self.edge = edge_of(tensor) if tensor._requires_grad else None
        # A copy of a leaf's elements must find the leaf's own sink, not get a new one.
        self.sink = tensor._node if grad_fn_of(tensor) is None else None

    def of(self, value: TensorState) -> Any:
        """Make a tensor with that history over the memory of `value`, which has the tensor's
        elements."""
        found = alias(value)
        if self.edge is not None:
            (found._node, found._output_nr), found._requires_grad = self.edge, True
            found._node = self.sink or found._node
        return found


class Saved:
    """Operand kept for backward, with its version and its output number at that time."""

    __slots__ = ("tensor", "version", "number", "__weakref__")

    def __init__(self, tensor: TensorState):
        view = tensor._view
        if view is not None and family_of(tensor).inference:
            raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use "
                               "Tensors created in "
                               "inference mode in computation tracked by autograd. To work around "
                               "this, you can make "
                               "a clone to get a normal tensor and use it in autograd, or use "
                               "`tracejit.no_grad()` "
                               "instead of `tracejit.inference_mode()`.")
        if active.packer is not None:
            self.tensor, self.version = active.packer(tensor), PACKED
            return
        self.tensor, self.version, self.number = tensor, version_of(tensor), tensor._output_nr
        if active.tracer is not None:
            active.tracer.keeps(self)

    def intact(self) -> bool:
        return self.version != PACKED and version_of(self.tensor) == self.version

    def unpack(self) -> Any:
        if self.version == PACKED:
            return self.tensor.unpack()
        version = version_of(self.tensor)
        if version != self.version:
            raise modified(label_of_itself(canonical(self.tensor)), version, self.version)
        if self.tensor._output_nr == CUT != self.number:
            raise RuntimeError("Trying to use a saved tensor that has been detached in-place, i.e. "
                               "with .detach_().This is not supported, please use out-of-place "
                               "`.detach()` instead")
        return self.tensor

    def label(self, shape: tuple) -> TensorLabel:
        return label_of_itself(self.tensor, shape)


class SavedOutput:
    """Result kept by the node that made it, as an alias: so node and tensor form no cycle."""

    __slots__ = ("tensor", "version", "node", "number", "__weakref__")

    def __init__(self, output: TensorState, node: Node, number: int):
        self.tensor, self.version, self.number = alias(output), version_of(output), number
        self.node = weakref.ref(node)
        if active.packer is not None:
            self.tensor, self.version = active.packer(self.tensor), PACKED
            return
        if active.tracer is not None:
            active.tracer.keeps(self)

    def intact(self) -> bool:
        return self.version != PACKED and version_of(self.tensor) == self.version

    def unpack(self) -> Any:
        node = self.node()
        if self.version == PACKED:
            tensor = self.tensor.unpack()
        else:
            tensor = self.tensor
            check_version(tensor, self.version, node, self.number)
        if not active.grad_enabled or node is None:
            return tensor
        t = alias(tensor)
        t._node, t._output_nr, t._requires_grad = node, self.number, True
        return t

    def label(self, shape: tuple) -> TensorLabel:
        return label_of(self.tensor, self.node(), self.number, shape)


def check_version(x: TensorState, expected: int, node: Node | None, number: int) -> None:
    """Raise RuntimeError if a saved tensor, which is result `number` of a node, was written
    since."""
    version = version_of(x)
    if version != expected:
        raise modified(label_of(x, node, number), version, expected)


def modified(label: TensorLabel, version: int, expected: int) -> RuntimeError:
    """Make the error for a backward that needs a tensor which was written since."""
    shape = shape_text(ended_to_hints(label.shape))
    what = f"[{tensor_type_name(label.dtype, label.device)} {shape}]"
    made = f", which is output {label.number} of {label.made}," if label.made else ""
    hint = ("Hint: the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable "
            "in question was changed in there or anywhere later. Good luck!" if active.anomaly else
            "Hint: enable anomaly detection to find the operation that failed to compute its "
            "gradient, with "
            "tracejit.autograd.set_detect_anomaly(True, check_nan=False).")
    return RuntimeError("one of the variables needed for gradient computation has been modified by "
                        "an inplace "
                        f"operation: {what}{made} is at version {version}; expected version "
                        f"{expected} instead. {hint}")


class Unsaved:
    """Type of an operand or result whose elements no gradient rule reads."""

    __slots__ = ("dtype", "shape", "device")

    def __init__(self, x: TensorState, tracer: Any):
        self.dtype, self.device = x._dtype, x._device
        self.shape = x._shape if tracer is None else tracer.shape(x)


def settle_shapes(known: Iterable[Any]) -> None:
    """Replace symbolic sizes of an ended recording in remembered shapes by plain numbers."""
    for x in known:
        if type(x) is Unsaved:
            x.shape = ended_to_hints(x.shape)
