"""Calls of functions that keep what they gave (`functools.lru_cache`): a replay asks them again.

In: the functions with a cache that a recording found, and the calls that rewritten code makes of
them. Out: `KeptCall`s, which a replay repeats where none of them would run its function; a break
where a call was another: one that ran the function, was made by C code, or gave what may change.
Called by `calls`, `state` and the entry maker.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from tracejit.capture.looking import ABSENT, is_a, title
from tracejit.capture.place import CACHED, PRIMITIVE, alike
from tracejit.capture.plain_arguments import plain_numbers
from tracejit.capture.watch import PASSED_ON


class KeptCall:
    """One call, and what it gave."""

    def __init__(self, function: Any, arguments: tuple, keywords: dict, answer: Any):
        self.function = weakref.ref(function)
        self.arguments, self.keywords, self.answer = arguments, keywords, answer
        self.name = title(function)
        typed = function.cache_parameters()["typed"]
        probe = functools.lru_cache(maxsize=None, typed=typed)(lambda *_, **__: None)
        probe(*arguments, **keywords)
        self.key = next(iter(_cache_of(probe)))
        self.differing: Any = None  # what the cache had when it gave another answer

    def may_hold(self) -> bool:
        """Whether the function, which is not called, still has a result, and perhaps the same."""
        function = self.function()
        found = ABSENT if function is None else _cache_of(function).get(self.key, ABSENT)
        if found is ABSENT or found is self.differing:
            return False
        return type(found).__name__ == _IN_ORDER or alike(found, self.answer)

    def holds(self) -> bool:
        """Whether the function, which is called and has a result, gives the same."""
        function: Any = self.function()
        if alike(function(*self.arguments, **self.keywords), self.answer):
            return True
        self.differing = _cache_of(function).get(self.key)
        return False


def first_other(calls: Sequence[KeptCall]) -> KeptCall | None:
    """Of some calls, which are made again if no function would run, one that gives another."""
    for holds in (KeptCall.may_hold, KeptCall.holds):
        for call in calls:
            if not holds(call):
                return call
    return None


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
                yield title(function)


_IN_ORDER = "_lru_list_elem"  # the type of what holds a result in a cache that drops some


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


PASSED_ON.update(c for c in asking_again.__code__.co_consts if is_a(c, CodeType))


def _cache_of(function: Any) -> dict:
    """The dict in which a function with a cache keeps results; asking it runs nothing."""
    own = function.__dict__
    return next(x for x in gc.get_referents(function) if type(x) is dict and x is not own)


def _calls_of(function: Any) -> int:
    info = function.cache_info()
    return int(info.hits + info.misses)


def _are_plain(values: Iterable[Any]) -> bool:
    return all(_are_plain(x) if type(x) is tuple else is_a(x, PRIMITIVE) for x in values)
