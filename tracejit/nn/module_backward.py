"""Backward hooks of modules: gradients enter a module at its outputs and leave at its inputs.

In: one call of a module that has backward hooks. Out: its inputs and outputs passed through
identity functions on the tape, whose backward calls the hooks. Used by
`module_hooks.call_with_hooks` only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tracejit.autograd import Function
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.tensor import Tensor
from tracejit.nn.module_hooks import tensors_among

Hook = Callable[..., Any]


class BackwardWatch:
    """State of one call: it keeps the gradients of the outputs until those of the inputs are
    there."""

    def __init__(self, module: Any, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_count = 0
        self.input_places: list[int] = []

    def inputs(self, args: tuple) -> tuple:
        """Return the arguments, with tensors passed through an identity where one of them requires
        grad."""
        self.input_count = len(args)
        places = tensors_among(args)
        if not is_grad_enabled() or not any(args[k].requires_grad for k in places):
            return args
        self.input_places = places
        passed = _as_tuple(_Entry.apply(self, *(args[k] for k in places)))
        return tuple(_replaced(args, places, passed))

    def outputs(self, output: Any) -> Any:
        """Return the output, with tensors passed through an identity where one of them requires
        grad."""
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn("For backward hooks to be called, module output should be a Tensor or a "
                          f"tuple of Tensors but received {type(output)}", stacklevel=5)
        values = output if isinstance(output, tuple) else (output,)
        places = tensors_among(values)
        if not is_grad_enabled() or not any(values[k].requires_grad for k in places):
            return output
        passed = _as_tuple(_Exit.apply(self, len(values), places, *(values[k] for k in places)))
        changed = _replaced(values, places, passed)
        if not isinstance(output, tuple):
            return changed[0]
        # a named tuple takes its fields one by one
        return tuple(changed) if type(output) is tuple else type(output)(*changed)

    def reached_outputs(self, grads: tuple, count: int, places: list[int]) -> tuple:
        """Let pre-hooks replace the gradients of the outputs, where backward arrives."""
        full: tuple = _spread(grads, places, count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, full)
            if replaced is not None:
                full = _of_length(replaced, count, "pre hook", "grad_output")
        self.grad_outputs = full
        # no gradient leaves at the inputs, so nothing else calls the hooks
        if not self.input_places:
            self._call_hooks_without_inputs()
        return tuple(full[k] for k in places)

    def reached_inputs(self, grads: tuple) -> tuple:
        """Let hooks replace the gradients of the inputs, where backward leaves."""
        if self.grad_outputs is None:
            return grads  # they came past the outputs, as in a backward of the backward
        full: tuple = _spread(grads, self.input_places, self.input_count)
        for hook in self.hooks:
            replaced = hook(self.module, full, self.grad_outputs)
            if replaced is not None:
                full = _of_length(replaced, self.input_count, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(full[k] for k in self.input_places)

    def _call_hooks_without_inputs(self) -> None:
        warnings.warn("Full backward hook is firing when gradients are computed with respect to "
                      "module outputs since no inputs require gradients.", stacklevel=5)
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if replaced is not None and not (
                isinstance(replaced, tuple) and all(value is None for value in replaced)
            ):
                raise RuntimeError("Backward hook for Modules where no input requires gradient "
                                   "should always return None or None for all gradients.")
        self.grad_outputs = None


class _Entry(Function):
    """Identity on the inputs of a module."""

    @staticmethod
    def forward(ctx: Any, watch: BackwardWatch, *tensors: Any) -> Any:
        ctx.watch = watch
        return _aliases(ctx, tensors)

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
        ctx.set_materialize_grads(False)  # hooks see None where nothing arrives
        return _aliases(ctx, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, *ctx.watch.reached_outputs(grads, ctx.count, ctx.places))


def _aliases(ctx: Any, tensors: tuple) -> tuple:
    """Return the tensors again. They require grad where they did."""
    # new tensors: each gets this Function's node
    made = tuple(t.view_as(t) for t in tensors)
    ctx.mark_non_differentiable(*(m for m, t in zip(made, tensors) if not t.requires_grad))
    return made


def _as_tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _of_length(value: Any, count: int, hook: str, what: str) -> tuple:
    """Return the result of a hook as a tuple. Raise RuntimeError unless its length is `count`."""
    made = _as_tuple(value)
    if len(made) != count:
        raise RuntimeError(f"Backward {hook} returned an invalid number of {what}, got "
                           f"{len(made)}, but expected {count}")
    return made


def _replaced(values: tuple, places: list[int], new: tuple) -> list[Any]:
    """`values` with others at `places`."""
    changed = list(values)
    for k, value in zip(places, new):
        changed[k] = value
    return changed


def _spread(values: tuple, places: list[int], count: int) -> tuple:
    """`values` at their places among `count`, None elsewhere."""
    full: list[Any] = [None] * count
    for k, value in zip(places, values):
        full[k] = value
    return tuple(full)
