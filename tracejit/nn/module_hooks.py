"""Hooks of modules: functions that see, and may replace, the arguments and the output of a module.

In: `module.register_*_hook(function)`, which returns a handle with `remove()`. Out:
`call_with_hooks`, the slow path of `Module.__call__`, in PyTorch's order: pre-hooks, forward,
hooks. Backward hooks are tied to the tape by identity functions around the call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.recording import active
from tracejit.core.eager.tape import RemovableHandle
from tracejit.core.eager.tensor import Tensor
from tracejit.nn.module_global_hooks import global_hooks, is_full
from tracejit.nn.module_older_backward import hook_last_operation


class Hooks:
    """Part of Module that registers hooks."""

    _forward_pre_hooks: dict[int, Callable[..., Any]]
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: dict[int, bool]  # numbers of those that get them
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _backward_hooks: dict[int, Callable[..., Any]]
    _backward_pre_hooks: dict[int, Callable[..., Any]]
    _is_full_backward_hook: bool | None = None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Register `hook(module, args)` to run before forward. A result that is not None replaces
        the arguments.

        with_kwargs: `hook(module, args, kwargs)`, which returns None or (args, kwargs).
        """
        return _add(self._forward_pre_hooks, hook, prepend,
                    (self._forward_pre_hooks_with_kwargs, with_kwargs))

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Register `hook(module, args, output)` to run after forward. A result that is not None
        replaces the output.

        with_kwargs: `hook(module, args, kwargs, output)`; always_call: also when forward raised
        (output None).
        """
        return _add(self._forward_hooks, hook, prepend,
                    (self._forward_hooks_with_kwargs, with_kwargs),
                    (self._forward_hooks_always_called, always_call))

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(module, grad_input, grad_output)` to run when the gradients of the inputs
        are known. A result that is not None replaces grad_input.

        Raises RuntimeError where there are hooks of `register_backward_hook`.
        """
        self._tj_agree(full=True)
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register an older `register_full_backward_hook`: `grad_input` holds the gradients of the
        operands of the module's last operation.

        Raises RuntimeError where there are hooks of the newer form.
        """
        self._tj_agree(full=False)
        return _add(self._backward_hooks, hook, False)

    def _tj_agree(self, full: bool) -> None:
        # None before the first hook, which decides the form
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(module, grad_output)` to run before the module's backward. A result that
        is not None replaces grad_output."""
        return _add(self._backward_pre_hooks, hook, prepend)


def _add(hooks: dict[int, Any], hook: Callable[..., Any], prepend: bool,
         *asked: tuple[dict[int, bool], bool]) -> RemovableHandle:
    """Register a hook. Its number goes into the tables of `asked` that are wanted."""
    before = list(hooks.items()) if prepend else []
    # a dict keeps its order: the others are put back behind the new hook
    if prepend:
        hooks.clear()
    tables = [table for table, wanted in asked if wanted]
    handle = RemovableHandle(hooks, hook, extra_dict=tables)
    for table in tables:
        table[handle.id] = True
    hooks.update(before)
    return handle


def call_with_hooks(module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a module between its hooks; those of all modules come first."""
    call = _Call(args, kwargs)
    try:
        return call.run(module)
    except Exception:
        call.after_error(module)
        raise


class _Call:
    """State of one call: its arguments and output as hooks left them, and the hooks that ran."""

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs, self.output = args, kwargs, None
        self.called: set[int] = set()

    def run(self, module: Any) -> Any:
        """Call the pre-hooks, forward, and the hooks."""
        full, older = _backward_hooks(module)
        watch = None
        self.args, self.kwargs = _before(module, self.args, self.kwargs)
        if full or module._backward_pre_hooks or everywhere and global_hooks("backward_pre"):
            # Backward hooks need the tape's Function, which plain calls do without.
            from tracejit.nn.module_backward import BackwardWatch

            before = [hook for _, hook, *_ in global_hooks("backward_pre")] if everywhere else []
            watch = BackwardWatch(module, full, [*before, *module._backward_pre_hooks.values()])
            self.args = watch.inputs(self.args)
        tracer, forward = active.tracer, module.forward
        if older:  # a compiled forward has one node for all its operations
            forward = getattr(forward, "__wrapped__", forward)
        forward = forward if tracer is None else tracer.convert_call(forward)
        self.output = forward(*self.args, **self.kwargs)
        for number, hook, with_kwargs, _ in _forward_hooks(module):
            self.called.add(number)
            self._hand_output(module, hook, with_kwargs)
        output = self.output if watch is None else watch.outputs(self.output)
        if older:
            hook_last_operation(module, self.args, output, older)
        return output

    def after_error(self, module: Any) -> None:
        """Call the hooks that are always called. Their errors only warn: the first error is
        raised."""
        own = module._forward_hooks
        for number, hook, with_kwargs, always in _forward_hooks(module):
            # a hook sees each call once
            if always and number not in self.called:
                try:
                    self._hand_output(module, hook, with_kwargs)
                except Exception as error:
                    whose = "module" if number in own else "global module"
                    warnings.warn(f"{whose} forward hook with ``always_call=True`` raised an "
                                  "exception that was silenced as another error was raised in "
                                  f"forward: {error}", stacklevel=4)

    def _hand_output(self, module: Any, hook: Callable[..., Any], with_kwargs: bool) -> None:
        given = (self.args, self.kwargs) if with_kwargs else (self.args,)
        replaced = hook(module, *given, self.output)
        self.output = self.output if replaced is None else replaced


def _forward_hooks(module: Any) -> list[tuple[int, Callable[..., Any], bool, bool]]:
    named, always = module._forward_hooks_with_kwargs, module._forward_hooks_always_called
    own = [(number, hook, number in named, number in always)
           for number, hook in module._forward_hooks.items()]
    return [*global_hooks("forward"), *own] if everywhere else own


def _backward_hooks(module: Any) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    """Return the hooks of a module's backward: those of the newer form, and of the older one."""
    full: list[Callable[..., Any]] = []
    older: list[Callable[..., Any]] = []
    if everywhere:
        (full if is_full() else older).extend([hook for _, hook, *_ in global_hooks("backward")])
    own = module._backward_hooks.values()
    (older if module._is_full_backward_hook is False else full).extend(own)
    return full, older


def _before(module: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    hooks = [(hook, False) for _, hook, *_ in global_hooks("forward_pre")] if everywhere else []
    named = module._forward_pre_hooks_with_kwargs
    own = [(hook, number in named) for number, hook in module._forward_pre_hooks.items()]
    for hook, with_kwargs in [*hooks, *own]:
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
    """Return the positions of the tensors in a tuple of arguments."""
    return [k for k, value in enumerate(values) if isinstance(value, Tensor)]
