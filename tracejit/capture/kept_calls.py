"""Calls of functions that keep what they gave (`functools.lru_cache`): a replay asks them again.

In: the functions with a cache that a recording found, and the calls that rewritten code makes of
them. Out: `KeptCall`s, which a replay repeats; a break where a call was another: one that ran the
function, was made by C code, or gave what may change. Called by `calls`, `state` and the entry
maker.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from tracejit.capture.place import CACHED, PRIMITIVE, alike
from tracejit.capture.plain_arguments import plain_numbers
from tracejit.capture.watch import PASSED_ON


class KeptCall:
    """One call, and what it gave."""

    def __init__(self, function: Any, arguments: tuple, keywords: dict, answer: Any):
        self.function = weakref.ref(function)
        self.arguments, self.keywords, self.answer = arguments, keywords, answer
        self.name = getattr(function, "__qualname__", "a function with a cache")

    def holds(self) -> bool:
        """Whether the function, which is called, gives the same."""
        function = self.function()
        if function is None:
            return False
        try:
            return alike(function(*self.arguments, **self.keywords), self.answer)
        except Exception:  # of the user's code, which the plain function will raise again
            return False


class KeptCalls:
    """The functions with a cache that one recording found, and their calls."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Any, int]] = {}  # id -> function, calls before this one
        self.calls: list[KeptCall] = []

    def find(self, function: Any) -> None:
        """Code that runs may call this."""
        self.found[id(function)] = function, _calls_of(function)

    def call(self, function: Any, arguments: tuple, keywords: dict) -> Any:
        missed = function.cache_info().misses
        answer = function(*arguments, **keywords)
        kept = function.cache_info().misses == missed
        if id(function) in self.found and kept and _are_plain(
            [*arguments, *keywords.values(), answer]
        ):
            self.calls.append(KeptCall(function, arguments, keywords, answer))
        return answer

    def others(self) -> Iterable[str]:
        """Names of functions of which there were other calls."""
        for function, before in self.found.values():
            known = sum(call.function() is function for call in self.calls)
            if _calls_of(function) != before + known:
                yield getattr(function, "__qualname__", repr(function))


def asking_again(recorder: Any, function: Any) -> Callable[..., Any]:
    """For rewritten code: numbers are keys of what the function keeps, so they are plain."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = tuple(plain_numbers(x, True) for x in args)
        keywords = {k: plain_numbers(x, True) for k, x in kwargs.items()}
        if type(function) is not CACHED:  # a method
            return function(*arguments, **keywords)
        if recorder.trials:
            recorder.note(f"{function.__qualname__}, which keeps results, is called in a trial")
        return recorder.root.cached.call(function, arguments, keywords)

    return call


PASSED_ON.update(c for c in asking_again.__code__.co_consts if isinstance(c, CodeType))


def _calls_of(function: Any) -> int:
    info = function.cache_info()
    return int(info.hits + info.misses)


def _are_plain(values: Iterable[Any]) -> bool:
    return all(_are_plain(x) if type(x) is tuple else isinstance(x, PRIMITIVE) for x in values)
