"""Call arguments in one order, whatever way they were passed.

In: a Python callable. Out: `Signature.normalise(args, kwargs)` -> tuple of values, one per
parameter (`*args` a tuple, `**kwargs` a dict), and `call(function, values)`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from tracejit.jit.capture.looking import is_a

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """Parameters of a captured function."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.made_of = _made_of(function)
        # The decorator's own parameters: the function that it wraps may have others.
        self.signature = inspect.signature(function, follow_wrapped=False)
        parameters = list(self.signature.parameters.values())
        self.names = [p.name for p in parameters]
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.spread = frozenset(k for k, p in enumerate(parameters) if p.kind in kinds)
        self.plain = len(parameters) if all(p.kind in _POSITIONAL for p in parameters) else -1
        self.parameters = parameters

    def outdated(self) -> bool:
        """Return True if the function has got other code or defaults."""
        now = _made_of(self.function)
        return len(now) != len(self.made_of) or any(a is not b for a, b in zip(now, self.made_of))

    def normalise(self, args: tuple, kwargs: dict[str, Any]) -> tuple | None:
        """Return one value per parameter, with defaults filled in; None if the arguments do not
        fit."""
        if not kwargs and len(args) == self.plain:
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.names)

    def call(self, function: Callable[..., Any], values: tuple) -> Any:
        """Call `function` with normalised values."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, values):
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return function(*args, **kwargs)


def _made_of(function: Any) -> list[Any]:
    """Return the objects that a function's signature is read from."""
    if is_a(function, functools.partial):
        given = function.keywords.items()
        return [*_made_of(function.func), *function.args, *(x for item in given for x in item)]
    if not is_a(function, (FunctionType, MethodType)):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    keywords = getattr(function, "__kwdefaults__", None) or {}
    defaults = getattr(function, "__defaults__", None) or ()
    return [code, *defaults, *(x for item in keywords.items() for x in item)]
