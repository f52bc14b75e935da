"""The Python state a captured function can see: where each object is found, and what it was.

In: roots (arguments, globals, closure cells) and the names the executed code mentions. Out: a tree
of `Place`s, each with
the value it had when it was first reachable. Guards are generated from the tree; effects are found
by walking it again
after the call. Over-approximates: whatever the names reach counts as read (C2).
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    ModuleType,
)
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.attributes import HOLDING, Attributes, is_module
from tracejit.jit.capture.behaviour import (
    USERS_STATE,
    behaviour,
    code_in_class,
    may_change,
    module_name,
)
from tracejit.jit.capture.computed_names import (
    ANY,
    asks,
    names_for,
    names_of_getter,
)
from tracejit.jit.capture.contents import elements, items, length
from tracejit.jit.capture.foreign_compilers import hides_calls, unseen_read
from tracejit.jit.capture.kept_calls import KeptCalls
from tracejit.jit.capture.location import is_own
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    dict_offset,
    is_a,
    name_of_class,
    names_in,
    own_dict,
    qualname_of_class,
)
from tracejit.jit.capture.module_reads import Reads
from tracejit.jit.capture.place import (
    CACHED,
    PRIMITIVE,
    Place,
    behind_proxy,
    default_of,
    key_of,
    kind_of,
    told_by_identity,
    weakly,
)
from tracejit.jit.capture.sources import hooks_of, tensor_history
from tracejit.jit.capture.watch import Names

MAX_ELEMENTS = 16384
_STATEFUL = ("tensor", "sequence", "mapping", "set", "object", "function", "method", "partial")


def _is_internal(cls: type) -> bool:
    """Classes of ours that no program of the user's can run into."""
    module = module_name(cls)
    if not module.startswith("tracejit.") or issubclass(cls, Tensor):
        return False
    return not module.startswith(USERS_STATE)


class State(Attributes):
    """The tree of places reachable from the roots through the names seen so far."""

    def __init__(self, unmodelled: Callable[..., None]):
        super().__init__()
        self.unmodelled = unmodelled
        self.kept = KeptCalls(self.place_of)
        self.exposes: Callable[[Any], None] = lambda buffer: None  # told what may write memory
        self.asked: set[tuple[Callable, Any]] = set()  # of the process: it must answer the same
        self.registered: set[tuple[type, type]] = set()  # asked: is a class one of an abstract one
        self.roots: dict[tuple, Place] = {}
        self.functions: dict[Any, list[Place]] = {}  # code -> places of functions with it
        self.entered: set[Any] = set()  # code that runs
        self.repeated: list[tuple[Place, Place]] = []  # further places of a tensor
        self.held: list[Any] = []  # objects whose id is in use

    # -- growing -----------------------------------------------------------------------------
    def add_root(self, how: str, container: Any, key: Any, value: Any, text: str) -> None:
        identity = (how, id(container), key if not is_a(key, CellType) else id(key))
        if identity not in self.roots:
            place = Place(None, how, key, value, text)
            place.container = container if how == "global" else None
            self.roots[identity] = place
            self.held.append(container)
            self._visit(place)

    def mention(self, code: Names) -> None:
        """More code was entered: its names count from now on."""
        new = code.attributes - self.names
        new |= (code.stored - self.stored) | (code.uncertain - self.uncertain)
        widened = code.dynamic > self.everything or code.doubtful > self.doubtful
        widened |= code.computed > self.computed
        asks_modules = not widened and not code.subjects <= self.subjects
        self.stored |= code.stored
        self.uncertain |= code.uncertain
        self.everything |= code.dynamic
        self.doubtful |= code.doubtful
        self.computed |= code.computed
        self.subjects |= code.subjects
        self._grow(new | code.attributes, None if widened else new)
        if asks_modules:
            for place in list(self.places):
                self._of_asked(place)

    def mention_names(self, names: set[str]) -> None:
        """C code reads attributes of these names."""
        self._grow(names, names - self.names)

    def read_modules(self, reads: Reads) -> None:
        """Code of ours reads what modules hold."""
        self.reads.add(reads)
        for place in self.modules() if reads.names else ():
            self._read_by_ours(place, reads.names)
        self.mention_names(set(reads.common))

    def ask_all(self, module: ModuleType) -> None:
        """A module's attributes are asked for by names that code computes."""
        if id(module) not in self.whole:
            self.whole.add(id(module))
            self.held.append(module)
            if id(module) in self.by_id:
                self._attributes(self.by_id[id(module)], module, None)

    def ask_any(self, modules: bool = True) -> None:
        """Attributes of any object are asked for by names that code computes."""
        if not self.computed or not self.everything or modules and ANY not in self.subjects:
            self.everything = self.computed = True
            self.subjects |= {ANY} if modules else set()
            self._grow((), None)

    def _grow(self, names: Iterable[str], only: set[str] | frozenset[str] | None) -> None:
        """These names count from now on; `only` those are new, None: everything is looked at."""
        if only is not None and not only:
            return
        self.names.update(names)
        for place in list(self.places):
            if _has_attributes(place) and place is self.by_id.get(id(place.value)):
                self._attributes(place, place.value, only)
            elif place.kind == "class":
                self._of_instances(place)
            else:
                self._of_asked(place)

    def _of_asked(self, place: Place) -> None:
        """A module at this place, where its attributes are asked for by computed names."""
        if place.kind == "module" and self._is_asked(place):
            self._attributes(place, place.value, None)
        elif place.kind == "same" and place.first.kind == "module" and self._is_asked(place):  # type: ignore[union-attr]
            self.ask_all(place.value)

    def objects(self) -> list[Place]:
        """Where tensors, containers, functions and other objects are found, each once."""
        return [p for p in self.places if p.kind in _STATEFUL and self.by_id.get(id(p.value)) is p]

    def modules(self) -> list[Place]:
        """Where modules are found, each once."""
        return [p for p in self.objects() if p.kind == "object" and is_module(p.value)]

    def held_by_modules(self, places: Iterable[Place]) -> list[Place]:
        """Those of some places at which modules are, or tensors that modules hold or may."""
        held = {id(p.value) for p in self.places
                if p.how == "item" and p.parent.how == "attr" and p.parent.key in HOLDING}  # type: ignore[union-attr]
        return [p for p in places if is_module(p.value) or p.kind == "tensor" and (
            id(p.value) in held or type(p.value) is not Tensor)]

    def _visit(self, place: Place) -> None:
        value, kind = place.value, place.kind
        if kind == "absent" or kind == "primitive" and not _has_attributes(place):
            self.places.append(place)
            return
        if kind == "dead":
            self.unmodelled(place.text, "the object of a weak proxy is gone")
            return
        named = place.how in ("global", "attr") and place.key
        if kind == "identity" and asks(value) and named != attribute_of(value, "__name__"):
            self.ask_any()  # of another name code tells nothing
        known = self.by_id.get(id(value))
        if known is not None and kind == "tensor":
            self.repeated.append((place, known))
        elif known is not None:
            if kind == "module" and self._is_asked(place):
                self.ask_all(value)
            place.kind, place.first = "same", known
            self.places.append(place)
            return
        self.places.append(place)
        if known is None:
            self.by_id[id(value)] = place
            self.held.append(value)
            self.behaves(value if is_a(value, type) else type(value))
            self._contents(place, value, kind)

    def _contents(self, place: Place, value: Any, kind: str) -> None:
        if kind == "function":
            self.functions.setdefault(value.__code__, []).append(place)
            if value.__code__ in self.entered or is_own(value.__code__):  # ours are not watched
                self._closed_over(place)
            self._attributes(place, value, None)
        elif kind == "sequence":
            self._elements(place, enumerate(elements(value)), length(value))
        elif kind == "mapping":
            # A copy: a look at what it holds may import, which fills sys.modules.
            self._elements(place, items(value), length(value))
            place.keys = elements(value)
            for key in place.keys:
                if kind_of(key) == "object":  # guarded to be the same, so its attributes are left
                    text = f"a key of {place.text}"
                    self._child(place, "key", weakly(key), key, text)
            if is_a(value, defaultdict):
                self._child(place, "slot", "default_factory", value.default_factory,
                            f"{place.text}.default_factory")
        elif kind == "set":
            place.keys = frozenset(elements(value))
            for element in elements(value):
                if is_a(element, PRIMITIVE):
                    continue
                if told_by_identity(element):
                    self._child(place, "key", weakly(element), element, f"one of {place.text}")
                else:
                    self.unmodelled(place.text, "a set of objects is read")
        if kind in _OF_SUBCLASSES and _has_attributes(place):
            self._attributes(place, value, None)
        elif kind == "method":
            self._child(place, "self", None, value.__self__, place.text + ".__self__")
            self._child(place, "func", None, value.__func__, place.text)
        elif kind == "proxy":
            self._child(place, "proxied", None, behind_proxy(value), place.text)
        elif kind == "partial":
            for name in ("func", "args", "keywords"):
                self._child(place, "slot", name, getattr(value, name), f"{place.text}.{name}")
            self._attributes(place, value, None)
        elif is_a(value, (operator.attrgetter, operator.methodcaller)):
            self.mention_names(names_of_getter(value))
        elif is_a(value, BuiltinFunctionType):
            self.mention_names(names_for(value))
        elif is_a(value, CACHED):
            self.kept.find(value)
            self._child(place, "attr", "__wrapped__", own_dict(value).get("__wrapped__", ABSENT),
                        f"{place.text}.__wrapped__")
            self._attributes(place, value, None)
        elif is_a(value, ContextVar):
            self._child(place, "context", None, value.get(ABSENT), f"{place.text}.get()")
            default = default_of(value)
            if not is_a(default, PRIMITIVE):  # which nothing changes
                self._child(place, "default", None, default, f"the default of {place.text}")
        elif kind == "identity" and is_a(value, (staticmethod, classmethod)):
            self._child(place, "slot", "__func__", value.__func__, place.text)
        elif kind == "identity" and is_a(value, property):
            self._child(place, "slot", "fget", value.fget, place.text)
            self._attributes(place, value, None)
        elif kind == "identity" and is_a(value, (type, FunctionType)):
            self._attributes(place, value, None)
        elif kind in ("object", "module", "tensor"):
            if kind == "tensor":
                place.keys = tensor_history(value)
                for k, hook in enumerate(hooks_of(value)):
                    self._child(place, "hook", k, hook, f"hook {k} of {place.text}")
            self._attributes(place, value, None)
        elif kind == "opaque":
            self.unmodelled(
                place.text,
                f"a {module_name(type(value))}.{name_of_class(type(value))} is read, whose "
                "changes cannot be seen",
            )
            self.exposes(value)
        if hides_calls(value):
            self.unmodelled(place.text, *unseen_read())

    def _elements(self, place: Place, items: Iterator[tuple] | Any, length: int) -> None:
        place.length = length
        if length > MAX_ELEMENTS:
            self.unmodelled(place.text, f"a container of {length} elements is read")
            return
        for key, element in items:
            self._child(place, "item", key, element, f"{place.text}[{_key_text(key)}]")

    def behaves(self, cls: type) -> None:
        """Operators and methods of a class count as read."""
        if id(cls) in self.classes or not may_change(cls) or _is_internal(cls):
            return
        place = Place(None, "constant", cls, cls, f"class {qualname_of_class(cls)}")
        self.classes[id(cls)] = place
        place.kind, place.keys = "class", behaviour(cls)
        self.places.append(place)
        self._of_instances(place)
        self.behaves(type(cls))

    def runs(self, function: FunctionType) -> None:
        """The captured function: its code counts as read."""
        place = Place(None, "constant", function, function, function.__qualname__)
        self.places.append(place)

    def enter_method(self, owner: Any, code: Any) -> bool:
        """As `enter`, for a method of `owner`, or of the class that it is, which nobody named."""
        cls = type(owner)
        if _is_internal(owner if is_a(owner, type) else cls):
            return False
        found = code_in_class(owner, code) if is_a(owner, type) else None
        found = found or code_in_class(cls, code)
        if found is None:
            return False
        self.behaves(owner if is_a(owner, type) else cls)
        base, name = found
        known = self._base(base)
        self._child(known, "type", name, names_in(base)[name],
                    f"{qualname_of_class(base)}.{name}")
        return self.enter(code)

    def enter(self, code: Any) -> bool:
        """A function with this code runs: what it closes over and its defaults count as read.
        False: found nowhere."""
        self.entered.add(code)
        places = self.functions.get(code, [])
        for place in places:  # closures of one factory share their code
            self._closed_over(place)
        return bool(places)

    def _closed_over(self, place: Place) -> None:
        function, code = place.value, place.value.__code__
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._child(place, "slot", name, getattr(function, name), f"{place.text}.{name}")
        for k, (name, cell) in enumerate(zip(code.co_freevars, function.__closure__ or ())):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                value = ABSENT
            self._child(place, "closure", k, value, name)

    def refresh(self, container: Any) -> None:
        """A container's contents count from now on as what was there before the call."""
        place = self.by_id.get(id(container))
        if place is not None:
            place.children.clear()
            self._contents(place, container, place.kind)

    def release(self) -> None:
        """Hold nothing of the caller's alive any more: places stay, as directions."""
        for place in (*self.places, *self.roots.values()):
            if place.how != "constant":
                place.value = None
            if place.kind in ("mapping", "tensor"):
                place.keys = ()
            if place.how == "item":
                place.key = weakly(place.key)
        self.by_id.clear()
        self.held.clear()
        self.repeated.clear()
        self.functions.clear()

    # -- looking things up ----------------------------------------------------------------------
    def place_of(self, value: Any) -> Place | None:
        """Where an object was found first."""
        return self.by_id.get(id(value))


_WITH_ATTRIBUTES = ("object", "module", "identity", "tensor", "function", "partial")
_OF_SUBCLASSES = ("primitive", "sequence", "mapping", "set")  # have attributes if the user's


def _has_attributes(place: Place) -> bool:
    """Whether an object's attributes are looked at."""
    if place.kind not in _OF_SUBCLASSES:
        return place.kind in _WITH_ATTRIBUTES
    cls = type(place.value)
    if module_name(cls).startswith("tracejit"):
        return module_name(cls).startswith(USERS_STATE) and bool(dict_offset(cls))
    return may_change(cls) or bool(dict_offset(cls))  # as an OrderedDict has them


def _key_text(key: Any) -> str:
    return repr(key) if key_of(key) is key else f"<{name_of_class(type(key))}>"
