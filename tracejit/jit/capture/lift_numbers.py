"""Numbers of the caller's objects, replaced by runtime scalars while a call is recorded.

In: the sources the state walker finds, the names the executed code stores, the sources whose number
was seen to change. Out: `NumberLifter.look()`, called before each code object's first run, puts a
runtime scalar where such a number lies. `restore()`, called however the call ends, leaves plain
numbers everywhere. A number is replaced only when its source is first seen: no code can have read
it before. Called by `runtime.session`.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import FrameType, FunctionType, ModuleType
from typing import Any

from tracejit.jit.capture.access_path import CACHED, Source, key_of
from tracejit.jit.capture.concretize import (
    concretize_objects,
    concretize_referrers,
    concretize_tree,
    is_object,
    refill,
)
from tracejit.jit.capture.contents import put
from tracejit.jit.capture.dynamic_names import is_shared_module, is_user_class
from tracejit.jit.capture.fingerprint import function_of, is_mutable_class, module_name
from tracejit.jit.capture.guards import read_from, try_read_from
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import (
    ABSENT,
    ByClass,
    attribute_of,
    bases_of,
    cell_contents,
    class_attribute,
    instance_dict,
    is_a,
    is_exactly,
    module_title,
    names_in,
)
from tracejit.jit.capture.plain_arguments import plain_numbers
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.state import ReachableState
from tracejit.jit.capture.watcher import CONVERSIONS, CodeNames, names_of
from tracejit.jit.ir.sizes import SymInt

_NUMBERS = (int, float)
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
# Modules whose C classes take plain numbers alone.
_MAKES_OF_NUMBERS = ("decimal", "datetime", "array", "ctypes")
TELL_INTS = {"type", "int"}  # `type(n) is int`
# Attributes of a symbolic size that no int has: code that asks for them must get plain ints.
OF_SIZES = frozenset(name for name in dir(SymInt) if name[0] != "_" and not hasattr(int, name))
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")
_methods: ByClass[frozenset[CodeNames]] = ByClass()

Path = tuple[tuple[str, Any], ...]


class NumberLifter:
    """Runtime scalars of one recorded call, and the sources at which they lie."""

    def __init__(
        self, sym_env: Any, state: ReachableState, varying: frozenset[Path], spread: frozenset[int]
    ):
        self.sym_env, self.state, self.varying = sym_env, state, varying
        self.hidden = True  # the code cannot notice that a number is a runtime scalar
        self.spread = spread  # numbers of `*args`, `**kwargs`: a call makes new ones
        self.roots: dict[int, SymNumber] = {}  # by id of the source
        self.seen: dict[tuple, SymNumber | None] = {}  # by `_slot`; None: left as it is
        self.classes: dict[int, type] = {}
        self.stored: set[str] = set()
        self.rebound: set[str] = set()
        self.subscripts: set[Any] = set()
        self.keys: set[str] = set()
        self.cached = False  # a function of `lru_cache` was found
        self.looked = 0

    # -- before code runs ------------------------------------------------------------------------
    def argument(self, source: Source) -> SymNumber:
        """Return the runtime scalar that is passed for a number argument."""
        number = self.roots[id(source)] = self.sym_env.root(source.value, source)
        number.original = source.value  # the caller's object stays at the source
        return number

    def varies(self, source: Source) -> bool:
        """Return True if the number there was seen to change between calls."""
        return path_of(source) in self.varying

    def add_names(self, names: CodeNames) -> None:
        """Take in the names of code that may run, and may store to these."""
        self.stored |= names.stored
        self.rebound |= names.rebound
        self.subscripts |= names.subscripts
        self.keys |= names.keys

    def read_elsewhere(self, source: Source) -> bool:
        """Return True for a number in a tuple, which nothing can replace, if other code may have
        read it there. The tuple's key is among the entries that code names."""
        owner = source.parent
        if owner is None or source.how != "item" or not is_a(owner.value, tuple):
            return False
        return is_a(owner.key, str) and owner.key in self.keys or "" in self.keys

    def look(self) -> None:
        """Replace numbers at the sources found since the last time."""
        sources = self.state.sources[self.looked :]
        self.looked = len(self.state.sources)
        for source in sources:  # names of code that may run later count now: later is too late
            if source.kind == "function":
                self.add_names(names_of(source.value.__code__))
            elif source.kind == "object":
                self._add_class_names(type(source.value))
        for source in sources:
            self.cached |= type(source.value) is CACHED
            if is_a(source.value, SymNumber):
                self._found_again(source)
            elif source.kind == "primitive" and is_exactly(source.value, _NUMBERS):
                self._consider(source)

    def _add_class_names(self, cls: type) -> None:
        if id(cls) not in self.classes:
            self.classes[id(cls)] = cls
            for names in methods_of(cls):
                self.add_names(names)

    def _consider(self, source: Source) -> None:
        slot = _slot(source)
        if not self.hidden:
            return
        if source.parent is not None and source.parent.key in ("__defaults__", "__kwdefaults__"):
            return  # a call binds defaults before the watcher sees its code
        if source.parent is not None and source.parent.how == "argument":
            if source.parent.key in self.spread:
                return
        if source.parent is not None and is_a(source.parent.value, enum.Enum):
            return  # members are constants
        if source.parent is not None and _speaks_unseen(type(source.parent.value)):
            return
        if source.parent is not None and _is_shared(source.parent.value):
            return
        if slot is None:
            return
        if slot in self.seen:
            if (root := self.seen[slot]) is not None:  # a class's, found by an object of it
                self.roots[id(source)] = root
            return
        self.seen[slot] = None
        if self._stored(source) or path_of(source) in self.varying:
            number: SymNumber = self.sym_env.root(source.value, source)
            if _put(source, number):
                self.roots[id(source)] = number
                self.seen[slot] = number

    def _found_again(self, source: Source) -> None:
        """Take in a source at which a runtime scalar lies already. No entry is made if the call
        itself stored it there."""
        number, root = source.value, self.seen.get(_slot(source) or ())
        source.value = number.hint
        if root is not None and number is root:
            self.roots[id(source)] = root
        else:
            self.state.unmodelled(source.text, "new code reads a number that this call stored")

    def _stored(self, source: Source) -> bool:
        """Return True if code found so far may give this source a new value."""
        if source.how in ("attr", "slot", "type"):
            return source.key in self.stored
        if source.how == "item":
            return key_of(source.key) is source.key and source.key in self.subscripts
        if source.how == "global":
            return source.key in self.rebound
        return source.text in self.rebound  # a closure's variable

    # -- after the call --------------------------------------------------------------------------
    def is_root(self, source: Source, value: Any) -> bool:
        """Return True if the number put at this source is still there."""
        return self.roots.get(id(source)) is value

    def give_up(self, frame: FrameType, arguments: tuple) -> None:
        """Make all numbers plain, guarded by value: a cache keeps the result of the code that
        begins."""
        if self.hidden:
            self.hidden = False
            for number in self.roots.values():
                number.concretize()  # from now on guarded by value
            put_plain(self.state.sources, arguments)
        given = frame.f_locals
        for name, value in list(given.items()):
            if (fresh := plain_numbers(value, True)) is not value:
                given[name] = fresh  # reaches the frame when the profile function ends

    def restore(self, arguments: tuple, swept: bool) -> None:
        """Put plain numbers wherever the call left runtime scalars; `swept`: also where no source
        leads."""
        put_plain(self.state.sources, arguments)
        numbers = [weakref.ref(n) for n in (*self.sym_env.shared.values(), *self.sym_env.roots)]
        self.sym_env.close()
        self.roots.clear()
        self.seen.clear()
        if swept:
            concretize_referrers(numbers)


def put_plain(sources: Iterable[Source], arguments: tuple) -> None:
    """Put plain numbers at these sources, instead of runtime scalars and sizes."""
    seen: set[int] = set()
    for source in sources:
        own = instance_dict(_owner(source, arguments)) if source.kind == "own_names" else None
        if type(own) is dict and any(type(name) is not str for name in own):
            concretize_tree(own)  # names that are pending texts
    for source in _with_made(sources, arguments):
        if source.parent is not None and source.parent.value is not None:
            owner = source.parent.value  # no source may lead to it any more
            now = source.read(owner)
            if (fresh := concretize_tree(now, seen)) is not now:
                _set(source, owner, fresh)
        now = try_read_from(source, arguments)
        if (fresh := concretize_tree(now, seen)) is not now:
            write(source, fresh, arguments)


def _with_made(sources: Iterable[Source], arguments: tuple) -> Iterator[Source]:
    """Yield the sources, and new ones for attributes that were not there when names were
    recorded."""
    for source in sources:
        if source.kind not in ("missing_names", "own_names"):
            yield source
            continue
        owner = _owner(source, arguments)
        if owner is not ABSENT:
            for how, name in source.made(owner):
                yield Source(source.parent, how, name, ABSENT, source.text)


def _owner(source: Source, arguments: tuple) -> Any:
    """Return the object at the parent of a source, or ABSENT."""
    parent: Any = source.parent
    return try_read_from(parent, arguments) if parent.value is None else parent.value


def objects_at(sources: Iterable[Source], arguments: tuple) -> set[int]:
    """Return the ids of the user's objects that are at sources now."""
    found = (try_read_from(source, arguments) for source in _with_made(sources, arguments))
    return {id(x) for x in found if is_object(x)}


def plain_inside(value: Any, sources: Iterable[Source], arguments: tuple, known: set[int]) -> Any:
    """Return `value` with plain numbers, also in objects that the call made. Their ids are not
    `known`; `value` holds them, or the call put them to sources."""
    left = [try_read_from(source, arguments) for source in _with_made(sources, arguments)]
    return concretize_objects([value, left], known)[0]


def plain_exception(error: BaseException | None) -> None:
    """Make the numbers that an exception holds plain, also in those it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = concretize_tree(error.args)
        concretize_tree(error.__dict__)
        error = error.__cause__ or error.__context__


def suspends(function: Any) -> bool:
    """Return True for generators and coroutines: a call only begins them, the rest runs when the
    recording is over."""
    code = attribute_of(attribute_of(function, "__func__", function), "__code__")
    return code is not None and bool(code.co_flags & _SUSPENDED)


def asks_for_types(function: Any, adapt: Callable[[Any], Any] | None) -> bool:
    """Return True if a function, or what it names, may notice runtime scalars: it calls methods of
    a number's type. Where it runs unrewritten, it may also ask for types or identity, or give
    numbers to C. `adapt` rewrites functions that have a source."""
    for found in _reached(function):
        if type(found) is not FunctionType:
            if adapt is None and _makes_of_numbers(found):
                return True
            continue
        mentioned = names_of(found.__code__)
        asks = "type" in mentioned.globals or mentioned.constants
        if mentioned.of_numbers or asks and (adapt is None or adapt(found) is found):
            return True
    return False


def tells_ints(function: Any) -> bool:
    """Return True if a function that runs unrewritten, or what it names, may tell an int from a
    stand-in."""
    return any(names_of(found.__code__).globals >= TELL_INTS
               for found in _reached(function) if type(found) is FunctionType)


def _makes_of_numbers(found: Any) -> bool:
    module = issubclass(type(found), ModuleType)
    home = module_title(found) if module else module_name(found) if type(found) is type else ""
    return home in _MAKES_OF_NUMBERS


def _reached(function: Any) -> Iterator[Any]:
    """Yield a function, and whatever it names by globals and closure variables, at any depth."""
    todo: list[Any] = [function]
    seen: set[Any] = set()
    while todo:
        found = function_of(todo.pop())
        is_code = type(found) is FunctionType
        key: Any = found.__code__ if is_code else id(found)
        if key in seen or is_code and is_internal_code(key):
            continue
        seen.add(key)
        yield found
        if issubclass(type(found), type):
            todo += names_in(found).values() if is_mutable_class(found) else ()
        elif is_code:
            todo += [found.__globals__.get(name) for name in names_of(key).globals]
            todo += [cell_contents(cell) for cell in found.__closure__ or ()]


def methods_of(cls: type) -> frozenset[CodeNames]:
    """Return the names that the methods of a class mention, constructors aside."""
    found = _methods.get(cls)
    if found is None:
        names: set[CodeNames] = set()
        for base in bases_of(cls):
            for name, member in names_in(base).items():
                function = member.fget if is_a(member, property) else function_of(member)
                if is_a(function, FunctionType) and name not in _CONSTRUCTORS:
                    names.add(names_of(function.__code__))
        found = _methods[cls] = frozenset(names)
    return found


def path_of(source: Source) -> Path:
    """Return the path from a root to a source: the same in each recording of a function."""
    steps: list[tuple[str, Any]] = []
    at: Source | None = source
    while at is not None:
        steps.append((at.how, key_of(at.key)))
        at = at.parent
    return tuple(reversed(steps))


def changed_numbers(guarded: Iterable[tuple[Source, Any]], arguments: tuple) -> frozenset[Path]:
    """Return the paths of numbers guarded by value that are another number in this call."""
    found = set()
    for source, old in guarded:
        now = try_read_from(source, arguments)
        if is_exactly(now, _NUMBERS) and (type(now) is not type(old) or now != old):
            found.add(path_of(source))
    return frozenset(found)


def _slot(source: Source) -> tuple | None:
    """Return a key for the place that a write to this source changes; None where a number there
    cannot be replaced."""
    if source.how == "global":
        return id(source.container), source.key
    if source.how == "cell":
        return (id(source.key),)
    if source.parent is None:
        return None
    owner = source.parent.value
    if source.how == "attr" and type(instance_dict(owner)) is dict:
        return id(instance_dict(owner)), source.key
    if source.how == "type" and (cls := _holder(owner, source.key)) is not None:
        return id(cls), source.key
    if source.how in ("slot", "context"):
        return id(owner), source.key
    if source.how == "closure":
        return (id(owner.__closure__[source.key]),)
    if source.how == "item" and is_a(owner, (list, dict, deque)):
        return id(owner), key_of(source.key)
    return None


def _holder(owner: Any, name: str) -> type | None:
    """Return the class that gives the attribute if it is the user's, or None."""
    cls = owner if is_a(owner, type) else type(owner)
    holder = next((base for base in bases_of(cls) if name in names_in(base)), None)
    return holder if holder is not None and is_user_class(holder) else None


def _put(source: Source, value: Any) -> bool:
    owner = None if source.parent is None else source.parent.value
    return _set(source, owner, value)


def _is_shared(owner: Any) -> bool:
    """Return True for a module whose constants all code in the process reads, as `math.inf`."""
    return is_a(owner, ModuleType) and is_shared_module(module_title(owner))


def _speaks_unseen(cls: type) -> bool:
    """Return True if C code may ask instances for a number by a function the watcher does not know
    by its name. It may read that number from an attribute."""
    methods = (class_attribute(cls, name) for name in CONVERSIONS)
    return any(type(m) is FunctionType and m.__code__.co_name not in CONVERSIONS for m in methods)


def write(source: Source, value: Any, arguments: tuple) -> None:
    owner = None if source.parent is None else read_from(source.parent, arguments)
    _set(source, owner, value)


def _set(source: Source, owner: Any, value: Any) -> bool:
    how, key = source.how, source.key
    if how == "global":
        source.container[key] = value
    elif how == "cell":
        key.cell_contents = value
    elif how == "closure":
        owner.__closure__[key].cell_contents = value
    elif how == "attr":
        instance_dict(owner)[key] = value
    elif how == "type":
        cls = owner if is_a(owner, type) else type(owner)
        type.__setattr__(next(c for c in bases_of(cls) if key in names_in(c)), key, value)
    elif how == "context":
        owner.set(value)
    elif how == "slot":
        return _set_slot(owner, key, value)
    elif how == "item" and is_a(owner, (list, dict, deque)):
        entry: Any = key() if type(key) is weakref.ref else key
        put(owner, entry, value)
    else:
        return False
    return True


def _set_slot(owner: Any, key: str, value: Any) -> bool:
    if value is ABSENT:
        return False
    if is_a(owner, functools.partial):
        refill(owner, **{key: value})
        return True
    for cls in bases_of(type(owner)):
        if key in names_in(cls):
            names_in(cls)[key].__set__(owner, value)
            return True
    return False
