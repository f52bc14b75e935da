"""Words and lines that the builtin functions of small eager ops share.

In: an op's own words. Out: its table, and lines in the runner's language that look at the thread's
switches and at tensors. Called by `eager_elementwise` and the other files of small eager ops.

The lines run under the interpreter's lock. They allocate first, since that may run any code, then
look at the operands again, and then compute. They decline, with NotImplemented, whatever is not
plain: Python then takes the general way.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.eager import dispatch
from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.nodes import LeafSink, edge_of, next_number
from tracejit.core.eager.origins import NO_GRAD
from tracejit.core.eager.recording import Active, active
from tracejit.core.eager.saved import Saved, SavedOutput, Unsaved
from tracejit.core.eager.size import Size
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.memory import CPU, Storage
from tracejit.core.memory.reliances import holds, relies
from tracejit.core.ops.direct_calls import parameter_watches, parameters
from tracejit.core.ops.types import bool_, float32, float64, int64
from tracejit.jit.capture.memory_words import DICT_VERSION, layout_known, slot_offset, word
from tracejit.jit.runtime.builtin import DATA, python_api

MOST_DIMENSIONS = 8
# Of results: larger ones take longer than the general way costs, and other threads wait meanwhile.
MOST_ELEMENTS = 8192
MOST_ADDED = 2048  # of what is reduced
_SWITCHES = ("tracer", "inference", "level", "grad_enabled", "anomaly", "packer")
_MODE = np.array([-1, 0, 0, 0, 0], np.int64)  # thread, its switches, their version, mode, blocked
_BLOCKED = 4
# Modes: what is computed natively.
NOTHING, NO_HISTORY, HISTORY, UNRECORDED = range(4)  # the last: only what needs no history

_CONSTANTS: dict[str, Any] = {
    "TENSOR": Tensor, "FLOAT": float, "INT": int, "VIEW": View, "FAMILY": AliasFamily,
    "STORAGE": Storage, "ARRAY_STORAGE": ArrayStorage, "NDARRAY": np.ndarray, "SINK": LeafSink,
    "REFERENCE": weakref.ref, "SAVED": Saved, "SAVED_OUTPUT": SavedOutput, "UNSAVED": Unsaved,
    "NONE": None, "FALSE": False, "TRUE": True, "ZERO": 0, "ONE": 1, "EMPTY": (),
    "DECLINED": NotImplemented, "SLICE": slice, "PLAIN_TUPLE": tuple, "SIZE": Size,
    "NO_GRAD": NO_GRAD, "CPU": CPU, "ACTIVE": active, "F32": float32, "F64": float64,
    "I64": int64, "BOOL": bool_, "EDGE_OF": edge_of, "NEXT": next_number,
    "DICT_NAME": "__dict__", **{f"KEY_{name.upper()}": name for name in _SWITCHES},
}  # fmt: skip
_FUNCTIONS = {
    "NEW": "PyType_GenericNew", "KEEP": "Py_IncRef", "DROP": "Py_DecRef", "TUPLE": "PyTuple_New",
    "LONG": "PyLong_FromLongLong", "VALUE": "PyLong_AsLongLong", "FAILED": "PyErr_Occurred",
    "FORGIVE": "PyErr_Clear", "EQUAL": "PyObject_RichCompareBool", "THREAD": "PyThreadState_Get",
    "THREAD_ID": "PyThreadState_GetID", "ATTRIBUTE": "PyObject_GetAttr", "ITEM": "PyDict_GetItem",
    "DICT": "PyDict_New", "SET_ITEM": "PyDict_SetItem", "CALL_0": "PyObject_CallNoArgs",
    "CALL_1": "PyObject_CallOneArg",
    "REFER": "PyWeakref_NewRef", "REFERENT": "PyWeakref_GetObject",
}  # fmt: skip
# Room for one call: sizes of a result; addresses, a count and steps for a loop; two numbers; types
# that nodes keep, which later calls find here.
_ROOM = {"DIMS": MOST_DIMENSIONS, "ARGS": 3, "COUNT": 1, "STEPS": 3, "NUMBERS": 2, "KNOWN": 3,
         "STRIDES": MOST_DIMENSIONS, "NEW_DIMS": MOST_DIMENSIONS, "NEW_STRIDES": MOST_DIMENSIONS,
         "ORDER": MOST_DIMENSIONS}  # fmt: skip
_NAMES = (*_CONSTANTS, *_FUNCTIONS, "PARAMETER", "NEW_ARRAY", "MODE")
_PLACES: dict[str, int] = {}
for _name in _NAMES:
    _PLACES[_name] = len(_PLACES)
_end = len(_PLACES)
for _name, _size in _ROOM.items():
    _PLACES[_name] = _end
    _end += _size
COMMON = _end  # words before an op's own
_tables: list[np.ndarray] = []
_kept: list[Any] = []  # what tables have the addresses of


def at(name: str, k: int = 0) -> str:
    """Return the text that reads a common word."""
    return f"table[{_PLACES[name] + k}]"


def word_at(name: str) -> int:
    """Return the number of a common word."""
    return _PLACES[name]


def room(name: str, k: int = 0) -> str:
    """Return the text of the address of a common word."""
    return f"(base + {8 * (_PLACES[name] + k)})"


@functools.cache
def slot(kind: Any, name: str) -> int:
    """Return the word of an object at which a slot is; a property of that name is none."""
    owner = next(cls for cls in kind.__mro__ if name in vars(cls) and name in cls.__slots__)
    return slot_offset(vars(owner)[name]) // 8


def of(x: str, name: str, kind: type = TensorState) -> str:
    """Return the text that reads a slot of the object `x`."""
    return f"pointer_at({x})[{slot(kind, name)}]"


def _array_functions() -> Any:
    """Return the table of NumPy's C functions."""
    umath: Any = importlib.import_module("numpy._core.multiarray")
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return pointer(umath._ARRAY_API, None)


_NEW_ARRAY = 93  # PyArray_New in NumPy's table of C functions


@relies("eager_words", "layouts of tensors, ufuncs and arrays, and versions of dicts, by address",
        "small eager ops go the general way")
def _as_expected() -> bool:
    if not layout_known():
        return False
    probe = Active()
    own = probe.__dict__
    seen = {word(id(own) + DICT_VERSION)}
    for k in range(100):
        probe.grad_enabled = bool(k % 2)
        found = word(id(own) + DICT_VERSION)
        if found in seen or probe.__dict__ is not own:
            return False
        seen.add(found)
    array = np.arange(6.0).reshape(2, 3)
    dims = word(id(array) + 32)
    return (word(id(array) + 8 * DATA) == array.__array_interface__["data"][0]
            and word(id(array) + 24) & 0xFFFFFFFF == 2 and [word(dims), word(dims + 8)] == [2, 3]
            and word(_array_functions() + 16) == id(np.ndarray)
            and np.add.types[loop_number(np.add, "dd->d")] == "dd->d"
            and word(id(np.add) + 48) & 0xFFFFFFFF == np.add.ntypes)


def loop_number(ufunc: Any, types: str) -> int:
    found: list[str] = ufunc.types
    return found.index(types) if types in found else -1


def loop_of(ufunc: Any, types: str) -> tuple[int, int]:
    """Return NumPy's own loop of a ufunc for these types, and its data; zeros if it has none."""
    k = loop_number(ufunc, types)
    if k < 0:
        return 0, 0
    functions, data = word(id(ufunc) + 32), word(id(ufunc) + 40)
    return word(functions + 8 * k), word(data + 8 * k) if data else 0


def available() -> bool:
    """Return True if native code may look into objects of this interpreter and this NumPy."""
    return holds("eager_words")


def table_of(own: Sequence[int], objects: Sequence[Any]) -> np.ndarray:
    """Return a table: the common words, then an op's own. Its objects live on."""
    known = [id(x) for x in _CONSTANTS.values()]
    known += [python_api(name) for name in _FUNCTIONS.values()]
    new_array = word(_array_functions() + 8 * _NEW_ARRAY)
    known += [id((*parameters, Tensor)[0]), new_array, _MODE.ctypes.data]
    table = np.zeros(COMMON + len(own), np.int64)
    table[: len(known)] = known
    table[COMMON:] = own
    _tables.append(table)
    _kept.append(objects)
    return table


def _see_parameters(kind: type) -> None:
    for table in _tables:
        table[_PLACES["PARAMETER"]] = id(kind)


def block(ask: bool) -> None:
    """Turn native code off where somebody else runs ops, and on again."""
    _MODE[_BLOCKED] = ask


parameter_watches.append(_see_parameters)
dispatch.install_watch(block)
