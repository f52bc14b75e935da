"""Which attributes of an object count as read: those that code names, and those it may miss.

In: objects that `state` found, the names that code mentions, what it asks for by names that it
computes. Out: places of the attributes; one place of an object, and of a class, for all that are
not there. `state.State` is made of this, and walks on from what is found here.
"""

from __future__ import annotations

import enum
import sys
from collections import namedtuple
from collections.abc import Iterable
from types import (
    DynamicClassAttribute,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
)
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.overriding import gates
from tracejit.jit.capture.behaviour import USERS_STATE, known_names, may_change, module_name
from tracejit.jit.capture.computed_names import (
    ANY,
    data_of_module,
    is_shared,
    is_users,
    own_names,
    slot_names,
)
from tracejit.jit.capture.location import is_own
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    bases_of,
    class_attribute,
    has_in_class,
    is_a,
    module_title,
    names_in,
    own_dict,
    qualname_of_class,
)
from tracejit.jit.capture.module_reads import METHODS, Reads, has_methods
from tracejit.jit.capture.place import CACHED, Place, key_of, kind_of, slot_of

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
_SLOT = MemberDescriptorType
HOLDING = ("_parameters", "_buffers")
_TABLES = (*HOLDING, "_modules")
# Of whose objects methods of ours, which mention no names, read all.
_READ_WHOLE = "tracejit.sparse.tensor"
_QUIET = (
    type(object.__init__), type(object.__new__), type(int.real), type(str.join),
    DynamicClassAttribute, type(vars(namedtuple("Fields", "one"))["one"]),
)  # fmt: skip
_NAMED = {"__name__", "__qualname__"}
_TOLD = ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__",
         "__annotations__")  # fmt: skip


def _is_ours(cls: type, name: str) -> bool:
    """Whether an attribute of a class comes from one of tracejit's."""
    owner = next((c for c in bases_of(cls) if name in names_in(c)), cls)
    return module_name(owner).startswith("tracejit.")


class Attributes:
    """What code asks of attributes, and the places of those that count."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.stored: set[str] = set()
        self.everything = False
        self.computed = False  # attributes are asked for by names that code computes
        self.subjects: set[str] = set()  # of what is found under these names
        self.whole: set[int] = set()  # ids of modules of which any attribute is read
        self.uncertain: set[str] = set()  # names that code expects to be missing at times
        self.doubtful = False  # any name may be: code handles that it is missing
        self.reads: set[Reads] = set()  # what code of ours reads of modules
        self.classes: dict[int, Place] = {}  # id -> where it is
        self.places: list[Place] = []
        self.by_id: dict[int, Place] = {}

    def add_root(self, how: str, container: Any, key: Any, value: Any, text: str) -> None:
        raise NotImplementedError

    def _visit(self, place: Place) -> None:
        raise NotImplementedError

    def _read_by_ours(self, place: Place, names: Iterable[str]) -> None:
        own = own_dict(place.value)
        for name in sorted(names):
            self._own(place, own, name)

    def _attributes(self, place: Place, value: Any, only: set[str] | frozenset[str] | None) -> None:
        own = own_dict(value)
        if not is_a(own, (dict, MappingProxyType)):  # made up by the object's own __getattr__
            own = {}
        module = module_name(type(value))
        if place.kind == "identity" and is_a(value, (FunctionType, CACHED)):
            self._of_published(place, own, self.names if only is None else only)
            return
        if place.kind == "identity" and not (
            is_a(value, type) or may_change(type(value))
        ):
            return
        if place.kind == "tensor":
            self._of_tensor(place, value, self.names if only is None else only)
            return
        internal = module.startswith("tracejit.") and not module.startswith(USERS_STATE)
        if internal and not is_a(value, type):
            if is_a(
                own.get("function"), FunctionType
            ):  # a captured function: its own code counts
                self._child(place, "attr", "function", own["function"], place.text)
                self._of_captured(place, own, self.names if only is None else only)
            elif own_dict(value) is not None and not _is_in_library(place):
                self._of_internal(place, own, self.names if only is None else only)
            return
        names = self.names if only is None else set(only)
        if place.kind == "module":
            if self._is_asked(place):
                names = names | {n for n in data_of_module(value) if kind_of(own[n]) != "opaque"}
            answers = "__getattr__" in own and not is_shared(module_title(value))
            names = names | {"__getattr__"} if answers else names
        elif self.everything:
            names = names | set(own)
        if only is None and self.computed and not is_a(value, type):
            names = names | slot_names(type(value))
        if only is None and is_module(value):
            names = set(names) | set(MODULE_TABLES)
            names |= METHODS & own.keys() if has_methods(own) else set()
            self._read_by_ours(place, {name for reads in self.reads for name in reads.names})
        if only is None and (module == _READ_WHOLE or is_a(value, enum.Enum)):
            names = set(names) | set(own)
        for name in sorted(names):
            if name in own and not is_a(value, type):
                if place.kind == "function" and _is_of_gate(value, own, name):
                    continue
                self._own(place, own, name)
                self._behind(place, type(value), name)
            elif place.kind == "function":
                self._of_function(place, value, name)
            elif place.kind == "module":
                may_appear = name in self.stored or self._may_miss(name, type(value))
                may_appear |= "__getattr__" in own
                if may_appear and not is_shared(module_title(value)):
                    self._lacks(place, name)
                    self._own(place, own, "__getattr__")  # which is asked then
            else:
                self._class_level(place, value, name)
        if self._asks_for_any(place):
            self._own_names(place, own)

    def _own(self, place: Place, own: Any, name: str) -> None:
        """An attribute of the object itself, or that it has none."""
        if name not in own:
            self._lacks(place, name)
            return
        known, lacked = (place.children.get((how, None)) for how in ("names", "lacks"))
        made = known is not None and name not in known.value  # by this call
        made |= lacked is not None and name in lacked.key
        self._child(place, "attr", name, ABSENT if made else own[name], f"{place.text}.{name}")

    def _asks_for_any(self, place: Place) -> bool:
        """Whether it matters which attributes an object has."""
        if place.kind == "module":
            return self._is_asked(place) and not is_shared(module_title(place.value))
        if place.kind == "function":
            return (self.computed or self.doubtful) and not is_own(place.value.__code__)
        has = own_dict(place.value) is not None and not is_a(place.value, type)
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
        lacked = place.children.get(("lacks", None))
        found |= dict.fromkeys(lacked.key if lacked else (), "absent")
        names = tuple(name for name in own if found.get(name) != "absent")
        self._tells(place, "names", None, names, f"{place.text}.__dict__")

    def _tells(self, place: Place, how: str, key: Any, names: tuple[str, ...], text: str) -> None:
        """The place that tells which attributes an object has (`names`), or has not (`lacks`)."""
        child = place.children[how, None] = Place(place, how, key, names, text)
        child.kind = how
        self.places.append(child)

    def _of_instances(self, place: Place) -> None:
        """What all instances of a class have, and its subclasses."""
        cls = place.value
        for name in _NAMED & self.names if is_users(cls) else ():
            self._child(place, "slot", name, slot_of(cls, name), f"{place.text}.{name}")
        if not self.computed or ("names", None) in place.children:
            return
        names = own_names(cls)
        self._tells(place, "names", None, names, f"the attributes of {qualname_of_class(cls)}")
        for name in names:
            found = class_attribute(cls, name)
            if kind_of(found) != "opaque":
                self._child(place, "type", name, found, f"{qualname_of_class(cls)}.{name}")

    def _behind(self, place: Place, cls: type, name: str) -> None:
        """Data of a class under the name of an instance's own."""
        found = class_attribute(cls, name)
        if found is ABSENT or is_a(found, (FunctionType, _SLOT, *_QUIET)):
            return
        if may_change(cls) and not _is_ours(cls, name):
            self._child(place, "type", name, found, f"{place.text}.{name} of the class")
            self._overridden(cls, name)

    def _overridden(self, cls: type, name: str) -> None:
        """Data that bases have under the same name: `super().name`."""
        for base in [c for c in bases_of(cls) if name in names_in(c) and may_change(c)][1:]:
            hidden = (FunctionType, _SLOT, *_QUIET)
            if is_users(base) and not is_a(names_in(base)[name], hidden):
                known = self._base(base)
                text = f"{qualname_of_class(base)}.{name}"
                self._child(known, "type", name, names_in(base)[name], text)

    def _base(self, base: type) -> Place:
        self.add_root("constant", base, base, base, f"class {qualname_of_class(base)}")
        return self.by_id[id(base)]

    def _of_function(self, place: Place, function: FunctionType, name: str) -> None:
        if is_own(function.__code__):
            return
        if name in _TOLD:
            self._child(place, "slot", name, getattr(function, name), f"{place.text}.{name}")
        elif name in self.stored or self._may_miss(name, FunctionType):
            self._lacks(place, name)

    def _of_published(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave a function of ours."""
        for name in sorted(n for n in names if n in own or n in self.stored | self.uncertain):
            if not _is_of_gate(place.value, own, name):
                self._own(place, own, name)
        if self.computed or self.doubtful:
            self._own_names(place, own)

    def _of_internal(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave an object of ours, which no code of its class knows."""
        cls = type(place.value)
        may = {n for n in names if self.doubtful or n in self.stored or n in self.uncertain}
        wanted = {n for n in names if n in own or n in may and class_attribute(cls, n) is ABSENT}
        for name in sorted(wanted - known_names(cls)):
            self._own(place, own, name)
        if self.computed:
            self._own_names(place, own)

    def _of_captured(self, place: Place, own: Any, names: Iterable[str]) -> None:
        """Attributes that the user gave a captured function, as counters and caches are kept."""
        ours = type(place.value).OWN
        for name in sorted(n for n in names if n not in ours and not n.startswith("__")):
            if name in own or name in self.stored and not has_in_class(place.value, name):
                self._own(place, own, name)

    def _of_tensor(self, place: Place, tensor: Tensor, names: Iterable[str]) -> None:
        """Attributes that the user gave a tensor, and those that code may miss."""
        own, cls = tensor.__dict__, type(tensor)
        may = [n for n in names if n in self.stored or self._may_miss(n, cls)]
        wanted = {n for n in names if n in own} | {n for n in may if not hasattr(cls, n)}
        for name in sorted(wanted | set(own) if self.everything else wanted):
            self._own(place, own, name)
        for name in (n for n in names if n not in own):
            found = class_attribute(cls, name)
            if found is not ABSENT or name in self.uncertain or self.doubtful:
                self._of_library(cls, name, found)
        if self.computed:
            self._own_names(place, own)

    def _class_level(self, place: Place, value: Any, name: str) -> None:
        if is_a(value, type):
            self._of_class(place, value, name)
            return
        cls = type(value)
        found = class_attribute(cls, name)
        if is_a(found, _SLOT):
            self._child(place, "slot", name, slot_of(value, name), f"{place.text}.{name}")
        elif found is not ABSENT and not is_a(found, _QUIET):
            ours = module_name(cls).startswith("tracejit")
            if ours:
                self._of_library(cls, name, found)
            else:
                self._child(place, "type", name, found, f"{place.text}.{name}")
                self._overridden(cls, name)
            if own_dict(value) is not None and (not ours or is_a(found, FunctionType)):
                self._lacks(place, name)
        elif found is ABSENT:
            missed = self._may_miss(name, cls)
            own = own_dict(value)
            may_appear = missed or name in self.stored or is_module(value) and any(
                name in (own.get(table) or ()) for table in _TABLES)
            if may_appear and own is not None:  # it comes before what tables and the class have
                self._lacks(place, name)
            if missed or name in self.stored:
                self._class_lacks(cls, name)

    def _of_class(self, place: Place, cls: type, name: str) -> None:
        """An attribute that code names of a class itself."""
        found = class_attribute(cls, name)
        if not may_change(cls) or is_a(found, (_SLOT, *_QUIET)):
            return
        if found is not ABSENT and _is_ours(cls, name) and not _is_data(found):
            return
        inherited = class_attribute(type(cls), name) if may_change(type(cls)) else ABSENT
        if found is ABSENT and inherited is not ABSENT:
            self.add_root("constant", type(cls), type(cls), type(cls), qualname_of_class(type(cls)))
        elif found is ABSENT and name not in self.stored and not self._may_miss(name, type(cls)):
            return
        if found is ABSENT:
            self._class_lacks(cls, name)
            self._class_lacks(type(cls), name)
        else:
            self._child(place, "type", name, found, f"{place.text}.{name}")
            self._overridden(cls, name)

    def _lacks(self, place: Place, name: str) -> None:
        """An attribute that an object has not, or a class and its bases: one place tells of all."""
        if ("lacks", None) in place.children:
            place.children["lacks", None].key[name] = None
        else:
            self._tells(place, "lacks", {name: None}, (), place.text)

    def _class_lacks(self, cls: type, name: str) -> None:
        if class_attribute(cls, name) is not ABSENT:
            return
        if id(cls) in self.classes:
            self._lacks(self.classes[id(cls)], name)
        else:
            self._of_library(cls, name, ABSENT)

    def _of_library(self, cls: type, name: str, found: Any) -> None:
        """Data of a class of ours, of which there may be many instances."""
        if may_change(cls) and (found is ABSENT or _is_data(found)):
            self._child(self._base(cls), "type", name, found, f"{qualname_of_class(cls)}.{name}")

    def _may_miss(self, name: str, cls: type) -> bool:
        """Whether code may ask for an attribute, of a `cls`, that is not there."""
        if self.doubtful or name in self.uncertain:
            return True
        answers = class_attribute(cls, "__getattr__")  # that of modules looks in their tables
        code = attribute_of(answers, "__code__")
        return answers is not ABSENT and (code is None or not is_own(code))

    def _child(self, parent: Place, how: str, key: Any, value: Any, text: str) -> None:
        identity = (how, key_of(key))
        if identity in parent.children:
            return
        child = parent.children[identity] = Place(parent, how, key, value, text)
        self._visit(child)


def _is_in_library(place: Place) -> bool:
    """Whether an object is found in a module of ours: it holds our own state."""
    home = place.container if place.how == "global" else None
    if place.parent is not None and place.parent.kind == "module":
        home = own_dict(place.parent.value)
    return home is not None and str(home.get("__name__")).startswith("tracejit")


def _is_data(found: Any) -> bool:
    """Whether an attribute of a class of ours is no function, and guards can tell its value."""
    return not has_in_class(found, "__get__") and kind_of(found) != "opaque"


def is_module(value: Any) -> bool:
    own = own_dict(value)
    return is_a(own, dict) and "_parameters" in own


def _is_of_gate(function: Any, own: Any, name: str) -> bool:
    """Return True for the signature that a function of ours got from its gate, and nobody changes.

    Its parameters would count as objects whose methods read any entry of any container.
    """
    gate = gates.get(function) if name == "__signature__" else None
    return gate is not None and own[name] is gate.signature
