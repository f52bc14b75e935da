"""Hooks on tensors: leaves carry theirs themselves, results have them on their node.

In: `register_hook`, `register_post_accumulate_grad_hook`. Out: callables that the engine calls at
the leaf's sink or the node.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.nodes import RemovableHandle, grad_fn_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState


class TensorHooks:
    """Hooks of a leaf. `before`: may replace a gradient before it is added to `.grad`;
    `accumulated`: run after that."""

    __slots__ = ("before", "accumulated")

    def __init__(self) -> None:
        self.before: dict[int, Callable] = {}
        self.accumulated: dict[int, Callable] = {}


def hooks_of(x: TensorState) -> TensorHooks:
    """Return the tensor's hooks, made on first use."""
    if x._hooks is None:
        x._hooks = TensorHooks()
    return x._hooks


def announce(x: TensorState) -> None:
    """Tell the tracer that requires_grad, the history or hooks of x are about to change."""
    if active.tracer is not None:
        active.tracer.history_written(x)


def register_hook(x: TensorState, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call `hook(grad)` once the gradient of x is known. Its result, if not None, replaces the
    gradient."""
    x = resolve_identity(x)
    if not x.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    announce(x)
    node = grad_fn_of(x)
    if node is None:
        return RemovableHandle(hooks_of(x).before, hook)
    # The node's table pairs the hook with the result's number, so the handle's own entry is moved.
    handle = RemovableHandle({}, hook)
    handle.hooks = node.extra().tensor_hooks
    handle.hooks[handle.id] = (x._output_nr, hook)
    return handle


def register_post_accumulate_grad_hook(x: TensorState,
                                       hook: Callable[[Any], None]) -> RemovableHandle:
    """Call `hook(tensor)`, which returns None, after a gradient was added to the leaf's `.grad`."""
    x = resolve_identity(x)
    if not x.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(x) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    announce(x)
    return RemovableHandle(hooks_of(x).accumulated, hook)


def retain_grad(x: TensorState) -> None:
    """Make the engine keep the gradient of a result in its `.grad`."""
    x = resolve_identity(x)
    if not x.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = grad_fn_of(x)
    if node is not None:
        announce(x)
        node.extra().retained[x._output_nr] = weakref.ref(x)


def retains_grad(x: TensorState) -> bool:
    """Return True if `retain_grad` was called on a result."""
    node = grad_fn_of(x)
    if node is None or node.extras is None:
        return False
    held = node.extras.retained.get(x._output_nr)
    return held is not None and held() is x
