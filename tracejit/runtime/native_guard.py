"""Native guards: a builtin function over a table, which compares words of memory.

In: the rows (address, expected word) of a `Snapshot` and where its entry's inputs are. Out: a
function that CPython calls like its own builtins: the tuple of graph inputs, or None where a row
differs. A table of a thousand rows costs a microsecond. Installed in `capture.snapshot`.

The rows are compared in order, and an address is read only after the rows that prove that the
object there is alive. The interpreter's lock is held from beginning to end, and the tuple is
allocated first: that may collect garbage, which may run anything.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.capture.snapshot import install_comparer
from tracejit.lowering.program import Kernel
from tracejit.runtime import cache

# Words of a table; then the roots, the rows, the inputs.
ROOTS, ROWS, INPUTS, NEW_TUPLE, KEEP, DROP, NONE = range(7)
_HEADER = 7
_ITEMS = tuple.__basicsize__ // 8  # words before the elements of a tuple
_DATA = 2  # word of an ndarray that holds the address of its elements
_FASTCALL = 0x80

_TEXT = f'''\
"""A builtin function: `this` is the table, an ndarray; `arguments` the address of the objects."""
from tracejit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def compare(this, arguments, count) -> "int64":
    table = pointer_at(pointer_at(this)[{_DATA}])
    given = pointer_at(arguments)
    roots = table[{ROOTS}]
    number = table[{INPUTS}]
    keep = table[{KEEP}]
    made = call_function(table[{NEW_TUPLE}], number)
    if made == 0:
        return 0
    holds = 1
    for k in range(roots):
        if given[k] != table[{_HEADER} + k]:
            holds = 0
            break
    at = {_HEADER} + roots
    end = at + 2 * table[{ROWS}]
    while holds == 1 and at < end:
        if pointer_at(table[at])[0] != table[at + 1]:
            holds = 0
        at += 2
    if holds == 0:
        call_function(table[{DROP}], made)
        call_function(keep, table[{NONE}])
        return table[{NONE}]
    items = pointer_at(made)
    for k in range(number):
        one = table[end + k]
        if one < 0:
            one = given[-1 - one]
        call_function(keep, one)
        items[{_ITEMS} + k] = one
    return made
'''


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@functools.cache
def _method() -> _Method:
    digest = hashlib.sha256(f"compare\n{_TEXT}".encode()).hexdigest()[:32]
    addresses = cache.functions_of([Kernel("compare", _TEXT, digest, loops=1)])
    return _Method(b"compare", addresses[digest], _FASTCALL, None)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def comparer(
    roots: Sequence[int], rows: Sequence[tuple[int, int]], inputs: Sequence[int]
) -> Callable[..., tuple | None]:
    """A function of (*roots, *further inputs) over these rows: see `snapshot.Comparer`."""
    api = ctypes.pythonapi
    functions = [_address(f) for f in (api.PyTuple_New, api.Py_IncRef, api.Py_DecRef)]
    words = [len(roots), len(rows), len(inputs), *functions, id(None), *roots]
    words += [word for row in rows for word in row]
    table = np.array([*words, *inputs], np.int64)
    make = api.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.byref(_method()), table, None)


install_comparer(comparer)
