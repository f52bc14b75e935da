"""Records of what graph inputs stand for: the caller's tensors, generators, numbers in containers.

In: objects the tracer met. Out: records that remember what they were before the call. Read when an
entry is made: each source must be found again on replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit.core.eager.hooks import retains_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.tape import grad_fn_of, refresh
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import random
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.storage import FunctionalTensor
from tracejit.jit.ir.graph import Value


class LiftedInput:
    """Tensor of the caller that became an input of the graph, and its `tensor_history` before the
    call."""

    __slots__ = ("tensor", "value", "traced", "before")

    def __init__(self, tensor: Any, value: Any, traced: FunctionalTensor | None):
        self.tensor, self.value, self.traced = tensor, value, traced
        self.before: tuple = () if traced is None else tensor_history(tensor)


class RngInput:
    """Generator the recording draws from.

    value, words   its state when first drawn from: the graph input, and a copy on the host
    count          draws in all
    tensor         a state as a tensor, from which draws count on
    offset         draws since that state
    """

    __slots__ = ("generator", "tensor", "value", "words", "count", "offset")

    def __init__(self, generator: random.Generator, tensor: Tensor, value: Value):
        self.generator, self.tensor, self.value = generator, tensor, value
        self.words = generator.array.copy()
        self.count: Any = 0  # an int, or a size where a loop draws
        self.offset = 0

    def any(self) -> bool:
        """Return True if there were any draws; a count that is a size comes from a loop that
        runs."""
        return type(self.count) is not int or self.count > 0

    def untouched(self) -> bool:
        """Return True if the generator was not seeded since."""
        return bool((self.generator.array == self.words).all())


def hooks_of(tensor: Tensor) -> tuple:
    """Return the functions that run when a gradient arrives at this tensor, or was accumulated."""
    hooks = tensor._hooks
    return () if hooks is None else (*hooks.before.values(), *hooks.accumulated.values())


def tensor_history(tensor: Tensor) -> tuple:
    """Return what a call may change of a tensor beside its memory: its gradient, and the rest."""
    if tensor._view is not None and tensor._traced is None:  # writes before the call count
        tracer, active.tracer = active.tracer, None
        try:
            refresh(tensor)
        finally:
            active.tracer = tracer
    node, hooks = grad_fn_of(tensor), tensor._hooks
    called: list = [] if hooks is None else [*hooks.before.items(), *hooks.accumulated.items()]
    if node is not None and node.extras is not None:
        called += node.extras.tensor_hooks.items()
    return tensor._grad, (tensor._requires_grad, node, retains_grad(tensor), *called)


class NumberSource(NamedTuple):
    """Entry of a container at which a number was read."""

    container: Any
    key: Any

    @property
    def text(self) -> str:
        return repr(self.key)


def values_of(sources: Sequence[Any]) -> list[Any]:
    """Return graph inputs as a segment takes them: tensors, numbers, generator states."""
    return [
        x.hint if is_a(x, SymNumber) else x.words if type(x) is RngInput else x
        for x in sources
    ]
