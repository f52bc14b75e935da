"""Numbers of the caller's objects, replaced by runtime scalars while a call is recorded.

In: the places the state walker finds, the names the executed code stores, the places whose number
was seen to change. Out: `NumberLifter.look()`, called before each code object's first run, puts a
runtime scalar where such a number lies; `restore()`, called however the call ends, leaves plain
numbers everywhere. A number is only replaced when its place is first seen, so that nobody can have
read it before. Called by `runtime.capture_call`.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from tracejit.jit.capture.behaviour import function_of, may_change, module_name
from tracejit.jit.capture.computed_names import is_shared, is_users
from tracejit.jit.capture.contents import put
from tracejit.jit.capture.guards import current, found_at
from tracejit.jit.capture.location import is_own
from tracejit.jit.capture.looking import (
    ABSENT,
    ByClass,
    attribute_of,
    bases_of,
    class_attribute,
    is_a,
    is_exactly,
    module_title,
    names_in,
    own_dict,
)
from tracejit.jit.capture.place import CACHED, Place, key_of
from tracejit.jit.capture.plain import (
    concretize_objects,
    concretize_referrers,
    concretize_tree,
    is_object,
    refill,
)
from tracejit.jit.capture.plain_arguments import plain_numbers
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.state import State
from tracejit.jit.capture.watch import CONVERSIONS, Names, names_of

_NUMBERS = (int, float)
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
# Modules of classes in C that take nothing for a number but a number.
_MAKES_OF_NUMBERS = ("decimal", "datetime", "array", "ctypes")
TELL_INTS = {"type", "int"}  # `type(n) is int`
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")
_methods: ByClass[frozenset[Names]] = ByClass()

Path = tuple[tuple[str, Any], ...]


class NumberLifter:
    """Which places of one recorded call hold runtime scalars."""

    def __init__(
        self, sym_env: Any, state: State, varying: frozenset[Path], spread: frozenset[int]
    ):
        self.sym_env, self.state, self.varying = sym_env, state, varying
        self.hidden = True  # nobody notices that a number is a runtime scalar
        self.spread = spread  # arguments that the function is given in other containers
        self.roots: dict[int, SymNumber] = {}  # by id of the place
        self.seen: dict[tuple, SymNumber | None] = {}  # by what is stored there
        self.classes: dict[int, type] = {}
        self.stored: set[str] = set()
        self.rebound: set[str] = set()
        self.subscripts: set[Any] = set()
        self.keys: set[str] = set()
        self.cached = False  # whether a function with a cache of arguments was found
        self.looked = 0

    # -- before code runs ------------------------------------------------------------------------
    def argument(self, place: Place) -> SymNumber:
        """The runtime scalar that is passed for a number."""
        number = self.roots[id(place)] = self.sym_env.root(place.value, place)
        number.original = place.value  # which the caller still has
        return number

    def varies(self, place: Place) -> bool:
        """Whether the number there was seen to change."""
        return path_of(place) in self.varying

    def mention(self, names: Names) -> None:
        """Code may run that stores to these names."""
        self.stored |= names.stored
        self.rebound |= names.rebound
        self.subscripts |= names.subscripts
        self.keys |= names.keys

    def read_elsewhere(self, place: Place) -> bool:
        """Whether other code may have read a number in a tuple, where nothing can replace it."""
        owner = place.parent
        if owner is None or place.how != "item" or not is_a(owner.value, tuple):
            return False
        return is_a(owner.key, str) and owner.key in self.keys or "" in self.keys

    def look(self) -> None:
        """Replace numbers at the places found since the last time."""
        places = self.state.places[self.looked :]
        self.looked = len(self.state.places)
        for place in places:  # code that may run later counts already: afterwards is too late
            if place.kind == "function":
                self.mention(names_of(place.value.__code__))
            elif place.kind == "object":
                self._mention_class(type(place.value))
        for place in places:
            self.cached |= type(place.value) is CACHED
            if is_a(place.value, SymNumber):
                self._found_again(place)
            elif place.kind == "primitive" and is_exactly(place.value, _NUMBERS):
                self._consider(place)

    def _mention_class(self, cls: type) -> None:
        if id(cls) not in self.classes:
            self.classes[id(cls)] = cls
            for names in methods_of(cls):
                self.mention(names)

    def _consider(self, place: Place) -> None:
        slot = _slot(place)
        if not self.hidden:
            return
        if place.parent is not None and place.parent.key in ("__defaults__", "__kwdefaults__"):
            return  # a call has read them before anybody looks
        if place.parent is not None and place.parent.how == "argument":
            if place.parent.key in self.spread:
                return
        if place.parent is not None and is_a(place.parent.value, enum.Enum):
            return  # members are constants
        if place.parent is not None and _speaks_unseen(type(place.parent.value)):
            return
        if place.parent is not None and _is_shared(place.parent.value):
            return
        if slot is None:
            return
        if slot in self.seen:
            if (root := self.seen[slot]) is not None:  # a class's, found by an object of it
                self.roots[id(place)] = root
            return
        self.seen[slot] = None
        if self._stored(place) or path_of(place) in self.varying:
            number: SymNumber = self.sym_env.root(place.value, place)
            if _put(place, number):
                self.roots[id(place)] = number
                self.seen[slot] = number

    def _found_again(self, place: Place) -> None:
        """A second place of a number that was replaced already."""
        number, root = place.value, self.seen.get(_slot(place) or ())
        place.value = number.hint
        if root is not None and number is root:
            self.roots[id(place)] = root
        else:
            self.state.unmodelled(place.text, "a number stored in this call is found by new code")

    def _stored(self, place: Place) -> bool:
        """Whether code that was found gives this place new values."""
        if place.how in ("attr", "slot", "type"):
            return place.key in self.stored
        if place.how == "item":
            return key_of(place.key) is place.key and place.key in self.subscripts
        if place.how == "global":
            return place.key in self.rebound
        return place.text in self.rebound  # a closure's variable

    # -- after the call --------------------------------------------------------------------------
    def is_root(self, place: Place, value: Any) -> bool:
        """Whether the number put at this place is still there."""
        return self.roots.get(id(place)) is value

    def give_up(self, frame: FrameType, arguments: tuple) -> None:
        """Code begins whose result a cache keeps, for others too: it meets plain numbers alone."""
        if self.hidden:
            self.hidden = False
            for number in self.roots.values():
                number.concretize()  # which is guarded by its value then
            put_plain(self.state.places, arguments)
        given = frame.f_locals
        for name, value in list(given.items()):
            if (fresh := plain_numbers(value, True)) is not value:
                given[name] = fresh  # written back when the profiler's call is over

    def restore(self, arguments: tuple, swept: bool) -> None:
        """Plain numbers wherever the call left runtime scalars; `swept`: also where nobody
        looked."""
        put_plain(self.state.places, arguments)
        numbers = [weakref.ref(n) for n in (*self.sym_env.shared.values(), *self.sym_env.roots)]
        self.sym_env.close()
        self.roots.clear()
        self.seen.clear()
        if swept:
            concretize_referrers(numbers)


def put_plain(places: Iterable[Place], arguments: tuple) -> None:
    """Plain numbers at these places, instead of runtime scalars and sizes."""
    seen: set[int] = set()
    for place in places:
        own = own_dict(_owner(place, arguments)) if place.kind == "names" else None
        if type(own) is dict and any(type(name) is not str for name in own):
            concretize_tree(own)  # texts that waited for numbers
    for place in _with_made(places, arguments):
        if place.parent is not None and place.parent.value is not None:
            owner = place.parent.value  # which may be elsewhere by now
            now = place.read(owner)
            if (fresh := concretize_tree(now, seen)) is not now:
                _set(place, owner, fresh)
        now = found_at(place, arguments)
        if (fresh := concretize_tree(now, seen)) is not now:
            write(place, fresh, arguments)


def _with_made(places: Iterable[Place], arguments: tuple) -> Iterator[Place]:
    """The places, and those of attributes that are there now and were not."""
    for place in places:
        if place.kind not in ("lacks", "names"):
            yield place
            continue
        owner = _owner(place, arguments)
        if owner is not ABSENT:
            for how, name in place.made(owner):
                yield Place(place.parent, how, name, ABSENT, place.text)


def _owner(place: Place, arguments: tuple) -> Any:
    """The object of which a place tells which attributes it has, or ABSENT."""
    parent: Any = place.parent
    return found_at(parent, arguments) if parent.value is None else parent.value


def objects_at(places: Iterable[Place], arguments: tuple) -> set[int]:
    """The ids of objects that are at places."""
    found = (found_at(place, arguments) for place in _with_made(places, arguments))
    return {id(x) for x in found if is_object(x)}


def plain_inside(value: Any, places: Iterable[Place], arguments: tuple, known: set[int]) -> Any:
    """`value` with plain numbers, also in objects that are not `known`, which the call made: those
    that `value` holds, or that were put to places."""
    left = [found_at(place, arguments) for place in _with_made(places, arguments)]
    return concretize_objects([value, left], known)[0]


def plain_exception(error: BaseException | None) -> None:
    """Plain numbers in what an exception holds, and in those it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = concretize_tree(error.args)
        concretize_tree(error.__dict__)
        error = error.__cause__ or error.__context__


def suspends(function: Any) -> bool:
    """Whether a call only begins to run the function: the rest comes when the recording is over."""
    code = attribute_of(attribute_of(function, "__func__", function), "__code__")
    return code is not None and bool(code.co_flags & _SUSPENDED)


def asks_for_types(function: Any, adapt: Callable[[Any], Any] | None) -> bool:
    """Whether a function, or what it names, may call a method of a number's type on it; or, where
    it runs unrewritten, ask for its `type` or which object it is. `adapt` rewrites functions that
    have a source."""
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
    """Whether a function that runs unrewritten, or what it names, may tell an int from what stands
    for one."""
    return any(names_of(found.__code__).globals >= TELL_INTS
               for found in _reached(function) if type(found) is FunctionType)


def _makes_of_numbers(found: Any) -> bool:
    module = issubclass(type(found), ModuleType)
    home = module_title(found) if module else module_name(found) if type(found) is type else ""
    return home in _MAKES_OF_NUMBERS


def _reached(function: Any) -> Iterator[Any]:
    """A function, and what it and those that it names name."""
    todo: list[Any] = [function]
    seen: set[Any] = set()
    while todo:
        found = function_of(todo.pop())
        is_code = type(found) is FunctionType
        key: Any = found.__code__ if is_code else id(found)
        if key in seen or is_code and is_own(key):
            continue
        seen.add(key)
        yield found
        if issubclass(type(found), type):
            todo += names_in(found).values() if may_change(found) else ()
        elif is_code:
            todo += [found.__globals__.get(name) for name in names_of(key).globals]
            todo += [_contents(cell) for cell in found.__closure__ or ()]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def methods_of(cls: type) -> frozenset[Names]:
    """The names in the methods of a class, constructors aside."""
    found = _methods.get(cls)
    if found is None:
        names: set[Names] = set()
        for base in bases_of(cls):
            for name, member in names_in(base).items():
                function = member.fget if is_a(member, property) else function_of(member)
                if is_a(function, FunctionType) and name not in _CONSTRUCTORS:
                    names.add(names_of(function.__code__))
        found = _methods[cls] = frozenset(names)
    return found


def path_of(place: Place) -> Path:
    """The way from a root to a place: the same in each recording of a function."""
    steps: list[tuple[str, Any]] = []
    at: Place | None = place
    while at is not None:
        steps.append((at.how, key_of(at.key)))
        at = at.parent
    return tuple(reversed(steps))


def changed_numbers(guarded: Iterable[tuple[Place, Any]], arguments: tuple) -> frozenset[Path]:
    """Which numbers guarded by value are another number in this call."""
    found = set()
    for place, old in guarded:
        now = found_at(place, arguments)
        if is_exactly(now, _NUMBERS) and (type(now) is not type(old) or now != old):
            found.add(path_of(place))
    return frozenset(found)


def _slot(place: Place) -> tuple | None:
    """What is written when this place gets a new value; None where it cannot be replaced."""
    if place.how == "global":
        return id(place.container), place.key
    if place.how == "cell":
        return (id(place.key),)
    if place.parent is None:
        return None
    owner = place.parent.value
    if place.how == "attr" and type(own_dict(owner)) is dict:
        return id(own_dict(owner)), place.key
    if place.how == "type" and (cls := _holder(owner, place.key)) is not None:
        return id(cls), place.key
    if place.how in ("slot", "context"):
        return id(owner), place.key
    if place.how == "closure":
        return (id(owner.__closure__[place.key]),)
    if place.how == "item" and is_a(owner, (list, dict, deque)):
        return id(owner), key_of(place.key)
    return None


def _holder(owner: Any, name: str) -> type | None:
    """Return the class of the user's that gives the attribute, or None."""
    cls = owner if is_a(owner, type) else type(owner)
    holder = next((base for base in bases_of(cls) if name in names_in(base)), None)
    return holder if holder is not None and is_users(holder) else None


def _put(place: Place, value: Any) -> bool:
    owner = None if place.parent is None else place.parent.value
    return _set(place, owner, value)


def _is_shared(owner: Any) -> bool:
    """Whether this is a module whose constants everybody in the process reads, as `math.inf`."""
    return is_a(owner, ModuleType) and is_shared(module_title(owner))


def _speaks_unseen(cls: type) -> bool:
    """Whether C code asks instances for numbers by a method that the watcher does not know when it
    runs: a function of another name, which may read one from an attribute."""
    methods = (class_attribute(cls, name) for name in CONVERSIONS)
    return any(type(m) is FunctionType and m.__code__.co_name not in CONVERSIONS for m in methods)


def write(place: Place, value: Any, arguments: tuple) -> None:
    owner = None if place.parent is None else current(place.parent, arguments)
    _set(place, owner, value)


def _set(place: Place, owner: Any, value: Any) -> bool:
    how, key = place.how, place.key
    if how == "global":
        place.container[key] = value
    elif how == "cell":
        key.cell_contents = value
    elif how == "closure":
        owner.__closure__[key].cell_contents = value
    elif how == "attr":
        own_dict(owner)[key] = value
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
