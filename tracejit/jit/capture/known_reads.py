"""Table of what library functions read of their arguments, where their code says too much.

In: code objects. Out: the names of the attributes that a function, and all that it calls, may ask
for. Called by `watcher`, which looks no further into these: by its code, `inspect.signature` would
ask every object of the process for anything. Also what a replay asks the process again: what tells
threads apart, and that no exception is being handled.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import threading
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

import ml_dtypes
import numpy

_OF_CALLABLES = frozenset(
    "__wrapped__ __signature__ __defaults__ __kwdefaults__ __annotations__ __text_signature__ "
    "__call__ __init__ __new__ __func__ _partialmethod func args keywords".split()
)
_OF_DATACLASSES = frozenset({"__dataclass_fields__", "_field_type"})
READS: dict[CodeType, frozenset[str]] = {
    inspect.signature.__code__: _OF_CALLABLES,
    inspect.getfullargspec.__code__: _OF_CALLABLES,
    dataclasses.fields.__code__: _OF_DATACLASSES,
    dataclasses.is_dataclass.__code__: _OF_DATACLASSES,
}
_BLOCKS = warnings.catch_warnings
BEGINS_FILTERS, ENDS_FILTERS = _BLOCKS.__enter__.__code__, _BLOCKS.__exit__.__code__
SETS_FILTERS = {warnings.simplefilter.__code__, warnings.filterwarnings.__code__}
OF_FILTERS = {_BLOCKS.__init__.__code__, BEGINS_FILTERS, ENDS_FILTERS, *SETS_FILTERS}
READS |= dict.fromkeys(OF_FILTERS, frozenset())
_LOADS = vars(numpy).get("__getattr__")  # it imports parts of NumPy when they are first named
READS |= {} if _LOADS is None else {_LOADS.__code__: frozenset()}
# Limits of a dtype, computed once.
READS |= {kind.__new__.__code__: frozenset() for kind in (numpy.finfo, ml_dtypes.finfo)}


def thread_ident(_: None) -> int:
    """Return the number of the running thread."""
    return threading.get_ident()


def native_thread(_: None) -> int:
    """Return the number that the system gave the running thread."""
    return threading.get_native_id()


def handles_none(_: None) -> bool:
    """Return True where no exception is being handled."""
    return sys.exc_info()[1] is None


_OF_EXCEPTIONS = {sys.exc_info, getattr(sys, "exception", sys.exc_info)}
_OF_THREADS: dict[Any, Callable[[None], int]] = {
    threading.get_ident: thread_ident, threading.get_native_id: native_thread,
}


def asked_again(function: Any) -> Callable[[None], Any] | None:
    """Return what a replay asks, for the same answer, in place of a call of this C function, or
    None."""
    if function in _OF_EXCEPTIONS:
        return handles_none if handles_none(None) else None
    return _OF_THREADS.get(function)
