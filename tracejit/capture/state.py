"""The Python state a captured function can see: where each object is found, and what it was.

In: roots (arguments, globals, closure cells) and the names the executed code mentions. Out: a tree
of `Place`s, each with
the value it had when it was first reachable. Guards are generated from the tree; effects are found
by walking it again
after the call. Over-approximates: whatever the names reach counts as read (C2).
"""

from __future__ import annotations

import enum
import functools
import operator
import sys
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    DynamicClassAttribute,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

from tracejit.capture.behaviour import (
    USERS_STATE,
    behaviour,
    code_in_class,
    known_names,
    may_change,
    module_name,
    own_dict,
)
from tracejit.capture.computed_names import (
    ANY,
    asks,
    data_of_module,
    is_shared,
    is_users,
    names_for,
    names_of_getter,
    own_names,
    slot_names,
)
from tracejit.capture.contents import elements, items, length
from tracejit.capture.location import is_own
from tracejit.capture.module_reads import METHODS, Reads, has_methods
from tracejit.capture.place import (
    ABSENT,
    PRIMITIVE,
    Place,
    class_attribute,
    kind_of,
    slot_of,
    weakly,
)
from tracejit.capture.sources import hooks_of, tensor_history
from tracejit.capture.watch import Names
from tracejit.eager.tensor import Tensor

MODULE_TABLES = (
    "forward",
    "_parameters",
    "_buffers",
    "_modules",
    "training",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_scripted_original",
)
MAX_ELEMENTS = 4096
_STATEFUL = ("tensor", "sequence", "mapping", "set", "object", "function", "method", "partial")


def _is_internal(cls: type) -> bool:
    """Classes of ours that no program of the user's can run into."""
    module = module_name(cls)
    if not module.startswith("tracejit.") or issubclass(cls, Tensor):
        return False
    return not module.startswith(USERS_STATE)


def _is_ours(cls: type, name: str) -> bool:
    """Whether an attribute of a class comes from one of tracejit's."""
    owner = next((c for c in cls.__mro__ if name in c.__dict__), cls)
    return module_name(owner).startswith("tracejit.")


class State:
    """The tree of places reachable from the roots through the names seen so far."""

    def __init__(self, unmodelled: Callable[[str, str], None]):
        self.unmodelled = unmodelled
        self.exposes: Callable[[Any], None] = lambda buffer: None  # told what may write memory
        self.names: set[str] = set()
        self.stored: set[str] = set()
        self.everything = False
        self.computed = False  # attributes are asked for by names that code computes
        self.subjects: set[str] = set()  # of what is found under these names
        self.whole: set[int] = set()  # ids of modules of which any attribute is read
        self.asked: set[tuple[Callable, Any]] = set()  # of the process: it must answer the same
        self.registered: set[tuple[type, type]] = set()  # asked: is a class one of an abstract one
        self.uncertain: set[str] = set()  # names that code expects to be missing at times
        self.doubtful = False  # any name may be: code handles that it is missing
        self.reads: set[Reads] = set()  # what code of ours reads of modules
        self.classes: set[int] = set()
        self.places: list[Place] = []
        self.by_id: dict[int, Place] = {}
        self.roots: dict[tuple, Place] = {}
        self.functions: dict[Any, list[Place]] = {}  # code -> places of functions with it
        self.entered: set[Any] = set()  # code that runs
        self.repeated: list[tuple[Place, Place]] = []  # further places of a tensor
        self.kept: list[Any] = []  # objects whose id is in use

    # -- growing -----------------------------------------------------------------------------
    def add_root(self, how: str, container: Any, key: Any, value: Any, text: str) -> None:
        identity = (how, id(container), key if not isinstance(key, CellType) else id(key))
        if identity not in self.roots:
            place = Place(None, how, key, value, text)
            place.container = container if how == "global" else None
            self.roots[identity] = place
            self.kept.append(container)
            self._visit(place)

    def mention(self, code: Names) -> None:
        """More code was entered: its names count from now on."""
        new = code.attributes - self.names
        new |= (code.stored - self.stored) | (code.uncertain - self.uncertain)
        widened = code.dynamic > self.everything or code.doubtful > self.doubtful
        widened |= code.computed > self.computed or not code.subjects <= self.subjects
        self.stored |= code.stored
        self.uncertain |= code.uncertain
        self.everything |= code.dynamic
        self.doubtful |= code.doubtful
        self.computed |= code.computed
        self.subjects |= code.subjects
        self._grow(new | code.attributes, None if widened else new)

    def mention_names(self, names: set[str]) -> None:
        """C code reads attributes of these names."""
        self._grow(names, names - self.names)

    def read_modules(self, reads: Reads) -> None:
        """Code of ours reads what modules hold."""
        self.reads.add(reads)
        for place in self.modules() if reads.names else ():
            self._read_by_ours(place, reads.names)
        self.mention_names(set(reads.common))

    def _read_by_ours(self, place: Place, names: Iterable[str]) -> None:
        own = own_dict(place.value)
        for name in sorted(names):
            self._child(place, "attr", name, own.get(name, ABSENT), f"{place.text}.{name}")

    def ask_all(self, module: ModuleType) -> None:
        """A module's attributes are asked for by names that code computes."""
        if id(module) not in self.whole:
            self.whole.add(id(module))
            self.kept.append(module)
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
            elif place.kind == "same" and place.first.kind == "module" and self._is_asked(place):  # type: ignore[union-attr]
                self.ask_all(place.value)

    def objects(self) -> list[Place]:
        """Where tensors, containers, functions and other objects are found, each once."""
        return [p for p in self.places if p.kind in _STATEFUL and self.by_id.get(id(p.value)) is p]

    def modules(self) -> list[Place]:
        """Where modules are found, each once."""
        return [p for p in self.objects() if p.kind == "object" and _is_module(p.value)]

    def held_by_modules(self, places: Iterable[Place]) -> list[Place]:
        """Those of some places at which modules are, or tensors that modules hold or may."""
        held = {id(p.value) for p in self.places
                if p.how == "item" and p.parent.how == "attr" and p.parent.key in _HOLDING}  # type: ignore[union-attr]
        return [p for p in places if _is_module(p.value) or p.kind == "tensor" and (
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
        if kind == "identity" and asks(value) and named != value.__name__:
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
            self.kept.append(value)
            self.behaves(value if isinstance(value, type) else type(value))
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
            if isinstance(value, defaultdict):
                self._child(place, "slot", "default_factory", value.default_factory,
                            f"{place.text}.default_factory")
        elif kind == "set":
            place.keys = frozenset(elements(value))
            if not all(isinstance(v, PRIMITIVE) for v in place.keys):
                self.unmodelled(place.text, "a set of objects is read")
        if kind in _OF_SUBCLASSES and _has_attributes(place):
            self._attributes(place, value, None)
        elif kind == "method":
            self._child(place, "self", None, value.__self__, place.text + ".__self__")
            self._child(place, "func", None, value.__func__, place.text)
        elif kind == "partial":
            for name in ("func", "args", "keywords"):
                self._child(place, "slot", name, getattr(value, name), f"{place.text}.{name}")
            self._attributes(place, value, None)
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self.mention_names(names_of_getter(value))
        elif isinstance(value, BuiltinFunctionType):
            self.mention_names(names_for(value))
        elif kind == "identity" and isinstance(value, (staticmethod, classmethod)):
            self._child(place, "slot", "__func__", value.__func__, place.text)
        elif kind == "identity" and isinstance(value, property):
            self._child(place, "slot", "fget", value.fget, place.text)
            self._attributes(place, value, None)
        elif kind == "identity" and isinstance(value, (type, FunctionType)):
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
                "each call asks functools.lru_cache for what it keeps, which no guard sees; ask "
                "it outside, and pass what it gives"
                if type(value) is functools._lru_cache_wrapper else
                f"a {module_name(type(value))}.{type(value).__name__} is read, whose "
                "changes cannot be seen",
            )
            self.exposes(value)

    def _elements(self, place: Place, items: Iterator[tuple] | Any, length: int) -> None:
        place.length = length
        if length > MAX_ELEMENTS:
            self.unmodelled(place.text, f"a container of {length} elements is read")
            return
        for key, element in items:
            self._child(place, "item", key, element, f"{place.text}[{_key_text(key)}]")

    def _attributes(self, place: Place, value: Any, only: set[str] | frozenset[str] | None) -> None:
        own = own_dict(value)
        if not isinstance(own, (dict, MappingProxyType)):  # made up by the object's own __getattr__
            own = {}
        module = module_name(type(value))
        if place.kind == "identity" and isinstance(value, FunctionType):
            self._of_published(place, own, self.names if only is None else only)
            return
        if place.kind == "identity" and not (
            isinstance(value, type) or may_change(type(value))
        ):
            return
        if place.kind == "tensor":
            self._of_tensor(place, value, self.names if only is None else only)
            return
        internal = module.startswith("tracejit.") and not module.startswith(USERS_STATE)
        if internal and not isinstance(value, type):
            if isinstance(
                own.get("function"), FunctionType
            ):  # a captured function: its own code counts
                self._child(place, "attr", "function", own["function"], place.text)
                self._of_captured(place, own, self.names if only is None else only)
            elif own_dict(value) is not None and not _is_in_library(place):
                self._of_internal(place, own, self.names if only is None else only)
            return
        names = self.names if only is None or self.everything else set(only)
        if place.kind == "module":
            if self._is_asked(place):
                names = names | {n for n in data_of_module(value) if kind_of(own[n]) != "opaque"}
            answers = "__getattr__" in own and not is_shared(value.__name__)
            names = names | {"__getattr__"} if answers else names
        elif self.everything:
            names = names | set(own)
        if only is None and self.computed and not isinstance(value, type):
            names = names | slot_names(type(value))
        if only is None and _is_module(value):
            names = set(names) | set(MODULE_TABLES)
            names |= METHODS & own.keys() if has_methods(own) else set()
            self._read_by_ours(place, {name for reads in self.reads for name in reads.names})
        if only is None and (module == _READ_WHOLE or isinstance(value, enum.Enum)):
            names = set(names) | set(own)
        text, known = place.text, place.children.get(("names", None))
        for name in sorted(names):
            if name in own and not isinstance(value, type):
                made = known is not None and name not in known.value  # by this call
                found = ABSENT if made else own[name]
                self._child(place, "attr", name, found, f"{text}.{name}")
                self._behind(place, type(value), name)
            elif place.kind == "function":
                self._of_function(place, value, name)
            elif place.kind == "module":
                may_appear = name in self.stored or self._may_miss(name, type(value))
                may_appear |= "__getattr__" in own
                if may_appear and not is_shared(value.__name__):
                    self._child(place, "attr", name, ABSENT, f"{text}.{name}")
            else:
                self._class_level(place, value, name)
        if self._asks_for_any(place):
            self._own_names(place, own)

    def _asks_for_any(self, place: Place) -> bool:
        """Whether it matters which attributes an object has."""
        if place.kind == "module":
            return self._is_asked(place) and not is_shared(place.value.__name__)
        if place.kind == "function":
            return (self.computed or self.doubtful) and not is_own(place.value.__code__)
        has = own_dict(place.value) is not None and not isinstance(place.value, type)
        return self.computed and has

    def _is_asked(self, place: Place) -> bool:
        """Whether a module's attributes are asked for by names that code computes."""
        if id(place.value) in self.whole or place.text.rpartition(".")[2] in self.subjects:
            return True
        if place.how == "item":
            return self.computed and place.parent.value is not sys.modules  # type: ignore[union-attr]
        of_module = place.parent is not None and place.parent.kind == "module"
        return ANY in self.subjects and (not of_module or place.key in self.names)

    def _own_names(self, place: Place, own: Iterable[str]) -> None:
        """Which attributes an object had when the call began."""
        if ("names", None) in place.children:
            return
        found = {key: child.kind for (how, key), child in place.children.items() if how == "attr"}
        names = tuple(name for name in own if found.get(name) != "absent")
        self._names(place, names, f"{place.text}.__dict__")

    def _names(self, place: Place, names: tuple[str, ...], text: str) -> None:
        child = Place(place, "names", None, names, text)
        child.kind = "names"
        place.children["names", None] = child
        self.places.append(child)

    def _of_instances(self, place: Place) -> None:
        """What all instances of a class have, and its subclasses."""
        cls = place.value
        for name in _NAMED & self.names if is_users(cls) else ():
            self._child(place, "slot", name, getattr(cls, name), f"{place.text}.{name}")
        if not self.computed or ("names", None) in place.children:
            return
        names = own_names(cls)
        self._names(place, names, f"the attributes of {cls.__qualname__}")
        for name in names:
            found = class_attribute(cls, name)
            if kind_of(found) != "opaque":
                self._child(place, "type", name, found, f"{cls.__qualname__}.{name}")

    def _behind(self, place: Place, cls: type, name: str) -> None:
        """Data of a class under the name of an instance's own."""
        found = class_attribute(cls, name)
        if found is ABSENT or isinstance(found, (FunctionType, _SLOT, *_QUIET)):
            return
        if may_change(cls) and not _is_ours(cls, name):
            self._child(place, "type", name, found, f"{place.text}.{name} of the class")
            self._overridden(cls, name)

    def _overridden(self, cls: type, name: str) -> None:
        """Data that bases have under the same name: `super().name`."""
        for base in [c for c in cls.__mro__ if name in vars(c) and may_change(c)][1:]:
            hidden = (FunctionType, _SLOT, *_QUIET)
            if is_users(base) and not isinstance(vars(base)[name], hidden):
                known = self._base(base)
                self._child(known, "type", name, vars(base)[name], f"{base.__qualname__}.{name}")

    def _base(self, base: type) -> Place:
        self.add_root("constant", base, base, base, f"class {base.__qualname__}")
        return self.by_id[id(base)]

    def _of_function(self, place: Place, function: FunctionType, name: str) -> None:
        if is_own(function.__code__):
            return
        if name in _TOLD:
            self._child(place, "slot", name, getattr(function, name), f"{place.text}.{name}")
        elif name in self.stored:
            self._child(place, "attr", name, ABSENT, f"{place.text}.{name}")

    def _of_published(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave a function of ours."""
        for name in sorted(n for n in names if n in own or n in self.stored | self.uncertain):
            self._child(place, "attr", name, own.get(name, ABSENT), f"{place.text}.{name}")
        if self.computed or self.doubtful:
            self._own_names(place, own)

    def _of_internal(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave an object of ours, which no code of its class knows."""
        cls = type(place.value)
        may = {n for n in names if self.doubtful or n in self.stored or n in self.uncertain}
        wanted = {n for n in names if n in own or n in may and not hasattr(cls, n)}
        for name in sorted(wanted - known_names(cls)):
            self._child(place, "attr", name, own.get(name, ABSENT), f"{place.text}.{name}")
        if self.computed:
            self._own_names(place, own)

    def _of_captured(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave a captured function, as counters and caches are kept."""
        ours = type(place.value).OWN
        for name in sorted(n for n in names if n not in ours and not n.startswith("__")):
            if name in own or name in self.stored and not hasattr(type(place.value), name):
                self._child(place, "attr", name, own.get(name, ABSENT), f"{place.text}.{name}")

    def _of_tensor(self, place: Place, tensor: Tensor, names: Iterable[str]) -> None:
        """Attributes that the user gave a tensor, and those that code may miss."""
        own, cls = tensor.__dict__, type(tensor)
        may = [n for n in names if n in self.stored or self._may_miss(n, cls)]
        wanted = {n for n in names if n in own} | {n for n in may if not hasattr(cls, n)}
        for name in sorted(wanted | set(own) if self.everything else wanted):
            self._child(place, "attr", name, own.get(name, ABSENT), f"{place.text}.{name}")
        for name in (n for n in names if n not in own):
            found = class_attribute(cls, name)
            if found is not ABSENT or name in self.uncertain or self.doubtful:
                self._of_library(cls, name, found)
        if self.computed:
            self._own_names(place, own)

    def _class_level(self, place: Place, value: Any, name: str) -> None:
        if isinstance(value, type):
            self._of_class(place, value, name)
            return
        cls = type(value)
        found = class_attribute(cls, name)
        if isinstance(found, _SLOT):
            self._child(place, "slot", name, slot_of(value, name), f"{place.text}.{name}")
        elif found is not ABSENT and not isinstance(found, _QUIET):
            ours = module_name(cls).startswith("tracejit")
            if ours:
                self._of_library(cls, name, found)
            else:
                self._child(place, "type", name, found, f"{place.text}.{name}")
                self._overridden(cls, name)
            if own_dict(value) is not None and (not ours or isinstance(found, FunctionType)):
                self._child(place, "attr", name, ABSENT, f"{place.text}.{name} of the instance")
        elif found is ABSENT:
            missed = self._may_miss(name, cls)
            own = own_dict(value)
            may_appear = missed or name in self.stored or _is_module(value) and any(
                name in (own.get(table) or ()) for table in _TABLES)
            if may_appear and own is not None:  # it comes before what tables and the class have
                self._child(place, "attr", name, ABSENT, f"{place.text}.{name}")
            if missed:
                self._child(place, "type", name, ABSENT, f"{place.text}.{name} of the class")

    def _of_class(self, place: Place, cls: type, name: str) -> None:
        """An attribute that code names of a class itself."""
        found = class_attribute(cls, name)
        if not may_change(cls) or isinstance(found, (_SLOT, *_QUIET)):
            return
        if found is not ABSENT and _is_ours(cls, name) and not _is_data(found):
            return
        inherited = class_attribute(type(cls), name) if may_change(type(cls)) else ABSENT
        if found is ABSENT and inherited is not ABSENT:
            self.add_root("constant", type(cls), type(cls), type(cls), type(cls).__qualname__)
        elif found is ABSENT and not self._may_miss(name, type(cls)):
            return
        self._child(place, "type", name, found, f"{place.text}.{name}")
        self._overridden(cls, name)

    def _of_library(self, cls: type, name: str, found: Any) -> None:
        """Data of a class of ours, of which there may be many instances."""
        if may_change(cls) and (found is ABSENT or _is_data(found)):
            self._child(self._base(cls), "type", name, found, f"{cls.__qualname__}.{name}")

    def _may_miss(self, name: str, cls: type) -> bool:
        """Whether code may ask for an attribute, of a `cls`, that is not there."""
        if self.doubtful or name in self.uncertain:
            return True
        answers = getattr(cls, "__getattr__", None)  # that of modules looks in their tables
        code = getattr(answers, "__code__", None)
        return answers is not None and (code is None or not is_own(code))

    def _child(self, parent: Place, how: str, key: Any, value: Any, text: str) -> None:
        identity = (how, key if isinstance(key, PRIMITIVE) else id(key))
        if identity in parent.children:
            return
        child = parent.children[identity] = Place(parent, how, key, value, text)
        self._visit(child)

    def behaves(self, cls: type) -> None:
        """Operators and methods of a class count as read."""
        if id(cls) in self.classes or not may_change(cls) or _is_internal(cls):
            return
        self.classes.add(id(cls))
        place = Place(None, "constant", cls, cls, f"class {cls.__qualname__}")
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
        if _is_internal(owner if isinstance(owner, type) else cls):
            return False
        found = code_in_class(owner, code) if isinstance(owner, type) else None
        found = found or code_in_class(cls, code)
        if found is None:
            return False
        self.behaves(owner if isinstance(owner, type) else cls)
        base, name = found
        known = self._base(base)
        self._child(known, "type", name, vars(base)[name], f"{base.__qualname__}.{name}")
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
        self.kept.clear()
        self.repeated.clear()
        self.functions.clear()

    # -- looking things up ----------------------------------------------------------------------
    def place_of(self, value: Any) -> Place | None:
        """Where an object was found first."""
        return self.by_id.get(id(value))


_SLOT = MemberDescriptorType
_HOLDING = ("_parameters", "_buffers")
_TABLES = (*_HOLDING, "_modules")
# Of whose objects methods of ours, which mention no names, read all.
_READ_WHOLE = "tracejit.sparse.tensor"
_QUIET = (
    type(object.__init__), type(object.__new__), type(int.real), type(str.join),
    DynamicClassAttribute, type(vars(namedtuple("Fields", "one"))["one"]),
)  # fmt: skip
_WITH_ATTRIBUTES = ("object", "module", "identity", "tensor", "function", "partial")
_NAMED = {"__name__", "__qualname__"}
_TOLD = ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__")
_OF_SUBCLASSES = ("primitive", "sequence", "mapping", "set")  # have attributes if the user's


def _is_in_library(place: Place) -> bool:
    """Whether an object is found in a module of ours: it holds our own state."""
    home = place.container if place.how == "global" else None
    if place.parent is not None and place.parent.kind == "module":
        home = vars(place.parent.value)
    return home is not None and str(home.get("__name__")).startswith("tracejit")


def _is_data(found: Any) -> bool:
    """Whether an attribute of a class of ours is no function, and guards can tell its value."""
    return not hasattr(type(found), "__get__") and kind_of(found) != "opaque"


def _is_module(value: Any) -> bool:
    own = own_dict(value)
    return isinstance(own, dict) and "_parameters" in own


def _has_attributes(place: Place) -> bool:
    """Whether an object's attributes are looked at."""
    if place.kind not in _OF_SUBCLASSES:
        return place.kind in _WITH_ATTRIBUTES
    cls = type(place.value)
    if module_name(cls).startswith("tracejit"):
        return module_name(cls).startswith(USERS_STATE) and bool(cls.__dictoffset__)
    return may_change(cls) or bool(cls.__dictoffset__)  # as an OrderedDict has them


def _key_text(key: Any) -> str:
    return repr(key) if isinstance(key, PRIMITIVE) else f"<{type(key).__name__}>"
