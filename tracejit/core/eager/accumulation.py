"""Gradients that arrive: at `.grad` of a leaf, at a result that retains its own, at hooks.

In: a gradient. Out: `.grad` of a tensor, with what was there before. Called by the engine.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.hook_calls import replaced
from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active
from tracejit.core.eager.sole_gradients import alone
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.writing import assign
from tracejit.core.ops.shapes import shape_text


def accumulate(variable: TensorState, grad: Any) -> None:
    """Add to `variable.grad`. It takes over a first gradient that nobody else holds, else copies
    it."""
    if active.tracer is not None:
        active.tracer.grad_read(variable)
    held: Any = variable._grad
    tensors = isinstance(grad, TensorState) and (held is None or isinstance(held, TensorState))
    if tensors and active.tracer is None and grad._shape != variable._shape:
        raise RuntimeError(f"a gradient of shape {shape_text(grad._shape)} arrived at a leaf of "
                           f"shape {shape_text(variable._shape)}: one of the tensors between, or "
                           "the leaf, got another shape in place since")
    if not tensors:
        _accumulate_rows(variable, held, grad)
    elif held is None:
        if active.grad_enabled:
            variable._grad = grad
        else:
            variable._grad = _plain(grad) if alone(grad) else grad.detach().clone()
    elif active.grad_enabled:
        variable._grad = held + grad
    else:
        assign(held, held + grad)


def summed(held: Any, grad: Any) -> Any:
    """Add two gradients. Only the sparse one of two knows how to be added to a dense one."""
    swapped = isinstance(grad, TensorState) and not isinstance(held, TensorState)
    return grad + held if swapped else held + grad


def _accumulate_rows(variable: TensorState, held: Any, grad: Any) -> None:
    """Do what `accumulate` does where one of the gradients is sparse."""
    if held is None:
        variable._grad = grad if active.grad_enabled else grad.detach().clone()
    elif active.grad_enabled or not isinstance(held, TensorState) and isinstance(grad, TensorState):
        variable._grad = summed(held, grad)
    elif isinstance(held, TensorState):
        grad.add_into(held)
    else:
        held.add_(grad)


def _retain(result: TensorState, grad: Any) -> None:
    """Add to the gradient of a result that retains it, out of place: others may hold the old
    one."""
    if result._grad is None:
        accumulate(result, grad)
        return
    if active.tracer is not None:
        active.tracer.grad_read(result)
    result._grad = summed(result._grad, grad)


def _plain(grad: Any) -> Any:
    """Drop the view record of a gradient that a leaf takes over; its base is dead."""
    if grad._view is not None:
        grad._view = None
    return grad


def run_tensor_hooks(node: Node, grads: list) -> None:
    """Run the hooks on a node's results, then `retain_grad`; replaces gradients in place. Hooks on
    results without gradient get None if another result of the node has one."""
    extras = node.extras
    assert extras is not None
    told = not node.opaque and any(g is not None for g in grads)
    for number, hook in tuple(extras.tensor_hooks.values()):
        if told or grads[number] is not None:
            grads[number] = replaced(grads[number], hook)
    for number, holder in tuple(extras.retained.items()):
        tensor = holder()
        if tensor is not None and grads[number] is not None:
            _retain(tensor, grads[number])
