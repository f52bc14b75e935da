"""Hooks of modules: functions that see, and may replace, what goes into a module and what comes
out.

In: `module.register_*_hook(function)`, which returns a handle with `remove()`. Out:
`call_with_hooks`, the slow path of `Module.__call__`, in PyTorch's order: pre-hooks, forward,
hooks. Backward hooks are tied to the tape by identity functions around the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    _is_full_backward_hook: bool | None = None

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

        Raises RuntimeError where there are hooks of `register_backward_hook`.
        """
        self._agree(full=True)
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of `register_full_backward_hook`: `grad_input` are the gradients of the
        operands of the module's last operation, whatever they are.

        Raises RuntimeError where there are hooks of the newer form.
        """
        self._agree(full=False)
        return _add(self._backward_hooks, hook, False)

    def _agree(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

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
    older = module._backward_hooks and module._is_full_backward_hook is False
    if module._backward_hooks and not older or module._backward_pre_hooks:
        # Backward hooks need the tape's Function, which plain calls do without.
        from tracejit.nn.module_backward import BackwardWatch

        watch = BackwardWatch(module)
        args = watch.inputs(args)
    called: set[int] = set()
    try:
        recorder, forward = active.recorder, module.forward
        if older:  # a compiled forward has one node for all its operations
            forward = getattr(forward, "__wrapped__", forward)
        forward = forward if recorder is None else recorder.adapted(forward)
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
    if older:
        _hook_last_operation(module, output)
    return output if watch is None else watch.outputs(output)


def _hook_last_operation(module: Any, output: Any) -> None:
    """The older backward hooks, on the node of the (first) result."""
    while not isinstance(output, Tensor):
        if not isinstance(output, (dict, list, tuple)) or not output:
            return
        output = next(iter(output.values() if isinstance(output, dict) else output))
    if output.grad_fn is not None:
        for hook in list(module._backward_hooks.values()):
            output.grad_fn.register_hook(partial(hook, module))


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
