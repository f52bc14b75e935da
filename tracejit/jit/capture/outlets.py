"""Outlets of printed and logged lines: may the lines arrive when the call is over?

In: `sys.stdout`, a logger. Out: True if no code can tell when lines arrive. A stream, handler,
filter or formatter of the user's is code that may see the state of that moment, change it or raise.
Called by `output` before it defers lines, and by guards of the entry. `host_calls` asks which
functions change outlets.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from tracejit.jit.capture.location import is_installed
from tracejit.jit.capture.looking import ByClass, attribute_of, bases_of, is_a, names_in

_READS = ("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getChild", "format")
_SETTINGS = ("disable", "basicConfig", "shutdown", "captureWarnings", "addLevelName",
             "setLogRecordFactory", "setLoggerClass")  # fmt: skip
_classes: ByClass[bool] = ByClass()


def stdout_may_wait(_: None = None) -> bool:
    """Return True if `print` runs no code of the user's.

    >>> import contextlib, io
    >>> with contextlib.redirect_stdout(io.StringIO()):
    ...     waits = stdout_may_wait()
    >>> waits
    True
    """
    return _is_library(sys.stdout)


def logger_may_wait(logger: weakref.ref[logging.Logger]) -> bool:
    """Return True if a logger runs no code of the user's.

    >>> logger = logging.Logger("mine")
    >>> logger.addFilter(lambda record: record.levelno > 30)
    >>> logger_may_wait(weakref.ref(logger))
    False
    """
    found = logger()
    return found is None or all(map(_is_library, _takes_part(found)))


def _takes_part(logger: Any) -> Iterator[Any]:
    """Yield the objects that handle a logger's records."""
    yield logging.getLogRecordFactory()
    while logger is not None:
        yield logger
        yield from logger.filters
        for handler in logger.handlers:
            yield handler
            yield from handler.filters
            yield from (handler.formatter, getattr(handler, "stream", None))
        logger = logger.parent if logger.propagate else None


def _is_library(x: Any) -> bool:
    """Return True if the code of `x` is written in C, or belongs to an installed library."""
    code = attribute_of(x, "__code__")
    if code is not None:
        return is_installed(code)
    return _is_library_class(x if is_a(x, type) else type(x))


def _is_library_class(cls: type) -> bool:
    known = _classes.get(cls)
    if known is None:
        held = [f for c in bases_of(cls) for f in names_in(c).values()]
        codes = [f.__code__ for f in held if type(f) is FunctionType]
        known = _classes[cls] = all(map(is_installed, codes))
    return known


def changes_outlets(function: Any) -> bool:
    """Return True if a function may change where lines go.

    Such are methods of a logger or a handler, and functions of `logging`.

    >>> changes_outlets(logging.getLogger().setLevel), changes_outlets(logging.getLogger)
    (True, False)
    """
    owner = attribute_of(function, "__self__")
    if is_a(owner, (logging.Filterer, logging.Formatter)):
        return function.__name__ not in _READS
    return attribute_of(function, "__module__") == "logging" and function.__name__ in _SETTINGS
