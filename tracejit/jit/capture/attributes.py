"""Attributes that count as read: those that code names, and those that it may find missing.

In: objects that `state` found, the names that code mentions or computes. Out: a source of each
attribute; one source per object or class for all the names that it lacks. Base of
`state.ReachableState`, which visits each new source.
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
from tracejit.jit.capture.access_path import CACHED, Source, key_of, kind_of, slot_of
from tracejit.jit.capture.dynamic_names import (
    ANY,
    data_of_module,
    is_shared_module,
    is_user_class,
    own_names,
    slot_names,
)
from tracejit.jit.capture.fingerprint import USERS_STATE, is_mutable_class, known_names, module_name
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    bases_of,
    class_attribute,
    has_in_class,
    instance_dict,
    is_a,
    module_title,
    names_in,
    qualname_of_class,
)
from tracejit.jit.capture.module_reads import METHODS, Reads, has_methods

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
# Module whose objects count as read whole: methods of tracejit's read them, unseen by name.
_READ_WHOLE = "tracejit.sparse.tensor"
# Types of class attributes that hold no data: descriptors of C code, enums and namedtuples.
_QUIET = (
    type(object.__init__), type(object.__new__), type(int.real), type(str.join),
    DynamicClassAttribute, type(vars(namedtuple("Fields", "one"))["one"]),
)  # fmt: skip
_NAMED = {"__name__", "__qualname__"}
_TOLD = ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__",
         "__annotations__")  # fmt: skip


def _is_ours(cls: type, name: str) -> bool:
    """Return True if tracejit's class defines an attribute of a class."""
    owner = next((c for c in bases_of(cls) if name in names_in(c)), cls)
    return module_name(owner).startswith("tracejit.")


class AttributeReads:
    """Attributes that code asks for, and the sources made of them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.stored: set[str] = set()
        self.everything = False
        self.dynamic_names = False  # code asks for attributes by computed names
        self.dynamic_owners: set[str] = set()  # names of what it asks so
        self.whole: set[int] = set()  # ids of modules whose attributes are all read
        self.uncertain: set[str] = set()  # names that code allows to be missing
        self.may_miss = False  # code handles any missing attribute
        self.reads: set[Reads] = set()  # what tracejit's code reads of `nn` modules
        self.classes: dict[int, Source] = {}  # by id: the source that stands for the class
        self.sources: list[Source] = []
        self.by_id: dict[int, Source] = {}

    def add_root(self, how: str, container: Any, key: Any, value: Any, text: str) -> None:
        raise NotImplementedError

    def _visit(self, source: Source) -> None:
        raise NotImplementedError

    def _read_by_ours(self, source: Source, names: Iterable[str]) -> None:
        own = instance_dict(source.value)
        for name in sorted(names):
            self._own(source, own, name)

    def _attributes(
        self, source: Source, value: Any, only: set[str] | frozenset[str] | None
    ) -> None:
        own = instance_dict(value)
        if not is_a(own, (dict, MappingProxyType)):  # user code makes it up
            own = {}
        module = module_name(type(value))
        if source.kind == "identity" and is_a(value, (FunctionType, CACHED)):
            self._of_published(source, own, self.names if only is None else only)
            return
        if source.kind == "identity" and not (
            is_a(value, type) or is_mutable_class(type(value))
        ):
            return
        if source.kind == "tensor":
            self._of_tensor(source, value, self.names if only is None else only)
            return
        internal = module.startswith("tracejit.") and not module.startswith(USERS_STATE)
        if internal and not is_a(value, type):
            if is_a(
                own.get("function"), FunctionType
            ):  # a captured function: its own code counts
                self._child(source, "attr", "function", own["function"], source.text)
                self._of_captured(source, own, self.names if only is None else only)
            elif instance_dict(value) is not None and not _is_in_library(source):
                self._of_internal(source, own, self.names if only is None else only)
            return
        names = self.names if only is None else set(only)
        if source.kind == "module":
            if self._is_asked(source):
                names = names | {n for n in data_of_module(value) if kind_of(own[n]) != "opaque"}
            answers = "__getattr__" in own and not is_shared_module(module_title(value))
            names = names | {"__getattr__"} if answers else names
        elif self.everything:
            names = names | set(own)
        if only is None and self.dynamic_names and not is_a(value, type):
            names = names | slot_names(type(value))
        if only is None and is_module(value):
            names = set(names) | set(MODULE_TABLES)
            names |= METHODS & own.keys() if has_methods(own) else set()
            self._read_by_ours(source, {name for reads in self.reads for name in reads.names})
        if only is None and (module == _READ_WHOLE or is_a(value, enum.Enum)):
            names = set(names) | set(own)
        for name in sorted(names):
            if name in own and not is_a(value, type):
                if source.kind == "function" and _is_of_gate(value, own, name):
                    continue
                self._own(source, own, name)
                self._behind(source, type(value), name)
            elif source.kind == "function":
                self._of_function(source, value, name)
            elif source.kind == "module":
                may_appear = name in self.stored or self._can_miss(name, type(value))
                may_appear |= "__getattr__" in own
                if may_appear and not is_shared_module(module_title(value)):
                    self._add_missing_name(source, name)
                    self._own(source, own, "__getattr__")  # answers for missing names
            else:
                self._class_level(source, value, name)
        if self._asks_for_any(source):
            self._own_names(source, own)

    def _own(self, source: Source, own: Any, name: str) -> None:
        """Add the source of an attribute in an object's `__dict__`, or else the missing name."""
        if name not in own:
            self._add_missing_name(source, name)
            return
        known, lacked = (source.children.get((how, None)) for how in ("own_names", "missing_names"))
        made = known is not None and name not in known.value  # this call made the attribute
        made |= lacked is not None and name in lacked.key
        self._child(source, "attr", name, ABSENT if made else own[name], f"{source.text}.{name}")

    def _asks_for_any(self, source: Source) -> bool:
        """Return True if the program may depend on which attributes an object has."""
        if source.kind == "module":
            return self._is_asked(source) and not is_shared_module(module_title(source.value))
        if source.kind == "function":
            return (self.dynamic_names or self.may_miss) and (
                not is_internal_code(source.value.__code__))
        has = instance_dict(source.value) is not None and not is_a(source.value, type)
        return self.dynamic_names and has

    def _is_asked(self, source: Source) -> bool:
        """Return True if code asks a module for attributes by names that it computes."""
        if id(source.value) in self.whole or source.text.rpartition(".")[2] in self.dynamic_owners:
            return True
        if source.how == "item":
            return self.dynamic_names and source.parent.value is not sys.modules  # type: ignore[union-attr]
        of_module = source.parent is not None and source.parent.kind == "module"
        return ANY in self.dynamic_owners and (not of_module or source.key in self.names)

    def _own_names(self, source: Source, own: Iterable[str]) -> None:
        """Add the source of the names that an object had when the call began."""
        if ("own_names", None) in source.children:
            return
        found = {key: child.kind for (how, key), child in source.children.items() if how == "attr"}
        lacked = source.children.get(("missing_names", None))
        found |= dict.fromkeys(lacked.key if lacked else (), "absent")
        names = tuple(name for name in own if found.get(name) != "absent")
        self._tells(source, "own_names", None, names, f"{source.text}.__dict__")

    def _tells(self, source: Source, how: str, key: Any, names: tuple[str, ...], text: str) -> None:
        """Add a source `own_names` or `missing_names`: the names that an object has, or lacks."""
        child = source.children[how, None] = Source(source, how, key, names, text)
        child.kind = how
        self.sources.append(child)

    def _of_instances(self, source: Source) -> None:
        """Add what instances find in a class: its name; all its data if code computes names."""
        cls = source.value
        for name in sorted(_NAMED & self.names) if is_user_class(cls) else ():
            self._child(source, "slot", name, slot_of(cls, name), f"{source.text}.{name}")
        if not self.dynamic_names or ("own_names", None) in source.children:
            return
        names = own_names(cls)
        self._tells(source, "own_names", None, names, f"the attributes of {qualname_of_class(cls)}")
        for name in names:
            found = class_attribute(cls, name)
            if kind_of(found) != "opaque":
                self._child(source, "type", name, found, f"{qualname_of_class(cls)}.{name}")

    def _behind(self, source: Source, cls: type, name: str) -> None:
        """Add class data that an instance's own attribute of the same name hides."""
        found = class_attribute(cls, name)
        if found is ABSENT or is_a(found, (FunctionType, _SLOT, *_QUIET)):
            return
        if is_mutable_class(cls) and not _is_ours(cls, name):
            self._child(source, "type", name, found, f"{source.text}.{name} of the class")
            self._overridden(cls, name)

    def _overridden(self, cls: type, name: str) -> None:
        """Add data that bases have under the same name, for `super().name`."""
        for base in [c for c in bases_of(cls) if name in names_in(c) and is_mutable_class(c)][1:]:
            hidden = (FunctionType, _SLOT, *_QUIET)
            if is_user_class(base) and not is_a(names_in(base)[name], hidden):
                known = self._base(base)
                text = f"{qualname_of_class(base)}.{name}"
                self._child(known, "type", name, names_in(base)[name], text)

    def _base(self, base: type) -> Source:
        self.add_root("constant", base, base, base, f"class {qualname_of_class(base)}")
        return self.by_id[id(base)]

    def _of_function(self, source: Source, function: FunctionType, name: str) -> None:
        if is_internal_code(function.__code__):
            return
        if name in _TOLD:
            self._child(source, "slot", name, getattr(function, name), f"{source.text}.{name}")
        elif name in self.stored or self._can_miss(name, FunctionType):
            self._add_missing_name(source, name)

    def _of_published(self, source: Source, own: Any, names: Iterable[str]) -> None:
        """Add the attributes that the user set on a function of tracejit's."""
        for name in sorted(n for n in names if n in own or n in self.stored | self.uncertain):
            if not _is_of_gate(source.value, own, name):
                self._own(source, own, name)
        if self.dynamic_names or self.may_miss:
            self._own_names(source, own)

    def _of_internal(self, source: Source, own: Any, names: Iterable[str]) -> None:
        """Add what the user set on an object of tracejit's, under names that its class never
        uses."""
        cls = type(source.value)
        may = {n for n in names if self.may_miss or n in self.stored or n in self.uncertain}
        wanted = {n for n in names if n in own or n in may and class_attribute(cls, n) is ABSENT}
        for name in sorted(wanted - known_names(cls)):
            self._own(source, own, name)
        if self.dynamic_names:
            self._own_names(source, own)

    def _of_captured(self, source: Source, own: Any, names: Iterable[str]) -> None:
        """Add attributes that the user set on a captured function, such as counters and caches."""
        ours = type(source.value).OWN
        for name in sorted(n for n in names if n not in ours and not n.startswith("__")):
            if name in own or name in self.stored and not has_in_class(source.value, name):
                self._own(source, own, name)

    def _of_tensor(self, source: Source, tensor: Tensor, names: Iterable[str]) -> None:
        """Add attributes that the user set on a tensor, and those that code may find missing."""
        own, cls = tensor.__dict__, type(tensor)
        may = [n for n in names if n in self.stored or self._can_miss(n, cls)]
        wanted = {n for n in names if n in own} | {n for n in may if not hasattr(cls, n)}
        for name in sorted(wanted | set(own) if self.everything else wanted):
            self._own(source, own, name)
        for name in sorted(n for n in names if n not in own):
            found = class_attribute(cls, name)
            if found is not ABSENT or name in self.uncertain or self.may_miss:
                self._of_library(cls, name, found)
        if self.dynamic_names:
            self._own_names(source, own)

    def _class_level(self, source: Source, value: Any, name: str) -> None:
        if is_a(value, type):
            self._of_class(source, value, name)
            return
        cls = type(value)
        found = class_attribute(cls, name)
        if is_a(found, _SLOT):
            self._child(source, "slot", name, slot_of(value, name), f"{source.text}.{name}")
        elif found is not ABSENT and not is_a(found, _QUIET):
            ours = module_name(cls).startswith("tracejit")
            if ours:
                self._of_library(cls, name, found)
            else:
                self._child(source, "type", name, found, f"{source.text}.{name}")
                self._overridden(cls, name)
            if instance_dict(value) is not None and (not ours or is_a(found, FunctionType)):
                self._add_missing_name(source, name)
        elif found is ABSENT:
            missed = self._can_miss(name, cls)
            own = instance_dict(value)
            may_appear = missed or name in self.stored or is_module(value) and any(
                name in (own.get(table) or ()) for table in _TABLES)
            if may_appear and own is not None:  # it would hide what tables and the class have
                self._add_missing_name(source, name)
            if missed or name in self.stored:
                self._add_missing_name_of_class(cls, name)

    def _of_class(self, source: Source, cls: type, name: str) -> None:
        """Add an attribute that code asks a class itself for, or its absence."""
        found = class_attribute(cls, name)
        if not is_mutable_class(cls) or is_a(found, (_SLOT, *_QUIET)):
            return
        if found is not ABSENT and _is_ours(cls, name) and not _is_data(found):
            return
        inherited = class_attribute(type(cls), name) if is_mutable_class(type(cls)) else ABSENT
        if found is ABSENT and inherited is not ABSENT:
            self.add_root("constant", type(cls), type(cls), type(cls), qualname_of_class(type(cls)))
        elif found is ABSENT and name not in self.stored and not self._can_miss(name, type(cls)):
            return
        if found is ABSENT:
            self._add_missing_name_of_class(cls, name)
            self._add_missing_name_of_class(type(cls), name)
        else:
            self._child(source, "type", name, found, f"{source.text}.{name}")
            self._overridden(cls, name)

    def _add_missing_name(self, source: Source, name: str) -> None:
        """Add a name that an object, or a class with its bases, lacks: one source keeps all."""
        if ("missing_names", None) in source.children:
            source.children["missing_names", None].key[name] = None
        else:
            self._tells(source, "missing_names", {name: None}, (), source.text)

    def _add_missing_name_of_class(self, cls: type, name: str) -> None:
        if class_attribute(cls, name) is not ABSENT:
            return
        if id(cls) in self.classes:
            self._add_missing_name(self.classes[id(cls)], name)
        else:
            self._of_library(cls, name, ABSENT)

    def _of_library(self, cls: type, name: str, found: Any) -> None:
        """Add class data, or its absence, to the class's source: once for all instances."""
        if is_mutable_class(cls) and (found is ABSENT or _is_data(found)):
            self._child(self._base(cls), "type", name, found, f"{qualname_of_class(cls)}.{name}")

    def _can_miss(self, name: str, cls: type) -> bool:
        """Return True if code may ask an instance of `cls` for an attribute that is not there."""
        if self.may_miss or name in self.uncertain:
            return True
        answers = class_attribute(cls, "__getattr__")  # tracejit's looks in a module's tables alone
        code = attribute_of(answers, "__code__")
        return answers is not ABSENT and (code is None or not is_internal_code(code))

    def _child(self, parent: Source, how: str, key: Any, value: Any, text: str) -> None:
        identity = (how, key_of(key))
        if identity in parent.children:
            return
        child = parent.children[identity] = Source(parent, how, key, value, text)
        self._visit(child)


def _is_in_library(source: Source) -> bool:
    """Return True if an object is found in a module of tracejit's: its state is tracejit's own."""
    home = source.container if source.how == "global" else None
    if source.parent is not None and source.parent.kind == "module":
        home = instance_dict(source.parent.value)
    return home is not None and str(home.get("__name__")).startswith("tracejit")


def _is_data(found: Any) -> bool:
    """Return True if a class attribute is no descriptor, and guards can check its value."""
    return not has_in_class(found, "__get__") and kind_of(found) != "opaque"


def is_module(value: Any) -> bool:
    """Return True for an `nn.Module`."""
    own = instance_dict(value)
    return is_a(own, dict) and "_parameters" in own


def _is_of_gate(function: Any, own: Any, name: str) -> bool:
    """Return True for the signature that a gate gave a function of tracejit's, unchanged since.

    As a source its parameters would count as objects whose methods read any entry of any container.
    """
    gate = gates.get(function) if name == "__signature__" else None
    return gate is not None and own[name] is gate.signature
