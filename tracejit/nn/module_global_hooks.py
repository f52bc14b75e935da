"""Hooks that all modules call, under PyTorch's names in `nn.modules.module`.

In: `register_module_forward_hook(function)` and its like. Out: handles with `remove()`. The hooks
run before a module's own; `module_hooks.call_with_hooks` calls those of calls, `Module` those of
registrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.recording import active
from tracejit.core.eager.tape import RemovableHandle

Hook = Callable[..., Any]
_full: list[bool] = []  # of the global backward hooks, once there was one


def global_hooks(kind: str) -> list[tuple[int, Hook, bool, bool]]:
    """Return the hooks of one kind: number, function, with_kwargs, always_call."""
    entries = list(everywhere.items())
    return [(number, hook, kwargs, always)
            for number, (of, hook, kwargs, always) in entries if of == kind]


def _register(kind: str, hook: Hook, with_kwargs: bool = False, always_call: bool = False
              ) -> RemovableHandle:
    if active.tracer is not None:
        # no replay would register the hook
        active.tracer.break_graph(
            None, "the function registers a hook of all modules", "register it outside")
    return RemovableHandle(everywhere, (kind, hook, with_kwargs, always_call))


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, args)` to run before each module's forward. A result that is not None
    replaces the arguments."""
    return _register("forward_pre", hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Register `hook(module, args, output)` to run after each module's forward. A result that is
    not None replaces the output.

    with_kwargs: `hook(module, args, kwargs, output)`; always_call: also when forward raised.

    >>> from tracejit import nn, ones
    >>> from tracejit.nn.modules.module import register_module_forward_hook
    >>> seen = []
    >>> with register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
    ...     _ = nn.Sequential(nn.Linear(2, 2), nn.ReLU())(ones(1, 2))
    >>> seen
    ['Linear', 'ReLU', 'Sequential']
    """
    return _register("forward", hook, with_kwargs, always_call)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Register an older `register_module_full_backward_hook`: `grad_input` holds the gradients of
    the operands of each module's last operation.

    Raise RuntimeError where hooks of the newer form were registered.
    """
    _agree(full=False)
    return _register("backward", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, grad_input, grad_output)` to run when the gradients of each module's
    inputs are known. A result that is not None replaces grad_input.

    RuntimeError where hooks of `register_module_backward_hook` were registered.
    """
    _agree(full=True)
    return _register("backward", hook)


def _agree(full: bool) -> None:
    if _full and _full[-1] is not full:
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a "
                           "global Module hook. Please use only one of them.")
    _full[:] = [full]


def is_full() -> bool:
    """Return True if global backward hooks are of the newer form."""
    return _full == [True]


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, grad_output)` to run before each module's backward. A result replaces
    grad_output."""
    return _register("backward_pre", hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, name, parameter)` to run when a module gets a parameter. A result
    replaces it."""
    return _register("parameter", hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, name, buffer)` to run when a module gets a buffer. A result replaces
    it."""
    return _register("buffer", hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Register `hook(module, name, submodule)` to run when a module gets a submodule. A result
    replaces it."""
    return _register("module", hook)


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """Return the value to register, after the hooks of that kind saw it. No hook sees the place of
    an absent parameter."""
    if kind == "parameter" and value is None:
        return None
    for _, hook, _, _ in global_hooks(kind) if everywhere else ():
        replaced = hook(module, name, value)
        value = value if replaced is None else replaced
    return value
