"""Python state that a captured function can see: where each object is found, and what it was.

In: roots (arguments, globals, closure cells) and the names that the executed code mentions. Out: a
tree of `Source`s, each with the value it had when it was first reached. `guards` makes checks of
the tree, and `epilogue` finds effects by walking it again after the call. Over-approximates:
whatever the names reach counts as read (C2).
"""

from __future__ import annotations

import operator
from collections import defaultdict, deque
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
from tracejit.jit.capture.access_path import (
    CACHED,
    PRIMITIVE,
    Source,
    behind_proxy,
    default_of,
    key_of,
    kind_of,
    told_by_identity,
    weak_key,
)
from tracejit.jit.capture.attributes import HOLDING, AttributeReads, is_module
from tracejit.jit.capture.contents import elements, items, length
from tracejit.jit.capture.dynamic_names import (
    ANY,
    asks,
    names_for,
    names_of_getter,
)
from tracejit.jit.capture.fingerprint import (
    USERS_STATE,
    class_fingerprint,
    code_in_class,
    is_mutable_class,
    module_name,
)
from tracejit.jit.capture.foreign_compilers import hides_calls, unseen_read
from tracejit.jit.capture.inputs import hooks_of, tensor_history
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    cell_contents,
    dict_offset,
    instance_dict,
    is_a,
    name_of_class,
    names_in,
    qualname_of_class,
)
from tracejit.jit.capture.memoized_calls import MemoizedCalls
from tracejit.jit.capture.module_reads import Reads
from tracejit.jit.capture.watcher import CodeNames

MAX_ELEMENTS = 16384
_STATEFUL = ("tensor", "sequence", "mapping", "set", "object", "function", "method", "partial")


def _is_internal(cls: type) -> bool:
    """Return True for a class of tracejit's whose objects hold no state of the user's."""
    module = module_name(cls)
    if not module.startswith("tracejit.") or issubclass(cls, Tensor):
        return False
    return not module.startswith(USERS_STATE)


class ReachableState(AttributeReads):
    """Tree of sources reachable from the roots through the names seen so far."""

    def __init__(self, unmodelled: Callable[..., None]):
        super().__init__()
        self.unmodelled = unmodelled
        self.kept = MemoizedCalls(self.source_of)
        # told of objects through which code may write tensors' memory
        self.exposes: Callable[[Any], None] = lambda buffer: None
        self.asked: dict[tuple[Callable, Any], None] = {}  # `ask(what)` must answer the same
        self.registered: dict[tuple[type, type], None] = {}  # (class, abstract class) asked about
        self.roots: dict[tuple, Source] = {}
        self.functions: dict[Any, list[Source]] = {}  # code -> sources of functions with it
        self.entered: set[Any] = set()  # code that runs
        self.repeated: list[tuple[Source, Source]] = []  # further sources of a tensor
        self.held: list[Any] = []  # objects whose id is a key here

    # -- growing -----------------------------------------------------------------------------
    def add_root(self, how: str, container: Any, key: Any, value: Any, text: str) -> None:
        identity = (how, id(container), key if not is_a(key, CellType) else id(key))
        if identity not in self.roots:
            source = Source(None, how, key, value, text)
            source.container = container if how == "global" else None
            self.roots[identity] = source
            self.held.append(container)
            self._visit(source)

    def add_names(self, code: CodeNames) -> None:
        """Count the names in newly entered code as read."""
        new = code.attributes - self.names
        new |= (code.stored - self.stored) | (code.uncertain - self.uncertain)
        widened = code.dynamic > self.everything or code.may_miss > self.may_miss
        widened |= code.dynamic_names > self.dynamic_names
        asks_modules = not widened and not code.dynamic_owners <= self.dynamic_owners
        self.stored |= code.stored
        self.uncertain |= code.uncertain
        self.everything |= code.dynamic
        self.may_miss |= code.may_miss
        self.dynamic_names |= code.dynamic_names
        self.dynamic_owners |= code.dynamic_owners
        self._grow(new | code.attributes, None if widened else new)
        if asks_modules:
            for source in list(self.sources):
                self._of_asked(source)

    def add_attribute_names(self, names: set[str]) -> None:
        """Count attributes of these names as read, by C code."""
        self._grow(names, names - self.names)

    def read_modules(self, reads: Reads) -> None:
        """Count the attributes that code of tracejit's reads of modules as read."""
        self.reads.add(reads)
        for source in self.modules() if reads.names else ():
            self._read_by_ours(source, reads.names)
        self.add_attribute_names(set(reads.common))

    def ask_all(self, module: ModuleType) -> None:
        """Count all attributes of a Python module as read: code computes their names."""
        if id(module) not in self.whole:
            self.whole.add(id(module))
            self.held.append(module)
            if id(module) in self.by_id:
                self._attributes(self.by_id[id(module)], module, None)

    def ask_any(self, modules: bool = True) -> None:
        """Count attributes of any object as read, by names that code computes; `modules`: of Python
        modules too."""
        if not self.dynamic_names or not self.everything or (
                modules and ANY not in self.dynamic_owners):
            self.everything = self.dynamic_names = True
            self.dynamic_owners |= {ANY} if modules else set()
            self._grow((), None)

    def _grow(self, names: Iterable[str], only: set[str] | frozenset[str] | None) -> None:
        """Count these names as read and look for them at all sources.

        `only`: those of them that are new; None looks at all attributes again.
        """
        if only is not None and not only:
            return
        self.names.update(names)
        for source in list(self.sources):
            if _has_attributes(source) and source is self.by_id.get(id(source.value)):
                self._attributes(source, source.value, only)
            elif source.kind == "class":
                self._of_instances(source)
            else:
                self._of_asked(source)

    def _of_asked(self, source: Source) -> None:
        """Look at the attributes of a Python module at this source, if code computes their
        names."""
        if source.kind == "module" and self._is_asked(source):
            self._attributes(source, source.value, None)
        elif source.kind == "same" and source.first.kind == "module" and self._is_asked(source):  # type: ignore[union-attr]
            self.ask_all(source.value)

    def objects(self) -> list[Source]:
        """Return the sources of tensors, containers, functions and other objects, each object
        once."""
        return [p for p in self.sources if p.kind in _STATEFUL and self.by_id.get(id(p.value)) is p]

    def modules(self) -> list[Source]:
        """Return the sources of `nn` modules, each once."""
        return [p for p in self.objects() if p.kind == "object" and is_module(p.value)]

    def held_by_modules(self, sources: Iterable[Source]) -> list[Source]:
        """Return those of some sources at which `nn` modules are, or tensors that modules hold or
        may hold."""
        held = {id(p.value) for p in self.sources
                if p.how == "item" and p.parent.how == "attr" and p.parent.key in HOLDING}  # type: ignore[union-attr]
        return [p for p in sources if is_module(p.value) or p.kind == "tensor" and (
            id(p.value) in held or type(p.value) is not Tensor)]

    def _visit(self, source: Source) -> None:
        value, kind = source.value, source.kind
        if kind == "absent" or kind == "primitive" and not _has_attributes(source):
            self.sources.append(source)
            return
        if kind == "dead":
            self.unmodelled(source.text, "the object of a weak proxy is gone")
            return
        named = source.how in ("global", "attr") and source.key
        if kind == "identity" and asks(value) and named != attribute_of(value, "__name__"):
            self.ask_any()  # known by another name: code shows no asked names
        known = self.by_id.get(id(value))
        if known is not None and kind == "tensor":
            self.repeated.append((source, known))
        elif known is not None:
            if kind == "module" and self._is_asked(source):
                self.ask_all(value)
            source.kind, source.first = "same", known
            self.sources.append(source)
            return
        self.sources.append(source)
        if known is None:
            self.by_id[id(value)] = source
            self.held.append(value)
            self.behaves(value if is_a(value, type) else type(value))
            self._contents(source, value, kind)

    def _contents(self, source: Source, value: Any, kind: str) -> None:
        if kind == "function":
            self.functions.setdefault(value.__code__, []).append(source)
            # The watcher does not report tracejit's own functions.
            if value.__code__ in self.entered or is_internal_code(value.__code__):
                self._closed_over(source)
            self._attributes(source, value, None)
        elif kind == "sequence":
            self._elements(source, enumerate(elements(value)), length(value))
        elif kind == "mapping":
            # Copies: looking at items may import, which changes sys.modules meanwhile.
            self._elements(source, items(value), length(value))
            source.keys = elements(value)
            for key in source.keys:
                if kind_of(key) == "object":  # guarded by identity; its attributes are not read
                    text = f"a key of {source.text}"
                    self._child(source, "key", weak_key(key), key, text)
            if is_a(value, defaultdict):
                self._child(source, "slot", "default_factory", value.default_factory,
                            f"{source.text}.default_factory")
        elif kind == "set":
            source.keys = frozenset(elements(value))
            for element in sorted(elements(value), key=_name_of):
                if is_a(element, PRIMITIVE):
                    continue
                if told_by_identity(element):
                    self._child(source, "key", weak_key(element), element, f"one of {source.text}")
                else:
                    self.unmodelled(source.text, "the function reads this set of objects")
        if kind in _OF_SUBCLASSES and _has_attributes(source):
            self._attributes(source, value, None)
        elif kind == "method":
            self._child(source, "self", None, value.__self__, source.text + ".__self__")
            self._child(source, "func", None, value.__func__, source.text)
        elif kind == "proxy":
            self._child(source, "proxied", None, behind_proxy(value), source.text)
        elif kind == "partial":
            for name in ("func", "args", "keywords"):
                self._child(source, "slot", name, getattr(value, name), f"{source.text}.{name}")
            self._attributes(source, value, None)
        elif is_a(value, (operator.attrgetter, operator.methodcaller)):
            self.add_attribute_names(names_of_getter(value))
        elif is_a(value, BuiltinFunctionType):
            self.add_attribute_names(names_for(value))
            held = is_a(value.__self__, (list, dict, set, deque))  # `append = kept.append`
            if held and source.how != "hook":  # which a later backward calls
                self._child(source, "self", None, value.__self__, source.text + ".__self__")
        elif is_a(value, CACHED):
            self.kept.find(value)
            self._child(source, "attr", "__wrapped__",
                        instance_dict(value).get("__wrapped__", ABSENT),
                        f"{source.text}.__wrapped__")
            self._attributes(source, value, None)
        elif is_a(value, ContextVar):
            self._child(source, "context", None, value.get(ABSENT), f"{source.text}.get()")
            default = default_of(value)
            if not is_a(default, PRIMITIVE):  # a primitive never changes
                self._child(source, "default", None, default, f"the default of {source.text}")
        elif kind == "identity" and is_a(value, (staticmethod, classmethod)):
            self._child(source, "slot", "__func__", value.__func__, source.text)
        elif kind == "identity" and is_a(value, property):
            self._child(source, "slot", "fget", value.fget, source.text)
            self._attributes(source, value, None)
        elif kind == "identity" and is_a(value, (type, FunctionType)):
            self._attributes(source, value, None)
        elif kind in ("object", "module", "tensor"):
            if kind == "tensor":
                source.keys = tensor_history(value)
                for k, hook in enumerate(hooks_of(value)):
                    self._child(source, "hook", k, hook, f"hook {k} of {source.text}")
            self._attributes(source, value, None)
        elif kind == "opaque":
            self.unmodelled(
                source.text,
                f"the function reads this {module_name(type(value))}.{name_of_class(type(value))}, "
                "and tracejit cannot see its changes",
            )
            self.exposes(value)
        if hides_calls(value):
            self.unmodelled(source.text, *unseen_read())

    def _elements(self, source: Source, items: Iterator[tuple] | Any, length: int) -> None:
        source.length = length
        if length > MAX_ELEMENTS:
            self.unmodelled(source.text, f"the function reads this container of {length} elements")
            return
        for key, element in items:
            self._child(source, "item", key, element, f"{source.text}[{_key_text(key)}]")

    def behaves(self, cls: type) -> None:
        """Count operators and methods of a class, and of its metaclass, as read."""
        if id(cls) in self.classes or not is_mutable_class(cls) or _is_internal(cls):
            return
        source = Source(None, "constant", cls, cls, f"class {qualname_of_class(cls)}")
        self.classes[id(cls)] = source
        source.kind, source.keys = "class", class_fingerprint(cls)
        self.sources.append(source)
        self._of_instances(source)
        self.behaves(type(cls))

    def runs(self, function: FunctionType) -> None:
        """Count the captured function's code as read."""
        source = Source(None, "constant", function, function, function.__qualname__)
        self.sources.append(source)

    def add_method(self, owner: Any, code: Any) -> bool:
        """Do as `add_code` for a method of `owner`, or of the class that `owner` is, which no code
        named."""
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
        return self.add_code(code)

    def add_code(self, code: Any) -> bool:
        """Count the closure variables and defaults of functions with this code as read: it runs.

        Return False if no source has such a function.
        """
        self.entered.add(code)
        sources = self.functions.get(code, [])
        for source in sources:  # closures of one factory share their code
            self._closed_over(source)
        return bool(sources)

    def _closed_over(self, source: Source) -> None:
        function, code = source.value, source.value.__code__
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self._child(source, "slot", name, getattr(function, name), f"{source.text}.{name}")
        for k, (name, cell) in enumerate(zip(code.co_freevars, function.__closure__ or ())):
            self._child(source, "closure", k, cell_contents(cell), name)

    def commit_container(self, container: Any) -> None:
        """Take the container's contents as its state before the call."""
        source = self.by_id.get(id(container))
        if source is not None:
            source.children.clear()
            self._contents(source, container, source.kind)

    def release(self) -> None:
        """Let go of the caller's objects: sources stay, as directions."""
        for source in (*self.sources, *self.roots.values()):
            if source.how != "constant":
                source.value = None
            if source.kind in ("mapping", "tensor"):
                source.keys = ()
            if source.how == "item":
                source.key = weak_key(source.key)
        self.by_id.clear()
        self.held.clear()
        self.repeated.clear()
        self.functions.clear()

    # -- looking things up ----------------------------------------------------------------------
    def source_of(self, value: Any) -> Source | None:
        """Return the source at which an object was found first."""
        return self.by_id.get(id(value))


_WITH_ATTRIBUTES = ("object", "module", "identity", "tensor", "function", "partial")
_OF_SUBCLASSES = ("primitive", "sequence", "mapping", "set")  # with attributes if the user's


def _has_attributes(source: Source) -> bool:
    """Return True if the walk looks at an object's attributes."""
    if source.kind not in _OF_SUBCLASSES:
        return source.kind in _WITH_ATTRIBUTES
    cls = type(source.value)
    if module_name(cls).startswith("tracejit"):
        return module_name(cls).startswith(USERS_STATE) and bool(dict_offset(cls))
    return is_mutable_class(cls) or bool(dict_offset(cls))  # as an OrderedDict has them


def _name_of(element: Any) -> tuple[str, str]:
    """Return what to sort elements of a set by, which lie in it by their addresses."""
    cls = element if is_a(element, type) else type(element)
    name = attribute_of(element, "__qualname__")
    return qualname_of_class(cls), name if type(name) is str else ""


def _key_text(key: Any) -> str:
    return repr(key) if key_of(key) is key else f"<{name_of_class(type(key))}>"
