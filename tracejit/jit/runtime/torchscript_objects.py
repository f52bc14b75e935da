"""Names that programs written for TorchScript read from `torch.jit` beside `script` and `trace`.

In: functions and objects of the user's. Out: results. The names are tasks, types of objects, and
switches of optimisations. The switches change nothing: programs are optimised in one way. The
module `jit` exports all of them.
"""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import UnionType
from typing import Any


class Error(RuntimeError):
    """PyTorch's error of TorchScript programs, which this package never raises."""


class TracerWarning(Warning):
    """PyTorch's warning that a trace may be wrong for other inputs. Calls are guarded here, so this
    package never gives it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: this package never gives the warning."""


class Future:
    """Result of a task that has run.

    >>> import tracejit
    >>> task = tracejit.jit.fork(lambda x: x + 1, tracejit.ones(2))
    >>> tracejit.jit.wait(task).tolist()
    [2.0, 2.0]
    """

    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self) -> Any:
        """Return the result."""
        return self._result

    value = wait

    def done(self) -> bool:
        """Return True: the task has run."""
        return True

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Call `callback` on this task, and return its result as a task."""
        return Future(callback(self))


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call a function as a task: it runs at once, as in PyTorch outside of TorchScript."""
    return Future(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """Return the result of a task."""
    return future.wait()


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True,
                             preserved_methods: list[str] | None = None) -> None:
    """Do nothing: programs are optimised anyway."""


@contextmanager
def _unchanged(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Do nothing around the block: programs are optimised in one way."""
    yield


optimized_execution = strict_fusion = fuser = _unchanged


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the strategy, which changes nothing: there is one way to fuse."""
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing: there is no oneDNN here."""


def onednn_fusion_enabled() -> bool:
    """Return False: there is no oneDNN here."""
    return False


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return True if an object is of a type of `typing`, its elements included.

    >>> import typing, tracejit
    >>> tracejit.jit.isinstance([1, 2], typing.List[int])
    True
    """
    if builtins.isinstance(target_type, (list, tuple)):
        return any(isinstance(obj, t) for t in target_type)
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    if origin in (typing.Union, UnionType):
        return any(isinstance(obj, t) for t in inner)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is tuple:
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    return all(isinstance(x, inner[0]) for x in obj)
