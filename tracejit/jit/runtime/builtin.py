"""Builtin functions: native code that CPython calls like its own.

In: a text in the runner's language, and an array of words. Its function takes (this, arguments,
count) and returns the address of an object, one reference to which is the caller's. Out: a
callable. A call costs some 30 ns, a third of what `ctypes` takes. Called by `native_guard`,
`native_history` and `native_start`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache

DATA = 2  # word of an ndarray that holds the address of its elements
_FASTCALL = 0x80


class _Method(ctypes.Structure):
    """Layout of CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


# CPython keeps only their addresses. Where two threads ask at once, `method`'s cache drops one.
_methods: list[_Method] = []


@functools.cache
def method(name: str, text: str) -> _Method:
    """Return the function `name` of a text, compiled or from the cache. It lives as long as the
    process.

    `this` is an ndarray of words, `arguments` the address of `count` addresses of objects.
    """
    digest = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:32]
    addresses = cache.functions_of([Kernel(name, text, digest, loops=1)])
    made = _Method(name.encode(), addresses[digest], _FASTCALL, None)
    _methods.append(made)
    return made


@functools.cache
def _make() -> Callable[..., Any]:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object)
    return make


def function_over(found: _Method, words: Any, kept: Any = None) -> Callable[..., Any]:
    """Make a builtin function whose `this` holds these words. Several functions may share one int64
    array.

    kept  what the function keeps alive, as its `__module__`
    """
    return _make()(ctypes.byref(found), np.asarray(words, np.int64), kept)


@functools.cache
def python_api(name: str) -> int:
    """Return the address of a function of CPython's C API."""
    function = getattr(ctypes.pythonapi, name)
    return ctypes.cast(function, ctypes.c_void_p).value or 0
