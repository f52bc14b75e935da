"""Sources: access paths to the objects that a recorded call may read.

In: an object, and how it is found from its parent. Out: `Source`, which reads what is there now;
`kind_of`, which says how guards check a value; `identical`, which compares plain values. Called by
`attributes` and `state`, which make the tree of sources, and by guards and effects, which read and
write there.
"""

from __future__ import annotations

import abc
import datetime
import enum
import functools
import gc
import io
import operator
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from contextvars import Context, ContextVar
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.devices import device
from tracejit.core.memory.reliances import holds, relies
from tracejit.core.ops.generators import default_generator
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import dtype
from tracejit.jit.capture.contents import hashes_plainly, item, kind_of_container
from tracejit.jit.capture.dynamic_names import is_user_class, own_names
from tracejit.jit.capture.fingerprint import is_mutable_class
from tracejit.jit.capture.inputs import hooks_of
from tracejit.jit.capture.location import is_published
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    class_attribute,
    dict_offset,
    has_in_class,
    instance_dict,
    is_a,
    is_exactly,
    is_thread_local,
    names_in,
)

PRIMITIVE = (
    int,
    float,
    bool,
    complex,
    str,
    bytes,
    type(None),
    type(Ellipsis),
    dtype,
    device,
    enum.Enum,
    range,
    np.generic,
)
CACHED = functools._lru_cache_wrapper  # `memoized_calls` looks at its calls
_IDENTITY = (
    BuiltinFunctionType, type(NotImplemented), type, staticmethod, classmethod, property,
    operator.attrgetter, operator.itemgetter, np.dtype, np.ufunc, type(np.mean), Op,
    type(vars(abc.ABC)["_abc_impl"]), re.Pattern, slice, GenericAlias, UnionType,
    type(threading.Lock()), type(threading.RLock()), MethodDescriptorType, WrapperDescriptorType,
    ContextVar, CACHED,
    type(vars(datetime)["datetime_CAPI"]),  # a capsule: only C code sees what is in it
)  # fmt: skip
TOLD_BY_TEXT = (float, complex, range, np.inexact)  # unlike values may be equal: compare texts


class Source:
    """Access path to one object: `how` it is found from its parent, and the value found there.

    A source without parent is a `global`, an `argument`, a `constant`, or a `cell` (`key` is the
    cell). Any other `how` says which part of the parent it is:

    attr           entry `key` of its `__dict__`
    type           attribute `key` of its class, or of itself if it is a class
    slot           attribute `key` outside `__dict__`
    item           element at `key`
    key            `key` itself: a key of a mapping, an element of a set
    variable       cell number `key` of a function; `closure`: the contents of that cell
    self, func     of a bound method; `proxied`: the mapping behind a `MappingProxyType`
    hook           hook number `key` of a tensor; `grad`: its gradient
    context        value of a context variable; `default`: its default
    own_names      names that it has; `missing_names`: names that it lacked, in `key`
    """

    __slots__ = (
        "parent",
        "how",
        "key",
        "value",
        "kind",
        "children",
        "length",
        "text",
        "keys",
        "container",
        "first",
    )

    def __init__(self, parent: Source | None, how: str, key: Any, value: Any, text: str):
        self.parent, self.how, self.key, self.value, self.text = parent, how, key, value, text
        self.kind = kind_of(value)
        self.length = 0  # number of elements in a container
        # A mapping's keys in order, a set's elements, a tensor's history, a class's fingerprint.
        self.keys: Any = ()
        self.children: dict[tuple, Source] = {}
        self.container: Any = None  # of a `global`: the dict of globals
        self.first: Source | None = None  # of kind `same`: where the object was found first

    def __repr__(self) -> str:
        return f"<{self.text}: {self.kind}>"

    def made(self, owner: Any) -> list[tuple[str, str]]:
        """Return (how, name) for each attribute that `owner` got since the source was made.

        Serve the sources `own_names` and `missing_names`. Return [] if the names cannot be read.
        """
        found = self.read(owner)
        if found is ABSENT:
            return []
        how, before = "type" if is_a(owner, type) else "attr", set(self.value or ())
        return [(how, name) for name in found if name not in before]

    def read(self, parent: Any) -> Any:
        """Return the value there now, given the object at the parent; ABSENT if it is gone.

        Run none of the user's code. `guards.read_from` reads sources without parent, and gradients.
        """
        try:
            if self.how == "key":
                return referent(self.key) if type(self.key) is weakref.ref else self.key
            if type(self.key) is weakref.ref:
                return item(parent, referent(self.key))
            if self.how == "attr":
                own = instance_dict(parent)
                return ABSENT if own is None else own.get(self.key, ABSENT)
            if self.how == "type":
                return class_attribute(
                    type(parent) if not is_a(parent, type) else parent, self.key
                )
            if self.how == "cell":
                return self.key.cell_contents
            if self.how == "variable":
                return parent.__closure__[self.key]
            if self.how == "closure":
                return parent.__closure__[self.key].cell_contents
            if self.how == "hook":
                return hooks_of(parent)[self.key]
            if self.how in ("self", "func"):
                return parent.__self__ if self.how == "self" else parent.__func__
            if self.how == "slot":
                return slot_of(parent, self.key)
            if self.how == "own_names":
                return own_names(parent)
            if self.how == "context":
                return parent.get(ABSENT)
            if self.how == "default":
                return default_of(parent)
            if self.how == "proxied":
                return behind_proxy(parent)
            if self.how == "missing_names":
                return now_there(parent, self.key)
            return item(parent, self.key)
        except (KeyError, IndexError, ValueError, AttributeError):
            return ABSENT


def kind_of(value: Any) -> str:
    """Return the kind of a value, which decides how guards check it."""
    if value is ABSENT:
        return "absent"
    if type(value) is MappingProxyType and holds("proxies") and is_a(behind_proxy(value), dict):
        return "proxy"
    if is_exactly(value, weakref.ProxyTypes) and is_dead(value):
        return "dead"
    if is_a(value, Tensor):
        return "tensor"
    if is_a(value, PRIMITIVE):
        return "primitive"
    if is_a(value, (list, tuple, deque)):
        return "sequence"
    if is_a(value, dict):
        return "mapping"
    if is_a(value, (set, frozenset)):
        return "set"
    if is_a(value, ModuleType):
        return "module"
    if is_a(value, MethodType):
        return "method"
    if is_a(value, FunctionType):
        return "identity" if is_published(value) else "function"
    if is_a(value, _IDENTITY) or type(value) is object or value is default_generator:
        return "identity"  # calls without a generator draw from the default one
    if value is sys.stdout or value is sys.stderr:  # code may only write and flush
        return "identity" if is_exactly(value, (io.TextIOWrapper, io.StringIO)) else "opaque"
    if is_a(value, operator.methodcaller) and _passes_constants(value):
        return "identity"
    if is_a(value, functools.partial):
        return "partial"
    plain = _is_plain_object(value) and not is_a(value, weakref.ref)
    return "object" if plain or type(value) is SimpleNamespace else "opaque"


def identical(one: Any, other: Any) -> bool:
    """Return True if the user's code cannot tell two plain values apart.

    >>> identical((1, 0.0), (1, 0.0)), identical(0.0, -0.0), identical(1, True)
    (True, False, False)
    >>> identical(range(0), range(5, 5))
    False
    """
    if one is other or type(one) is not type(other) or is_a(one, Tensor):
        return one is other  # a tensor, as a key of a dict, is equal to itself alone
    if type(one) is tuple:
        return len(one) == len(other) and all(map(identical, one, other))
    if is_a(one, enum.Enum):
        return False
    kind: Any = kind_of_container(type(one))  # not the user's overrides
    if is_a(one, TOLD_BY_TEXT):
        return bool(kind.__repr__(one) == kind.__repr__(other))
    return kind.__eq__(one, other) is True if kind is not object else bool(one == other)


def told_by_identity(x: Any) -> bool:
    """Return True if an object is equal to itself alone, as classes and functions are."""
    own, usual = type(x), names_in(object)
    return all(class_attribute(own, name) is usual[name] for name in ("__eq__", "__hash__"))


def key_of(key: Any) -> Any:
    """Return a key itself if it is a primitive with a plain hash, else its id."""
    return key if is_a(key, PRIMITIVE) and hashes_plainly(key) else id(key)


def weak_key(key: Any) -> Any:
    """Return a primitive key as it is, any other as a weak reference where it allows one."""
    if is_a(key, PRIMITIVE):
        return key
    try:
        return weakref.ref(key)
    except TypeError:
        return key


def is_dead(proxy: Any) -> bool:
    """Return True if the object behind a weak proxy is gone."""
    try:
        proxy.__class__  # noqa: B018
    except ReferenceError:
        return True
    return False


def referent(reference: weakref.ref) -> Any:
    """Return the object of a weak reference; raise KeyError if it is gone."""
    found = reference()
    if found is None:
        raise KeyError("the key is gone")
    return found


def _passes_constants(caller: operator.methodcaller) -> bool:
    """Return True if the arguments that an `operator.methodcaller` passes are all primitives."""
    parts: Any = caller.__reduce__()
    made, given = parts
    return all(is_a(x, PRIMITIVE) for x in (*given, *getattr(made, "keywords", {}).values()))


def _is_plain_object(value: Any) -> bool:
    """Return True for an instance of a Python class with a `__dict__` or slots that is no iterator.

    A `threading.local` counts only without a constructor of the user's: the first look in a thread
    would run the constructor.
    """
    cls = type(value)
    if is_thread_local(cls):
        return class_attribute(cls, "__init__") is object.__init__ or not is_user_class(cls)
    return (
        is_mutable_class(cls)
        and (bool(dict_offset(cls)) or has_in_class(value, "__slots__"))
        and not has_in_class(value, "__next__")
    )


def behind_proxy(proxy: Any) -> Any:
    """Return the mapping behind a `MappingProxyType`, without running the user's code."""
    return gc.get_referents(proxy)[0]


@relies("proxies", "a `MappingProxyType` refers to the mapping that it shows and to nothing else",
        "what is read through one breaks the graph")
def _shows_one_mapping() -> bool:
    behind = {"a": 1}
    (found,) = gc.get_referents(MappingProxyType(behind))
    return found is behind


def slot_of(x: Any, name: str) -> Any:
    """Return what a slot holds, or ABSENT; run no `__getattr__` of the user's."""
    return attribute_of(x, name, ABSENT)


def default_of(variable: ContextVar) -> Any:
    """Return the default of a context variable; ABSENT if it has none."""
    return Context().run(_value_of, variable)


def _value_of(variable: ContextVar) -> Any:
    try:
        return variable.get()
    except LookupError:
        return ABSENT


def now_there(owner: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return those names that an object's `__dict__`, or a class and its bases, have."""
    if is_a(owner, type):
        return tuple(name for name in names if class_attribute(owner, name) is not ABSENT)
    own = instance_dict(owner)
    if not is_a(own, (dict, MappingProxyType)):  # none, or one that user code makes up
        return ("__dict__",)
    return tuple(name for name in names if name in own)



