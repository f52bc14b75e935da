"""Calls of functions with a cache (`functools.lru_cache`): a replay asks the cache again.

In: the functions with a cache that a recording found, and the calls that rewritten code makes of
them. Out: `MemoizedCall`s and `MemoizedResults`, which a replay repeats if none of them would run
its function. Any other call is a break: the function ran, its arguments are unknown, or its result
may change. Called by `calls`, `state` and the runtime (`entry`, `build`).
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import sys
import typing
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

from tracejit.core.memory.reliances import holds, relies
from tracejit.jit.capture.access_path import CACHED, PRIMITIVE, identical, told_by_identity
from tracejit.jit.capture.fingerprint import function_of
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    class_attribute,
    dict_offset,
    is_a,
    title,
)
from tracejit.jit.capture.plain_arguments import plain_numbers
from tracejit.jit.capture.source import original_code
from tracejit.jit.capture.watcher import USER_CALL_WRAPPERS


class MemoizedCall:
    """Call of a function with a cache, and its result. Objects are held weakly."""

    def __init__(self, function: Any, arguments: tuple, keywords: dict, answer: Any):
        self.function = weakref.ref(function)
        self.arguments, self.answer = [_weakly(x) for x in arguments], answer
        self.keywords = {k: _weakly(x) for k, x in keywords.items()}
        self.name = title(function)
        self.typed = function.cache_parameters()["typed"]
        self.of_objects = any(type(x) is weakref.ref for x in (*self.arguments, *keywords.values()))
        self.key = None if self.of_objects else self._key()
        self.differing: Any = ABSENT  # the cache's entry when it gave another answer

    def _given(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments and keywords of the call. Guards have found each object again."""
        keywords = {k: _strongly(x) for k, x in self.keywords.items()}
        return [_strongly(x) for x in self.arguments], keywords

    def _key(self) -> Any:
        """Return the key under which the cache has the result. Keys with objects are made anew each
        time: a kept one would hold the objects alive."""
        probe = functools.lru_cache(maxsize=None, typed=self.typed)(lambda *_, **__: None)
        arguments, keywords = self._given()
        probe(*arguments, **keywords)
        return next(iter(_cache_of(probe)))

    def may_hold(self) -> bool:
        """Return False if the cache shows the result gone or changed. Does not call the
        function."""
        function = self.function()
        found = ABSENT if function is None else _cache_of(function).get(
            self._key() if self.of_objects else self.key, ABSENT)
        if found is ABSENT or found is self.differing:
            return False
        return type(found).__name__ == _IN_ORDER or identical(found, self.answer)

    def holds(self) -> bool:
        """Call the function, whose cache has a result, and return True if the result is the
        recorded one."""
        function: Any = self.function()
        arguments, keywords = self._given()
        if identical(function(*arguments, **keywords), self.answer):
            return True
        self.differing = _cache_of(function).get(self._key(), ABSENT)
        return False


class MemoizedResults:
    """Cached results of a function that code other than rewritten code called.

    calls    number of these calls: a replay makes as many
    objects  objects that guards find again: only these can have been arguments
    """

    def __init__(self, function: Any, calls: int, objects: Sequence[Any]):
        self.function, self.calls = weakref.ref(function), calls
        self.name = title(function)
        known = {key: _result_in(x) for key, x in _cache_of(function).items()}
        found = set(map(id, objects))
        self.results = [
            (tuple(map(_weakly, key)) if type(key) is tuple else key, result)
            for key, result in known.items()
            if all(id(x) in found for x in objects_in([key]))
        ]
        self.answer = tuple(result for _, result in self.results)
        self.size = function.cache_info()

    def are_plain(self) -> bool:
        """Return True if the results never change and are few.

        A bounded cache must have room for many more: a replay does not renew each result that the
        recorded code asked for.
        """
        size = self.size
        if size.maxsize is not None and size.maxsize < ROOM * size.currsize:
            return False
        count = sum(len(key) if type(key) is tuple else 1 for key, _ in self.results)
        return count + len(self.results) <= MOST and _are_plain(x for _, x in self.results)

    def may_hold(self) -> bool:
        """Return True if the cache still has these results. Does not call the function."""
        function = self.function()
        cache = {} if function is None else _cache_of(function)
        found = [(cache.get(_key_of(key), ABSENT), result) for key, result in self.results]
        return all(x is not ABSENT and identical(_result_in(x), result) for x, result in found)

    def holds(self) -> bool:
        """Call the function as often as the recorded code did, so that its cache counts as many
        hits."""
        function: Any = self.function()
        arguments, keywords = _given_by(_key_of(self.results[0][0]))
        for _ in range(self.calls):
            function(*arguments, **keywords)
        return True


def objects_in(keys: Iterable[Any]) -> list[Any]:
    """Return the objects in keys of a cache, without plain values and the mark before keywords."""
    parts = [x for key in keys for x in (key if type(key) is tuple else (key,))]
    return [x for x in parts if x is not _BETWEEN and not _are_plain([x])]


def _key_of(key: Any) -> Any:
    """Return a key as the cache has it: objects in place of weak references."""
    return tuple(map(_strongly, key)) if type(key) is tuple else key


def first_changed(
    calls: Sequence[MemoizedCall | MemoizedResults]
) -> MemoizedCall | MemoizedResults | None:
    """Return the first call that would give another result, else None.

    The calls are made again only if every cache still has its result, so that no function runs.
    """
    for call in calls:
        if not call.may_hold():
            return call
    for call in calls:
        if not call.holds():
            return call
    return None


class MemoizedCalls:
    """Functions with a cache that one recording found, and their calls."""

    def __init__(self, source_of: Callable[[Any], Any]) -> None:
        self.source_of = source_of  # the source at which guards find an object
        self.found: dict[int, tuple[Any, Any]] = {}  # id -> function, `cache_info` before
        self.calls: list[MemoizedCall | MemoizedResults] = []
        self.codes: set[Any] = set()  # code of functions with caches: runs if there is no result

    def find(self, function: Any) -> None:
        """Add a function that the call's code may call."""
        code = attribute_of(attribute_of(function, "__wrapped__"), "__code__")
        if code is not None and code.co_filename == typing.__file__:
            return  # types of their arguments, which nothing changes
        self.found[id(function)] = function, function.cache_info()
        if code is not None:
            self.codes.add(code)

    def call(self, function: Any, arguments: tuple, keywords: dict, asked: set[int]) -> Any:
        """Call the function, and keep the call for replays if the cache had the result.

        `asked`: receives the ids of arguments that must be the same objects in a replay.
        """
        missed = function.cache_info().misses
        answer = function(*arguments, **keywords)
        kept = function.cache_info().misses == missed and holds("caches")
        given = [*arguments, *keywords.values()]
        plain = _are_plain([answer]) and all(_are_plain([x]) or self._is_key(x) for x in given)
        if id(function) in self.found and kept and plain:
            asked.update(id(x) for x in given if not _are_plain([x]))
            self.calls.append(MemoizedCall(function, arguments, keywords, answer))
        return answer

    def _is_key(self, x: Any) -> bool:
        """Return True if guards find the object again, it equals itself alone, and an entry can
        hold it weakly.

        A class in a cache's key is older than the call. Guards of the source that led to it, such
        as an instance, lead to the same class.
        """
        if is_a(x, type):
            return told_by_identity(x)
        weak = dict_offset(type(x)) or class_attribute(type(x), "__weakref__") is not ABSENT
        return self.source_of(x) is not None and told_by_identity(x) and bool(weak)

    def filled(self) -> bool:
        """Return True if the recording filled caches: the next call finds the results there."""
        return holds("caches") and any(
            function.cache_info().misses != before.misses and _cache_of(function)
            for function, before in self.found.values())

    def runs(self) -> bool:
        """Return True if the code of a function with a cache is on the stack."""
        codes = {attribute_of(attribute_of(function, "__wrapped__"), "__code__")
                 for function, _ in self.found.values()}
        frame: Any = sys._getframe(1)
        while frame is not None and original_code(frame.f_code) not in codes:
            frame = frame.f_back
        return frame is not None

    def others(self, asked: set[int]) -> Iterable[str]:
        """Yield the names of functions with calls that no replay can repeat.

        Calls by code that was not rewritten are kept as `MemoizedResults` if their results are
        certain. `asked`: receives the ids of objects that must be the same in a replay.
        """
        for function, before in list(self.found.values()):
            known = sum(call.function() is function for call in self.calls)
            now = function.cache_info()
            unseen = now.hits - before.hits - known
            if now.misses == before.misses and unseen > 0 and holds("caches"):
                keys = objects_in(_cache_of(function))
                found = [x for x in keys if is_a(x, type) or self.source_of(x) is not None]
                results = MemoizedResults(function, unseen, found)
                certain = not function.cache_parameters()["typed"]  # else keys have types too
                certain &= all(map(told_by_identity, keys)) and all(map(self._is_key, found))
                if certain and results.results and results.are_plain():
                    asked.update(map(id, found))
                    self.calls.append(results)
                    continue
            if now.misses != before.misses or unseen:
                yield title(function)


_IN_ORDER = "_lru_list_elem"  # type of entries of a bounded cache
_RESULT = 6 * ctypes.sizeof(ctypes.c_void_p)  # offset of the result in such an entry
ROOM = 8  # a bounded cache has room for so many times its results
MOST = 256  # keys and results of a function, at most, that guards compare


def asking_again(tracer: Any, function: Any) -> Callable[..., Any]:
    """Wrap a function with a cache for rewritten code. Runtime numbers become plain, since they are
    keys."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = tuple(plain_numbers(x, True) for x in args)
        keywords = {k: plain_numbers(x, True) for k, x in kwargs.items()}
        asked = function
        if type(asked) is not CACHED:  # a method
            asked, arguments = asked.__func__, (asked.__self__, *arguments)
        if tracer.speculation_depth:
            tracer.add_break(f"it calls {title(asked)}, which caches results")
        return tracer.root.cached.call(asked, arguments, keywords, tracer.root.identities.asked)

    return call


USER_CALL_WRAPPERS.update(c for c in asking_again.__code__.co_consts if is_a(c, CodeType))


CALLING: Any = (map, filter, sorted, functools.reduce, itertools.starmap, itertools.accumulate,
                itertools.takewhile, itertools.dropwhile)  # C code that calls its arguments


def handing_on(tracer: Any, function: Any) -> Callable[..., Any]:
    """Wrap C code such as `map`, which calls its arguments: those with a cache get
    `asking_again`."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = [_asked_again(tracer, x) for x in args]
        return function(*arguments, **{k: _asked_again(tracer, x) for k, x in kwargs.items()})

    return call


def _asked_again(tracer: Any, x: Any) -> Any:
    return asking_again(tracer, x) if type(function_of(x)) is CACHED else x


USER_CALL_WRAPPERS.update(c for c in handing_on.__code__.co_consts if is_a(c, CodeType))


def _cache_of(function: Any) -> dict:
    """Return the dict in which a function with a cache keeps results. Runs no code of the
    user's."""
    own = function.__dict__
    return next(x for x in gc.get_referents(function) if type(x) is dict and x is not own)


@relies("caches", "a function with an `lru_cache` refers to one dict of its results beside its "
        "own, and what that has of a bounded cache ends with the result",
        "calls of such functions break the graph")
def _keeps_in_a_dict() -> bool:
    plain, bounded = functools.cache(lambda x: [x]), functools.lru_cache(2)(lambda x: [x])
    found = _cache_of(plain), _cache_of(bounded)
    if any(found):
        return False
    answer = plain(5), bounded(5)
    in_order = type(found[1].get(5)).__name__ == _IN_ORDER
    known = found[0] == {5: answer[0]} and list(found[1]) == [5] and in_order
    if not known or _BETWEEN is None or found[1][5].__sizeof__() <= _RESULT:
        return False
    return ctypes.c_size_t.from_address(id(found[1][5]) + _RESULT).value == id(answer[1])


def _result_in(found: Any) -> Any:
    """Return the result in a cache's entry: a bounded cache wraps it in an object of its own."""
    if type(found).__name__ == _IN_ORDER:
        return ctypes.py_object.from_address(id(found) + _RESULT).value
    return found


def _mark() -> Any:
    """Return the object that separates positional arguments from keywords in keys of caches."""
    probe = functools.lru_cache(maxsize=None)(lambda **_: None)
    probe(name=1)
    key = next(iter(_cache_of(probe)))
    return key[0] if type(key) is tuple else None


_BETWEEN = _mark()


def _given_by(key: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return arguments and keywords for which a cache makes this key."""
    if type(key) is not tuple:
        return (key,), {}
    if _BETWEEN not in key:
        return key, {}
    between = next(k for k, x in enumerate(key) if x is _BETWEEN)
    named = key[between + 1 :]
    return key[:between], dict(zip(named[::2], named[1::2]))


def _weakly(x: Any) -> Any:
    """Return an argument as an entry holds it: weakly, unless it is plain."""
    return x if x is _BETWEEN or _are_plain([x]) else weakref.ref(x)


def _strongly(x: Any) -> Any:
    return x() if type(x) is weakref.ref else x


def _are_plain(values: Iterable[Any]) -> bool:
    return all(_are_plain(x) if type(x) is tuple else is_a(x, PRIMITIVE) for x in values)
