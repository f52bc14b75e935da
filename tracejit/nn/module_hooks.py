"""Hooks of modules: functions that see, and may replace, what goes into a module and what comes
out.

In: `module.register_*_hook(function)`, which returns a handle with `remove()`. Out:
`call_with_hooks`, the slow path of `Module.__call__`, in PyTorch's order: pre-hooks, forward,
hooks. Backward hooks are tied to the tape by identity functions around the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.eager.recording import active
from tracejit.eager.tape import RemovableHandle
from tracejit.eager.tensor import Tensor


class Hooks:
    """The part of Module that registers hooks."""

    _forward_pre_hooks: dict[int, tuple[Callable[..., Any], bool]]
    _forward_hooks: dict[int, tuple[Callable[..., Any], bool, bool]]
    _backward_hooks: dict[int, Callable[..., Any]]
    _backward_pre_hooks: dict[int, Callable[..., Any]]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` before forward; a result that is not None replaces the arguments.

        with_kwargs: `hook(module, args, kwargs)`, which returns None or (args, kwargs).
        """
        return _add(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """`hook(module, args, output)` after forward; a result that is not None replaces the
        output.

        with_kwargs: `hook(module, args, kwargs, output)`; always_call: also when forward raised
        (output None).
        """
        return _add(self._forward_hooks, (hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        A result that is not None replaces grad_input.
        """
        return _add(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """`hook(module, grad_output)` before the module's backward; a result replaces "
        "grad_output."""
        return _add(self._backward_pre_hooks, hook, prepend)


def _add(hooks: dict[int, Any], entry: Any, prepend: bool) -> RemovableHandle:
    before = list(hooks.items()) if prepend else []
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, entry)
    hooks.update(before)
    return handle


def call_with_hooks(module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a module between its hooks."""
    args, kwargs = _before(module, args, kwargs)
    watch = None
    if module._backward_hooks or module._backward_pre_hooks:
        # Backward hooks need the tape's Function, which plain calls do without.
        from tracejit.nn.module_backward import BackwardWatch

        watch = BackwardWatch(module)
        args = watch.inputs(args)
    called: set[int] = set()
    try:
        recorder = active.recorder
        forward = module.forward if recorder is None else recorder.adapted(module.forward)
        output = forward(*args, **kwargs)
        for number, (hook, with_kwargs, _) in list(module._forward_hooks.items()):
            called.add(number)
            given = (module, args, kwargs, output) if with_kwargs else (module, args, output)
            replaced = hook(*given)
            output = output if replaced is None else replaced
    except Exception:
        for number, (hook, with_kwargs, always) in list(module._forward_hooks.items()):
            if always and number not in called:
                hook(*((module, args, kwargs, None) if with_kwargs else (module, args, None)))
        raise
    return output if watch is None else watch.outputs(output)


def _before(module: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    for hook, with_kwargs in list(module._forward_pre_hooks.values()):
        if with_kwargs:
            replaced = hook(module, args, kwargs)
            if replaced is not None:
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
        else:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    return args, kwargs


def tensors_among(values: tuple) -> list[int]:
    """Positions of the tensors in a tuple of arguments."""
    return [k for k, value in enumerate(values) if isinstance(value, Tensor)]
