"""Deferred tensors become concrete: the memory their segment produced, seen through their views.

In: deferred tensors, and the tensor that the program made for each piece of fresh memory. Out:
nothing; the deferred tensors are changed in place. Called by `flush` when a segment has run; a
replay lays out results by `laid_out`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.tape import alias
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import empty
from tracejit.jit.capture.storage import FunctionalStorage, FunctionalTensor, substitute
from tracejit.jit.ir.graph import Value


def materialise(tensors: list[Tensor], roots: dict[FunctionalStorage, Tensor],
                known: Mapping[Value, Tensor]) -> None:
    """Make deferred tensors concrete, in place.

    `roots`: the tensor of each piece of fresh memory. `known`: concrete tensors for the further
    operands of views.
    """
    saved, active.tracer = active.tracer, None
    try:
        for tensor in tensors:
            traced = tensor._traced
            memory = traced.memory
            root: Any = roots[memory] if memory.input_tensor is None else memory.input_tensor
            if memory.input_tensor is None:
                root._storage.version = memory.version
            shown = apply_views(root, traced.views, traced, known)
            tensor._storage, tensor._offset = shown._storage, shown._offset
            tensor._shape, tensor._strides = shown._shape, shown._strides
            tensor._array, tensor._traced = shown._array, None
    finally:
        active.tracer = saved


def laid_out(root: Tensor, strides: tuple[int, ...]) -> Tensor:
    """Return a copy of `root` in new memory with these strides (in elements)."""
    steps = zip(root._shape, strides)
    span = 1 + sum((n - 1) * s for n, s in steps) if 0 not in root._shape else 0
    made = empty((span,), dtype=root._dtype, device=root._device)
    made = made.as_strided(root._shape, strides).detach()
    made.array[...] = root.array
    return made


def apply_views(
    root: Tensor, views: tuple, traced: FunctionalTensor, known: Mapping[Value, Tensor]
) -> Any:
    """Return the array that recorded views of the concrete tensor `root` lead to, with the sizes of
    the recorded call."""
    array: Any = alias(root)
    values = traced.memory.value.graph.scope.hints
    with no_grad():
        for op, operands, attributes in views:
            given = {k: substitute(v, values) for k, v in attributes.items()}
            array = op(array, *[known[x] for x in operands], **given)
    return array
