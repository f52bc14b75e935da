"""Grad modes: switch, per thread, if ops are put on the tape.

In: `with no_grad():`, `@no_grad()`, `set_grad_enabled(flag)`. Out: `active.grad_enabled`, which
dispatch reads. It is restored when the block or the decorated call ends. Called by users, the
engine and capture.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from tracejit.core.eager.recording import active, as_captured, ever


def is_grad_enabled() -> bool:
    """Return True if ops on tensors that require grad are recorded on the tape.

    >>> import tracejit
    >>> with tracejit.no_grad():
    ...     tracejit.is_grad_enabled()
    False
    """
    return active.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Return True if new tensors are inference tensors.

    >>> import tracejit
    >>> tracejit.is_inference_mode_enabled()
    False
    """
    return active.inference


class _Mode:
    """Context manager that is also a decorator. It may be entered again while it is active."""

    def __init__(self) -> None:
        self._saved: list[tuple[bool, bool]] = []  # a stack, as one object may be entered again

    def _enter(self) -> None:
        raise NotImplementedError

    def _again(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> None:
        self._saved.append((active.grad_enabled, active.inference))
        self._enter()

    def __exit__(self, *exc: object) -> None:
        active.grad_enabled, active.inference = self._saved.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated and will be disabled in future "
                          "versions. You should only decorate functions or methods. To preserve "
                          "the current behavior of class decoration, you can directly decorate the "
                          "`__init__` method and nothing else.", FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):
            return _decorated_generator(self._again, function)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return as_captured(function)(*args, **kwargs)

        return inside


def _decorated_generator(again: Callable[[], _Mode],
                         function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a generator that runs in the mode, and leaves it at every yield."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, generator)
        while True:
            try:
                with again():
                    item = resume()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield item
                resume = functools.partial(generator.send, sent)
            except GeneratorExit:
                with again():
                    generator.close()
                raise
            except BaseException as error:
                resume = functools.partial(generator.throw, error)

    return inside


class _PlainMode(_Mode):
    """Mode without arguments: `@no_grad` works without parentheses."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        if function is None:
            return mode
        mode._saved = []
        return mode(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__()


class no_grad(_PlainMode):
    """Context manager or decorator: ops inside are not recorded, and their results do not require
    grad.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0], requires_grad=True)
    >>> with tracejit.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def _enter(self) -> None:
        active.grad_enabled = False


class enable_grad(_PlainMode):
    """Context manager or decorator: ops inside are recorded, also within `no_grad`.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0], requires_grad=True)
    >>> with tracejit.no_grad(), tracejit.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def _enter(self) -> None:
        active.grad_enabled = True


class set_grad_enabled(_Mode):
    """Set grad mode: from now on as a call, for a block as a context manager, for calls as a
    decorator.

    >>> import tracejit
    >>> with tracejit.set_grad_enabled(False):
    ...     tracejit.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._before = active.grad_enabled
        active.grad_enabled = self.mode

    def _enter(self) -> None:
        active.grad_enabled = self.mode

    def __enter__(self) -> None:
        self._saved.append((self._before, active.inference))
        self._enter()

    def _again(self) -> _Mode:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        active.grad_enabled = self._before  # as a decorator it was no call: undo `__init__`
        return super().__call__(function)


class set_multithreading_enabled(ContextDecorator):
    """Permission for a backward to use several threads: as a call, or for a block. It has no effect
    here.

    >>> import tracejit
    >>> with tracejit.autograd.set_multithreading_enabled(False):
    ...     pass
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class inference_mode(_Mode):
    """Mode like `no_grad` whose new tensors can never take part in autograd.

    >>> import tracejit
    >>> with tracejit.inference_mode():
    ...     y = tracejit.tensor([1.0])
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__(True)  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _enter(self) -> None:
        ever.inference = True
        active.inference = self.mode
        active.grad_enabled = not self.mode

    def _again(self) -> _Mode:
        return inference_mode(self.mode)
