"""Calls of the hooks that the engine meets, and checks of the gradients that they return.

In: a hook and gradients. Out: the gradients to go on with. Raises PyTorch's TypeError or
RuntimeError for a result that cannot take the gradient's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import TensorState


def replaced(grad: Any, hook: Callable[[Any], Any]) -> Any:
    """Return the gradient that a tensor hook gives; None keeps the old one."""
    new = hook(grad)
    if new is None:
        return grad
    _check(new, grad, hook)
    return new if active.tracer is None else active.tracer.gave((grad,), (new,))[0]


def run_prehooks(node: Node, grads: list) -> list:
    """Run hooks that may replace the gradients a node gets."""
    assert node.extras is not None
    for hook in tuple(node.extras.prehooks.values()):
        new = hook(tuple(grads))
        if new is not None:
            given, grads = grads, list(_checked(new, grads, hook))
            if active.tracer is not None:
                grads = list(active.tracer.gave(given, grads))
    return grads


def run_hooks(node: Node, results: Sequence[Any], grads: list) -> Sequence[Any]:
    """Run hooks that may replace the gradients a node gives."""
    assert node.extras is not None
    for hook in tuple(node.extras.hooks.values()):
        new = hook(tuple(results), tuple(grads))
        if new is not None:
            results = _checked(new, results, hook)
    return results


def _checked(new: Any, old: Sequence[Any], hook: Any) -> tuple:
    if not isinstance(new, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
    if len(new) != len(old):
        raise RuntimeError(f"hook '{_name(hook)}' has returned an incorrect number of values "
                           f"(got {len(new)}, but expected {len(old)})")
    for value, known in zip(new, old):
        if value is None:
            continue
        _check(value, known, hook)
    return new


def _check(new: Any, old: Any, hook: Any) -> None:
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, TensorState) and type(new) is not type(old):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if new.shape != old.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if new.dtype is not old.dtype or new.is_sparse is not old.is_sparse:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {old.type()} "
                           f"got {new.type()})")


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", "<unknown>")
