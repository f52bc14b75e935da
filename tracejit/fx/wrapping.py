"""Functions that tracing records as they are: `wrap`, and the patches that a trace makes.

In: functions of modules. Out: while a trace lasts, functions in their place that make a node if an
argument is a proxy. Called by `tracejit.fx.tracer`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.fx.proxy import Proxy

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # (id of a module's dict, name) -> the dict
_MISSING = object()


def wrap(fn_or_name: Any) -> Any:
    """Mark a function of a module: tracing does not look into it, its call becomes a node.

    In the module that has the function: `wrap("name")` anywhere at its top level, or `@wrap`.

    >>> import tracejit
    >>> @tracejit.fx.wrap
    ... def doubled(x):
    ...     return x if x.sum() > 3 else x * 2
    >>> traced = tracejit.fx.symbolic_trace(lambda x: doubled(x) + 1)
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'doubled', 'add', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or "
                           "string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    caller = frame.f_back
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def find_proxy(*containers: Any) -> Proxy | None:
    """Return a proxy among arguments, if there is one.

    >>> find_proxy([1, {"k": 2}]) is None
    True
    """
    for x in containers:
        if isinstance(x, Proxy):
            return x
        inside: Any = ()
        if isinstance(x, (list, tuple)):
            inside = x
        elif isinstance(x, dict):
            inside = x.values()
        elif isinstance(x, slice):
            inside = (x.start, x.stop, x.step)
        found = find_proxy(*inside)
        if found is not None:
            return found
    return None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a node of a call with proxies."""
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    wrapped._fx_records = True  # type: ignore[attr-defined]
    return wrapped


class Patches:
    """Changes of modules and classes, which `take_back` undoes."""

    def __init__(self) -> None:
        self._done: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def item(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Set a name of a module."""
        before = names.get(name, _MISSING)
        names[name] = value
        self._done.append(lambda: names.pop(name) if before is _MISSING
                          else names.__setitem__(name, before))

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class."""
        before = vars(owner)[name]
        setattr(owner, name, value)
        self._done.append(lambda: setattr(owner, name, before))

    def functions(self, names: dict[str, Any], ids: set[int]) -> None:
        """Let the functions with these ids record, where a module has them."""
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in ids:
                self.item(names, name, _recording(value))

    def take_back(self) -> None:
        """Undo all changes, the last one first."""
        while self._done:
            self._done.pop()()


@contextmanager
def patched(wrapped: bool = True) -> Iterator[Patches]:
    """Run a block with patches; the functions that `wrap` marked record."""
    patches = Patches()
    try:
        if wrapped:
            for (_, name), names in _wrapped.items():
                found = names.get(name, getattr(builtins, name, _MISSING))
                if found is not _MISSING and not hasattr(found, "_fx_records"):
                    patches.item(names, name, _recording(found))
        yield patches
    finally:
        patches.take_back()
