"""Classes and modes that replace functions of tensors; PyTorch's `torch.overrides`.

In: objects whose classes have `__torch_function__`, functions, and modes. Out: True if a call is
theirs, and their answers. Public functions, methods, operators and properties ask a class or mode.
Until the first one is met nothing looks for any.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager import overridable
from tracejit.core.eager.subclasses import exempt_getters
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import overriding
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.overriding import asking, carries

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def is_tensor_like(inp: Any) -> bool:
    """Return True for a tensor, or an object whose class replaces functions of tensors.

    >>> import tracejit
    >>> is_tensor_like(tracejit.ones(1)), is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or overriding.handler_of(type(inp)) is not None


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return True if the class of one of these is asked, or a mode is.

    >>> import tracejit
    >>> class Named(tracejit.Tensor): pass
    >>> has_torch_function((1, tracejit.ones(1).as_subclass(Named)))
    True
    """
    return bool(asking.modes) or asking.classes and any(carries(type(x)) for x in relevant_args)


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """Return `has_torch_function` of the arguments."""
    return has_torch_function(relevant_args)


def has_torch_function_unary(inp: Any) -> bool:
    """Return `has_torch_function` of one object."""
    return has_torch_function((inp,))


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """Give the answer of a mode, or of the classes of `relevant_args`, to a call of `public_api`.

    TypeError where all of them give NotImplemented.
    """
    found = overriding.carriers(tuple(relevant_args), Tensor)
    answer = overriding.ask(public_api, found if asking.classes else [], args, kwargs)
    if answer is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(f"no implementation found for '{name}' on types that implement "
                        f"__torch_function__: {[type(x) for x in found]}")
    return answer


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function so that it asks the classes of the objects that `dispatcher` returns.

    >>> import tracejit
    >>> @wrap_torch_function(lambda a: (a,))
    ... def twice(a):
    ...     return a + a
    >>> twice(tracejit.ones(1))
    tensor([2.])
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def get_default_nowrap_functions() -> set[Any]:
    """Return the getters whose results stay what they are in `Tensor.__torch_function__`."""
    return exempt_getters()


# -- what asks -------------------------------------------------------------------------------------
def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return the functions that ask, by module or class."""
    found: dict[Any, list[Any]] = {}
    for entry in (*overridable.functions(), *overridable.methods()):
        found.setdefault(entry.place, []).append(entry.found)
    found[Tensor] += [entry.found.__get__ for entry in overridable.properties()]
    return found


def get_ignored_functions() -> set[Any]:
    """Return the public functions that ask no class."""
    import tracejit

    asked = {entry.found for entry in overridable.functions()}
    return {f for name, f in vars(tracejit).items()
            if inspect.isfunction(f) and f not in asked and not name.startswith("__")}


def get_testing_overrides() -> dict[Any, Callable[..., Any]]:
    """Return for each function that asks a function of the same arguments that returns -1."""
    return {f: _minus_one(f) for fs in get_overridable_functions().values() for f in fs}


def _minus_one(function: Any) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> int:
        return -1

    if inspect.isfunction(function):
        answer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return answer


def resolve_name(f: Any) -> str | None:
    """Return PyTorch's name of a function that asks; None for others.

    >>> import tracejit
    >>> resolve_name(tracejit.add), resolve_name(tracejit.Tensor.shape.__get__)
    ('torch.add', 'torch.Tensor.shape.__get__')
    """
    for entry in (*overridable.functions(), *overridable.methods()):
        if entry.found is f:
            return overridable.title(entry)
    for entry in overridable.properties():
        for kind in ("__get__", "__set__", "__delete__"):
            if getattr(entry.found, kind) == f:
                return f"{overridable.title(entry)}.{kind}"
    return None


def is_tensor_method_or_property(func: Any) -> bool:
    """Return True for methods, and readers and writers of properties, of tensors.

    >>> import tracejit
    >>> is_tensor_method_or_property(tracejit.Tensor.add)
    True
    """
    if getattr(func, "__name__", "") in ("__get__", "__set__", "__delete__"):
        return True
    return any(entry.found is func for entry in overridable.methods())


# -- modes -----------------------------------------------------------------------------------------
class TorchFunctionMode:
    """Context in which all functions of tensors ask its `__torch_function__` before any class.

    >>> import tracejit
    >>> class Doubling(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {})) * 2
    >>> with Doubling():
    ...     x = tracejit.ones(2)
    >>> x
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        overriding.stand_gates()
        asking.modes = (*asking.modes, self)
        return self

    def __exit__(self, *exc: Any) -> None:
        asking.modes = asking.modes[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode; `with cls(...)` is the same."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """Mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """Return the innermost mode, or None."""
    return asking.modes[-1] if asking.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """Return the open modes, the innermost last."""
    return list(asking.modes)


def _push_mode(mode: TorchFunctionMode) -> None:
    mode.__enter__()


def _pop_mode() -> Any:
    mode = asking.modes[-1]
    asking.modes = asking.modes[:-1]
    return mode


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Run a block without the innermost mode."""
    with overriding.asked(modes=asking.modes[:-1]):
        yield _get_current_function_mode()


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Run a block in which classes are asked, also within the default of a class."""
    with overriding.asked(classes=True):
        yield


_has_torch_function = has_torch_function


_sealing.seal_all(globals())
