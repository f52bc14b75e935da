"""Hooks of optimizers: functions that are called around `step()` and around the state dict.

In: `optimizer.register_*_hook(function)`, which returns a handle with `remove()`; or
`register_optimizer_step_pre_hook(function)`, for all optimizers. Out: `with_hooks`, which every
class's `step` is made with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tracejit.core.eager.recording import as_captured
from tracejit.core.eager.tape import RemovableHandle
from tracejit.optim.state import note_step

_before_all: dict[int, Callable[..., Any]] = {}
_after_all: dict[int, Callable[..., Any]] = {}
TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(optimizer, args, kwargs)` to run before each step of every optimizer."""
    return RemovableHandle(_before_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(optimizer, args, kwargs)` to run after each step of every optimizer."""
    return RemovableHandle(_after_all, hook)


class Hooks:
    """Part of Optimizer that registers hooks."""

    # Of optimizers around others, which may not call `Optimizer.__init__`.
    _optimizer_step_pre_hooks: Mapping[int, Callable[..., Any]] = MappingProxyType({})
    _optimizer_step_post_hooks: Mapping[int, Callable[..., Any]] = MappingProxyType({})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = with_hooks(vars(cls)["step"])  # type: ignore[attr-defined]

    def _add_tables(self) -> None:
        for name in TABLES:
            self.__dict__.setdefault(name, {})

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run before each step. args begin with the
        optimizer. A result that is not None replaces args and kwargs."""
        return self._hooked("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run after each step."""
        return self._hooked("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer)` to run before `state_dict()`."""
        return self._hooked("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)` to run after `state_dict()`. It may return another
        one."""
        return self._hooked("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)` to run before `load_state_dict()`. It may return
        another one."""
        return self._hooked("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer)` to run after `load_state_dict()`."""
        return self._hooked("load_state_dict_post", hook, prepend)

    def _hooked(
        self, when: str, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        table = self.__dict__[f"_optimizer_{when}_hooks"]
        before = list(table.items()) if prepend else []
        # a dict keeps its order: the others are put back behind the new one
        if prepend:
            table.clear()
        handle = RemovableHandle(table, hook)
        table.update(before)
        return handle


def with_hooks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a class's `step` between its hooks. They are called once also if it calls a base
    class's."""

    @functools.wraps(function)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = as_captured(function)
        # called by a subclass's `step`, which has called the hooks
        if type(self).step is not step:
            return run(self, *args, **kwargs)
        note_step(self)
        before = [*_before_all.values(), *self._optimizer_step_pre_hooks.values()]
        given: tuple = (self, *args)
        for hook in before:
            found = hook(self, given, kwargs)
            if found is None:
                continue
            if not isinstance(found, tuple) or len(found) != 2:
                raise RuntimeError(
                    f"{function} must return None or a tuple of (new_args, new_kwargs), but got "
                    f"{found}."
                )
            given, kwargs = found
        result = run(*given, **kwargs)
        for hook in [*self._optimizer_step_post_hooks.values(), *_after_all.values()]:
            hook(self, given, kwargs)
        return result

    return step
