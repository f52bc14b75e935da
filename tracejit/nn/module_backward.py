"""Backward hooks of modules: where gradients enter a module's outputs and leave its inputs.

In: one call of a module that has backward hooks. Out: its inputs and outputs passed through
identity functions on the tape, whose backward calls the hooks. Used by
`module_hooks.call_with_hooks` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.autograd import Function
from tracejit.eager.modes import is_grad_enabled
from tracejit.nn.module_hooks import tensors_among

Hook = Callable[..., Any]


class BackwardWatch:
    """One call: remembers the gradients of its outputs until those of its inputs are there."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_count = 0
        self.input_places: list[int] = []

    def inputs(self, args: tuple) -> tuple:
        """The arguments, tensors passed through an identity where one of them requires grad."""
        self.input_count = len(args)
        places = tensors_among(args)
        if not is_grad_enabled() or not any(args[k].requires_grad for k in places):
            return args
        self.input_places = places
        passed = _as_tuple(_Entry.apply(self, *(args[k] for k in places)))
        changed = list(args)
        for k, tensor in zip(places, passed):
            changed[k] = tensor
        return tuple(changed)

    def outputs(self, output: Any) -> Any:
        """The output, its tensors passed through an identity where one of them requires grad."""
        single = not isinstance(output, (tuple, list))
        values = (output,) if single else tuple(output)
        places = tensors_among(values)
        if not is_grad_enabled() or not any(values[k].requires_grad for k in places):
            return output
        passed = _as_tuple(_Exit.apply(self, len(values), places, *(values[k] for k in places)))
        changed = list(values)
        for k, tensor in zip(places, passed):
            changed[k] = tensor
        return changed[0] if single else type(output)(changed)

    def reached_outputs(self, grads: tuple, count: int, places: list[int]) -> tuple:
        """Backward arrives: pre-hooks may replace the gradients of the outputs."""
        full: tuple = _spread(grads, places, count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, full)
            if replaced is not None:
                full = _as_tuple(replaced)
        self.grad_outputs = full
        if not self.input_places:
            self._call_hooks((None,) * self.input_count)
        return tuple(full[k] for k in places)

    def reached_inputs(self, grads: tuple) -> tuple:
        """Backward is through: hooks may replace the gradients of the inputs. They are not called
        where it did not come by the outputs, as in a second derivative."""
        if self.grad_outputs is None:
            return grads
        full = self._call_hooks(_spread(grads, self.input_places, self.input_count))
        return tuple(full[k] for k in self.input_places)

    def _call_hooks(self, grad_inputs: tuple) -> tuple:
        for hook in self.hooks:
            replaced = hook(self.module, grad_inputs, self.grad_outputs)
            if replaced is None:
                continue
            replaced = _as_tuple(replaced)
            if len(replaced) != len(grad_inputs):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, got "
                    f"{len(replaced)}, but expected {len(grad_inputs)}"
                )
            grad_inputs = replaced
        self.grad_outputs = None
        return grad_inputs


class _Entry(Function):
    """Identity on the inputs of a module."""

    @staticmethod
    def forward(ctx: Any, watch: BackwardWatch, *tensors: Any) -> Any:
        ctx.watch = watch
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.watch.reached_inputs(grads))


class _Exit(Function):
    """Identity on the outputs of a module."""

    @staticmethod
    def forward(
        ctx: Any, watch: BackwardWatch, count: int, places: list[int], *tensors: Any
    ) -> Any:
        ctx.watch, ctx.count, ctx.places = watch, count, places
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, *ctx.watch.reached_outputs(grads, ctx.count, ctx.places))


def _as_tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _spread(values: tuple, places: list[int], count: int) -> tuple:
    """`values` at their places among `count`, None elsewhere."""
    full: list[Any] = [None] * count
    for k, value in zip(places, values):
        full[k] = value
    return tuple(full)
