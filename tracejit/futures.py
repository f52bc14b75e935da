"""Results that come later; PyTorch's `torch.futures`.

In: a value or an exception, from any thread. Out: the value to those who wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tracejit.core.memory import forks

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """Value that is not there yet.

    >>> later: Future[int] = Future()
    >>> twice = later.then(lambda f: 2 * f.wait())
    >>> later.set_result(3)
    >>> twice.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._lock, self._there = forks.rlock(), forks.event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], None]] = []

    def done(self) -> bool:
        """Return True if the value, or an exception, is there."""
        return self._there.is_set()

    def wait(self) -> T:
        """Wait for the value, and return it; raise the exception that came instead."""
        self._there.wait()
        return self.value()

    def value(self) -> T:
        """Return the value, which must be there."""
        if self._error is not None:
            raise self._error
        if not self._there.is_set():
            raise RuntimeError("value() of a future that is not complete: call wait()")
        return self._value

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._there.is_set():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note "
                                   "that a Future can only be marked completed once.")
            self._value, self._error = value, error
            self._there.set()
        for callback in self._callbacks:
            callback(self)

    def set_result(self, result: T) -> None:
        """Give the value, once."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an exception in the value's place."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback` with this future when the value is there, now if it is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future of the value that `callback` makes of this one."""
        result: Future[S] = Future()

        def finish(future: Future[T]) -> None:
            try:
                value = callback(future)
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result(value)

        self.add_done_callback(finish)
        return result


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future of all of them, which is there when the last is."""
    result: Future[list[Future]] = Future()
    lock, missing = forks.rlock(), [len(futures)]

    def one(future: Future) -> None:
        with lock:
            missing[0] -= 1
            last = missing[0] == 0
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    if not futures:
        result.set_result(futures)
    return result


def wait_all(futures: list[Future]) -> list:
    """Return the values of all of them; raise the first exception.

    >>> a, b = Future(), Future()
    >>> a.set_result(1)
    >>> b.set_result(2)
    >>> wait_all([a, b])
    [1, 2]
    """
    return [future.wait() for future in collect_all(futures).wait()]
