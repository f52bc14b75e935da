"""Looking at the user's objects without running the user's code.

In: any object or class. Out: which classes it is of, what is in its `__dict__` and its slots, what
its class has. Types are asked through the slots of `type` alone: `isinstance`, `getattr`, `hasattr`
and `x.__dict__` run `__class__` properties, `__getattr__`, `__getattribute__`, and metaclasses.
Called wherever capture looks at objects of the user's.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import weakref
from types import (
    CellType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tracejit.jit.ir.sizes import SymInt

ABSENT = type("Absent", (), {"__repr__": lambda self: "(absent)"})()
_MADE_AT_RUN_TIME = 1 << 9  # `Py_TPFLAGS_HEAPTYPE`, of classes with `__slots__`
NATIVE = (GetSetDescriptorType, MemberDescriptorType)  # reading these runs no Python
Kept = TypeVar("Kept")
_SLOTS_OF_TYPES: Any = vars(type)
bases_of = _SLOTS_OF_TYPES["__mro__"].__get__  # a class and its bases, in order
names_in = _SLOTS_OF_TYPES["__dict__"].__get__  # what a class itself has, by name
flags_of = _SLOTS_OF_TYPES["__flags__"].__get__
dict_offset = _SLOTS_OF_TYPES["__dictoffset__"].__get__  # 0: instances have no `__dict__`
name_of_class = _SLOTS_OF_TYPES["__name__"].__get__
qualname_of_class = _SLOTS_OF_TYPES["__qualname__"].__get__
_LOCAL = bases_of(threading.local)[0]  # each thread has another `__dict__`
_of_thread: Any = names_in(_LOCAL)["__getattribute__"]
_stand_ins: tuple[type, ...] = (SymInt,)

if TYPE_CHECKING:
    from builtins import isinstance as is_a  # it narrows types in the same way
else:

    def is_a(x, kind):
        """Return True if the object's type is `kind`, one of it, or derived from it.

        A `__class__` that the object claims counts for what stands for numbers and lists alone.

        >>> class Claims:
        ...     __class__ = property(lambda self: int)
        >>> is_a(3, (str, int)), isinstance(Claims(), int), is_a(Claims(), int)
        (True, True, False)
        """
        cls = type(x)
        return issubclass(cls, kind) or issubclass(cls, _stand_ins) and isinstance(x, kind)


__all__ = [
    "ABSENT", "attribute_of", "bases_of", "ByClass", "class_attribute", "class_of", "dict_offset",
    "filled_slots", "flags_of", "has_in_class", "is_a", "is_exactly", "is_iterator", "is_stand_in",
    "module_title", "name_of_class", "names_in", "NATIVE", "instance_dict", "qualname_of_class",
    "reads_plainly", "slots_of", "stands_in", "title",
]  # fmt: skip


def stands_in(cls: type) -> type:
    """Let `is_a` believe the `__class__` of instances. Used as a class decorator."""
    global _stand_ins
    _stand_ins = (*_stand_ins, cls)
    return cls


def is_exactly(x: Any, kinds: Any) -> bool:
    """Return True if the object's type is one of some. `type(x) in kinds` may ask a metaclass.

    >>> is_exactly(True, (int, float)), is_exactly(1, (int, float))
    (False, True)
    """
    cls = type(x)
    for kind in kinds:  # a loop, which is twice as fast as `any`
        if cls is kind:
            return True
    return False


def class_attribute(cls: type, name: str) -> Any:
    """Return what a class has under a name, unbound, its bases included; ABSENT for nothing."""
    for base in bases_of(cls):
        found = names_in(base)
        if name in found:
            return found[name]
    return ABSENT


def has_in_class(x: Any, name: str) -> bool:
    """Return True if the object's class has an attribute, as `hasattr(type(x), name)` does."""
    return class_attribute(type(x), name) is not ABSENT


def is_iterator(x: Any) -> bool:
    """Return True if the class has the methods of an iterator."""
    return has_in_class(x, "__next__") and has_in_class(x, "__iter__")


def is_thread_local(cls: type) -> bool:
    """Return True if each thread finds other attributes in the objects of a class."""
    return issubclass(cls, _LOCAL)


def instance_dict(x: Any) -> Any:
    """Return an object's `__dict__`; None where it has none, whatever its class makes up. Of a
    `threading.local` it is that of the running thread.

    >>> class Empty:
    ...     __dict__ = property(lambda self: {"made": "up"})
    >>> instance_dict(Empty()), instance_dict(3)
    ({}, None)
    """
    cls = type(x)
    if is_thread_local(cls):
        return _of_thread(x, "__dict__")
    if not dict_offset(cls):
        return None
    for base in bases_of(cls):
        found = names_in(base).get("__dict__")
        if found is not None:
            if type(found) in NATIVE:
                return found.__get__(x)
            return _behind_property(x)
    return None


def _behind_property(x: Any) -> Any:
    """Return the `__dict__` of an object whose class has another attribute of that name."""
    ask: Any = ctypes.pythonapi["PyObject_GenericGetDict"]  # by item: types of our own
    ask.restype, ask.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p]
    return ask(id(x), None)  # as an address: ctypes would ask an object for its class


def slots_of(x: Any) -> list[MemberDescriptorType]:
    """Return the descriptors of an object's `__slots__`, also those that a subclass hides."""
    members = (d for base in bases_of(type(x)) for d in names_in(base).values())
    return [d for d in members if type(d) is MemberDescriptorType]


def filled_slots(x: Any) -> list[tuple[MemberDescriptorType, Any]]:
    """Return (descriptor, value) for each slot of an object that holds a value."""
    found = []
    for slot in slots_of(x):
        if not flags_of(slot.__objclass__) & _MADE_AT_RUN_TIME:  # C's: `SimpleNamespace.__dict__`
            continue
        with contextlib.suppress(AttributeError):  # the slot is empty
            found.append((slot, slot.__get__(x)))
    return found


def attribute_of(x: Any, name: str, default: Any = None) -> Any:
    """Return `x.name` as far as it lies in a `__dict__` or a native slot, else the default.

    Properties are not run, functions in classes are given as they are, unbound.

    >>> attribute_of(len, "__name__"), attribute_of([], "no"), attribute_of("".join, "__self__")
    ('len', None, '')
    """
    cls = type(x)
    found = class_attribute(cls, name)
    if type(found) in NATIVE:
        try:
            return found.__get__(x)
        except AttributeError:
            return default
    if issubclass(cls, type):
        own = class_attribute(x, name)
    else:
        own = instance_dict(x)
        own = own.get(name, ABSENT) if type(own) in (dict, MappingProxyType) else ABSENT
    if own is not ABSENT:
        return own
    if cls is MethodType and found is ABSENT:
        return attribute_of(x.__func__, name, default)
    if found is ABSENT or has_in_class(found, "__get__") and not callable(found):
        return default
    return found


def is_stand_in(x: Any) -> bool:
    """Return True if `x` stands for a number, a text or a list of the user's."""
    return issubclass(type(x), _stand_ins)


def class_of(x: Any) -> type:
    """Return an object's type; for a stand-in, the type that it stands for."""
    return x.__class__ if is_stand_in(x) else type(x)


def reads_plainly(x: Any) -> bool:
    """Return True if reading an attribute that `x` has, by its name, runs no code of the user's."""
    cls = type(x)
    ask = class_attribute(cls, "__getattribute__")
    if type(ask) is not WrapperDescriptorType or has_in_class(x, "__getattr__"):
        return False
    return type(class_attribute(cls, "__dict__")) in (*NATIVE, type(ABSENT))


class ByClass(Generic[Kept]):
    """Cache by class, which it does not keep alive. It asks no metaclass for a hash."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref, Kept]] = {}

    def get(self, cls: type) -> Kept | None:
        found = self.known.get(id(cls))
        return found[1] if found is not None and found[0]() is cls else None

    def __setitem__(self, cls: type, value: Kept) -> None:
        key, known = id(cls), self.known

        def gone(reference: weakref.ref) -> None:
            if key in known and known[key][0] is reference:
                del known[key]

        known[key] = weakref.ref(cls, gone), value


def module_title(module: Any) -> str:
    """Return a module's `__name__` without loading a lazy module. It is "tracejit" for our package
    under any other name too."""
    own = instance_dict(module)
    if own.get("__package__") == "tracejit" and "__path__" in own:
        return "tracejit"
    return str(own.get("__name__", ""))


def cell_contents(cell: CellType) -> Any:
    """Return the value of a closed-over variable; ABSENT while it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def title(function: Any) -> str:
    """Return the qualified name of a function; for an object without a name, its class.

    >>> title("".join), title(3)
    ('str.join', 'a int')
    """
    name = attribute_of(function, "__qualname__") or attribute_of(function, "__name__")
    return name if type(name) is str else f"a {name_of_class(type(function))}"
