"""Functions that tracing records as they are: `wrap`, and the patches that a trace makes.

In: functions of modules. Out: while a trace lasts, functions in their place that make a node if an
argument is a proxy. Called by `tracejit.fx.tracer`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable
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


class Patcher:
    """Changes of modules and classes; the end of its block undoes them, the last one first."""

    def __init__(self) -> None:
        self._done: list[Callable[[], Any]] = []
        self._seen: set[int] = set()

    def __enter__(self) -> Patcher:
        return self

    def __exit__(self, *exc: Any) -> None:
        while self._done:
            self._done.pop()()
        self._seen.clear()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any,
              deduplicate: bool = True) -> None:
        """Set a name of a module."""
        before = frame_dict.get(name, _MISSING)
        frame_dict[name] = new_fn
        self._done.append(lambda: frame_dict.pop(name) if before is _MISSING
                          else frame_dict.__setitem__(name, before))

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Set a method of a class."""
        before = vars(cls).get(name, _MISSING)
        setattr(cls, name, new_fn)
        self._done.append(lambda: delattr(cls, name) if before is _MISSING
                          else setattr(cls, name, before))

    def visit_once(self, thing: Any) -> bool:
        """Return True the first time that it is asked about an object."""
        first = id(thing) not in self._seen
        self._seen.add(id(thing))
        return first


def autowrap(patcher: Patcher, names: dict[str, Any], function_ids: set[int]) -> None:
    """Let the functions with these ids record, where a module has them."""
    if patcher.visit_once(names):
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(names, name, _recording(value))


def patch_wrapped(patcher: Patcher) -> None:
    """Let the functions that `wrap` marked record."""
    for (_, name), names in _wrapped.items():
        found = names.get(name, getattr(builtins, name, _MISSING))
        if found is not _MISSING and not hasattr(found, "_fx_records"):
            patcher.patch(names, name, _recording(found))
