"""Words of memory in which CPython shows that an object changed.

In: objects. Out: addresses of words: versions of dicts and classes, the elements of a list, the
slots of an object. Every write to any dict gives it a version never used before. Called by
`snapshot`, `fingerprint` and the runtime's native checks. Nothing here is written, only read.

The layout is that of 64-bit CPython 3.11 and 3.12. `supported` tries each kind of change once and
tells if every change shows. If one does not, Python alone checks guards: 3.13 writes attributes
without a new version. `sees_classes` tells if versions of classes can be used alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
import struct
import sys
import sysconfig
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from tracejit.jit.capture.looking import instance_dict

TYPE = 8  # the class, after the reference count
SIZE = 16  # elements of a list or a tuple, entries of a dict
DICT_VERSION = 24
LIST_ITEMS = 24  # address of the elements
TUPLE_ITEMS = 24  # the elements themselves
CELL = 16
FLOAT = 16  # the double itself
INT_SIZE, INT_DIGITS = 16, 24  # count of 30-bit digits, and sign; two digits to a word
METHOD_FUNCTION, METHOD_SELF = 16, 24
TYPE_VERSION = 384
_IMMUTABLE = 1 << 8  # flag of classes whose objects keep their class


_flags: Callable[[type], int] = type.__dict__["__flags__"].__get__


def word(address: int) -> int:
    """Read the 64 bits at an address."""
    return ctypes.c_int64.from_address(address).value


def is_immutable(cls: type) -> bool:
    """Return True if no object of a class can get another class."""
    return bool(_flags(cls) & _IMMUTABLE)


def slot_offset(descriptor: Any) -> int:
    """Return the offset in an object of the slot behind a descriptor: of `__slots__`, or a member
    in C."""
    member = word(id(descriptor) + 40)  # PyMemberDef: name, type, offset
    return word(member + 16)


@functools.cache
def function_offset(name: str) -> int:
    """Return the offset in a function of its `__code__`, `__closure__`, `__defaults__` or
    `__kwdefaults__`."""
    kept = object()

    def sample(first: Any = (), *, second: Any = ()) -> Any:
        return kept

    wanted = id(getattr(sample, name))
    return next(at for at in range(16, 160, 8) if word(id(sample) + at) == wanted)


def dict_pointer(value: Any) -> int:
    """Return the address of the word that points to an object's `__dict__`; 0 if there is none."""
    find = ctypes.pythonapi._PyObject_GetDictPtr
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    own = instance_dict(value)  # makes the dict if attributes were kept without one
    at = find(id(value)) or 0
    return at if at and word(at) == id(own) else 0


def class_version(cls: type) -> int:
    """Return a number that changes with the attributes of a class and its bases; 0 if it has
    none."""
    version = word(id(cls) + TYPE_VERSION) & 0xFFFFFFFF
    if not version:  # classes get one when an attribute is looked up
        with contextlib.suppress(AttributeError):
            type.__getattribute__(cls, "_tracejit_asks_for_a_version")
        version = word(id(cls) + TYPE_VERSION) & 0xFFFFFFFF
    return version


@functools.cache
def supported() -> bool:
    """Return True if this interpreter has the words at these offsets, and they show every
    change."""
    probes = (_sees_attributes, _sees_entries, _sees_thread_locals, _sees_layout)
    return sees_classes() and all(probe() for probe in probes)


@functools.cache
def sees_classes() -> bool:
    """Return True if `class_version` shows every change of a class, on 3.13 too."""
    return _is_known() and _sees_classes()


@functools.cache
def layout_known() -> bool:
    """Return True if objects lie as this file says; on 3.13, too, which hides some changes."""
    return _is_known() and _sees_layout()


def _is_known() -> bool:
    if platform.python_implementation() != "CPython" or not (3, 11) <= sys.version_info < (3, 14):
        return False
    if struct.calcsize("P") != 8 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    return not hasattr(sys, "gettotalrefcount") and sys.byteorder == "little"


_NUMBER = 1.25


class _Base:
    pass


class _Sample(_Base):
    shown = 1


class _Slotted:
    __slots__ = ("one", "two")
    two: Any


def _store(target: Any, value: Any) -> None:
    target.a = value


def _seen(read: Callable[[], int], changes: list[Callable[[], Any]]) -> bool:
    """Return True if after every change `read` gives a number that it never gave before."""
    known = {read()}
    for change in changes:
        change()
        if read() in known:
            return False
        known.add(read())
    return True


def _sees_attributes() -> bool:
    target = _Sample()
    for k in range(100):  # until the interpreter has specialised the store
        _store(target, k)
    at = dict_pointer(target)
    own = target.__dict__
    changes: list[Callable[[], Any]] = [partial(_store, target, -k) for k in range(1, 100)]
    changes += [
        lambda: setattr(target, "b", 1),
        lambda: object.__setattr__(target, "b", 2),
        lambda: own.update(b=3),
        lambda: own.__setitem__("b", 4),
        lambda: dict.__setitem__(own, "b", 5),
        lambda: delattr(target, "b"),
    ]
    replaced: dict[str, Any] = {}
    if not at or not _seen(lambda: word(id(own) + DICT_VERSION), changes):
        return False
    target.__dict__ = replaced
    return dict_pointer(target) == at and word(at) == id(replaced)


def _sees_entries() -> bool:
    table: dict[Any, Any] = {"a": 0}

    def fill(k: int) -> None:
        table["a"] = k

    changes: list[Callable[[], Any]] = [partial(fill, k) for k in range(1, 100)]
    changes += [
        lambda: table.setdefault("b", 1),
        lambda: table.pop("b"),
        lambda: table.update(c=1),
        lambda: table.__ior__({"d": 1}),
        lambda: table.popitem(),
        lambda: table.__delitem__("c"),
        lambda: table.clear(),
        lambda: table.update({"a": 1, "b": 2}),
    ]
    return _seen(lambda: word(id(table) + DICT_VERSION), changes)


def _sees_thread_locals() -> bool:
    target = threading.local()
    own = vars(target)
    changes: list[Callable[[], Any]] = [partial(_store, target, k) for k in range(100)]
    changes += [lambda: setattr(target, "b", 1), lambda: delattr(target, "b")]
    seen = _seen(lambda: word(id(own) + DICT_VERSION), changes)
    return seen and vars(target) is own and own["a"] == 99


def _sees_classes() -> bool:
    if class_version(_Sample) == 0:
        return False
    return _seen(
        lambda: class_version(_Sample),
        [
            lambda: setattr(_Sample, "shown", 2),
            lambda: setattr(_Base, "other", 1),
            lambda: delattr(_Base, "other"),
            lambda: type.__setattr__(_Sample, "shown", 3),
        ],
    )


def _sees_layout() -> bool:
    class Other(_Base):
        def method(self) -> None:
            """Do nothing: the check only binds the method."""

    target, items, pair, slotted = _Sample(), [1, 2], (object(), object()), _Slotted()
    bound: Any = Other().method
    slotted.two = pair
    table: Any = defaultdict(list)
    large, larger = (5 << 30) + 7, (1 << 59) + 9
    cell = (lambda: items).__closure__[0]  # type: ignore[index]
    target.__class__ = Other  # type: ignore[assignment]
    found = {
        id(target) + TYPE: id(Other),
        id(items) + SIZE: 2,
        word(id(items) + LIST_ITEMS) + 8: id(items[1]),
        id(pair) + SIZE: 2,
        id(pair) + TUPLE_ITEMS + 8: id(pair[1]),
        id(slotted) + slot_offset(_Slotted.__dict__["two"]): id(pair),
        id(table) + slot_offset(vars(defaultdict)["default_factory"]): id(list),
        id(cell) + CELL: id(items),
        id(_NUMBER) + FLOAT: struct.unpack("<q", struct.pack("<d", _NUMBER))[0],
        id(large) + INT_DIGITS: 7 + (5 << 32),
        id(larger) + INT_SIZE: word(id(large) + INT_SIZE),
        id(larger) + INT_DIGITS: 9 + (1 << 61),
        id(bound) + METHOD_FUNCTION: id(bound.__func__),
        id(bound) + METHOD_SELF: id(bound.__self__),
        id(_seen) + function_offset("__code__"): id(_seen.__code__),
    }
    known = is_immutable(dict) and is_immutable(tuple) and not is_immutable(_Sample)
    return known and all(word(at) == expected for at, expected in found.items())
