"""Epilogue: specs of what a replay must produce, and its effects on the caller's objects.

In: the return value of a recorded call, new attributes, contents of containers. Out: specs,
functions that make fresh Python objects from the tensors that a replay computed; effects, functions
that change the caller's objects. An object without a spec is named in a `NotCacheable` (C1). Called
by `runtime.build`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.core.eager.subclasses import keeps_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.access_path import PRIMITIVE, Source, identical, key_of, told_by_identity
from tracejit.jit.capture.append_only import appending
from tracejit.jit.capture.concretize import concretize_tree
from tracejit.jit.capture.contents import (
    elements,
    item,
    items,
    length,
    put,
    refill_dict,
    refill_sequence,
)
from tracejit.jit.capture.fingerprint import class_fingerprint, module_name
from tracejit.jit.capture.guards import read_from
from tracejit.jit.capture.host_program import HostProgram
from tracejit.jit.capture.host_reads import AFTER_SYMS
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    bases_of,
    class_attribute,
    filled_slots,
    has_in_class,
    instance_dict,
    is_a,
    is_exactly,
    name_of_class,
    names_in,
)
from tracejit.jit.capture.made_objects import blank, can_be_made
from tracejit.jit.capture.rolled import StackedList
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.state import ReachableState
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.ir.sizes import SymInt, evaluate


class NotCacheable(Exception):
    """Error for a call that no replay could repeat: it makes an object without a spec, say."""


@dataclass
class ReplayFrame:
    """State of one replay for its specs: arguments, a tensor for each recorded result, sizes.

    before  what was at the sources that specs name, read before any effect
    """

    arguments: tuple
    tensors: list[Any]
    sizes: dict[str, int]
    numbers: tuple = ()  # runtime numbers that specs name
    before: Sequence[Any] = ()
    host: Any = None  # pending values, once the program has run
    made: dict[Any, Any] = field(default_factory=dict)  # by spec: shared containers


OutputSpec = Callable[[ReplayFrame], Any]


class OutputRef:
    """Spec of a tensor that the call made: its number among the results."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number

    def __call__(self, frame: ReplayFrame) -> Any:
        return frame.tensors[self.number]


def _of_class(cls: type, number: int) -> OutputSpec:
    """Return the spec of a tensor that the call made, of a class derived from `Tensor`."""
    return lambda frame: of_class(frame.tensors[number], cls)


class OutputRefs:
    """Spec of a container of nothing but tensors that the call made."""

    __slots__ = ("make", "numbers")

    def __init__(self, make: Callable[[list[Any]], Any], numbers: list[int]):
        self.make, self.numbers = make, numbers

    def __call__(self, frame: ReplayFrame) -> Any:
        return self.make([frame.tensors[k] for k in self.numbers])


class SharedContainer:
    """Spec of a container that the call made: one object, however often results hold it."""

    __slots__ = ("build", "shared")

    def __init__(self) -> None:
        self.build: Any = None
        self.shared = False

    def __call__(self, frame: ReplayFrame) -> Any:
        if not self.shared:
            return self.build(frame)
        if self not in frame.made:
            frame.made[self] = self.build(frame)
        return frame.made[self]


def plainest(spec: OutputSpec) -> OutputSpec:
    """Return a faster spec of the same value. Call this once all specs are made."""
    return spec.build if is_a(spec, SharedContainer) and not spec.shared else spec


class EpilogueBuilder:
    """Maker of specs; collects the distinct result tensors in `tensors`, in order of appearance."""

    def __init__(self, state: ReachableState, scope: Any):
        self.state, self.scope = state, scope
        self.tensors: list[Tensor] = []
        self.positions: dict[int, int] = {}
        self.numbers: list[SymNumber] = []  # runtime numbers that a replay computes
        self.host = HostProgram()  # pending values, computed after the program
        self.sources: list[Source] = []  # read before any effect
        self.looked: dict[int, int] = {}  # by id of a source: its number there
        self.containers: dict[int, tuple[Any, SharedContainer]] = {}  # by id
        self.objects = False  # the call made objects of the user's classes
        self.changed: list[Any] = []  # objects of the caller's that effects change

    def of(self, value: Any) -> OutputSpec:
        if type(value) is SymInt:
            if value.scope is not self.scope:  # left by a recording that is over
                return lambda frame: value.hint
            return lambda frame: evaluate(value, frame.sizes)
        if is_a(value, SymNumber) or is_exactly(value, AFTER_SYMS):
            return value.output_spec(self)
        if is_a(value, Tensor):
            return self._tensor(value)
        if is_a(value, PRIMITIVE):
            return lambda frame: value
        source = self.state.source_of(value)
        if source is not None:
            return self.before(source)
        _, known = self.containers.get(id(value), (value, None))
        if known is None:
            known = SharedContainer()
            self.containers[id(value)] = value, known
            known.build = self._container(value)
        elif known.build is None:
            raise NotCacheable("the function returns or stores a container that holds itself")
        else:
            known.shared = True
        return known

    def key(self, value: Any, text: str) -> OutputSpec:
        """Return the spec of a dict's key: a primitive, or an object of the caller's that is equal
        to itself alone. Raise NotCacheable, with the text, for other keys."""
        value = concretize_tree(value)
        if is_a(value, PRIMITIVE):
            return lambda frame: value
        itself = is_a(value, Tensor) or told_by_identity(value)
        source = self.state.source_of(value) if itself else None
        if source is None:
            raise NotCacheable(text)
        return self.before(source)

    def before(self, source: Source) -> OutputSpec:
        """Return the spec of what is at a source before effects, which may replace it."""
        number = self.looked.setdefault(id(source), len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
        return lambda frame: frame.before[number]

    def computed(self, number: SymNumber) -> int:
        """Add a runtime number to those that a replay computes; return its position there."""
        self.numbers.append(number)
        return len(self.numbers) - 1

    def _tensor(self, tensor: Tensor) -> OutputSpec:
        if tensor._traced is None:
            source = self.state.source_of(tensor)
            if source is None:
                raise NotCacheable(
                    "the function returns or stores a tensor that tracejit cannot find in "
                    "arguments, globals or closures"
                )
            return self.before(source)
        if tensor.__dict__:
            raise NotCacheable("the function returns or stores a tensor with attributes of its own")
        cls = type(tensor)
        if cls is not Tensor and not keeps_class(cls):
            raise NotCacheable(f"the function returns or stores a {name_of_class(cls)} that it "
                               "made")
        number = self.positions.setdefault(id(tensor), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(tensor)
        return OutputRef(number) if cls is Tensor else _of_class(cls, number)

    def _container(self, value: Any) -> OutputSpec:
        cls = type(value)
        if is_a(value, dict) and module_name(cls) in ("builtins", "collections"):
            text = "the function returns or stores a dict with keys that it made"
            items = [(self.key(k, text), self.of(v)) for k, v in value.items()]
            if cls is not dict:
                return self._filled(value, items)
            return lambda frame: {k(frame): r(frame) for k, r in items}
        if is_a(value, (list, tuple)):
            parts = [self.of(v) for v in elements(value)]
            if not is_exactly(value, (list, tuple, StackedList)) and not _is_plain_record(cls):
                return self._like(value, parts)
            make = list if cls is StackedList else cls
            make = cls._make if has_in_class(value, "_make") else make
            numbers = [r.number for r in parts if type(r) is OutputRef]
            if len(numbers) == len(parts):
                return OutputRefs(make, numbers)
            return lambda frame: make([r(frame) for r in parts])
        if has_in_class(value, "sparse_product"):
            parts = [self.of(v) for v in value.parts()]
            return lambda frame: cls(*[r(frame) for r in parts])
        if cls is deque:
            parts, most = [self.of(v) for v in value], value.maxlen
            return lambda frame: deque([r(frame) for r in parts], most)
        if can_be_made(value, self.state.sources, self.state.entered):
            return self._object(value)
        raise NotCacheable(
            f"the function returns or stores a {module_name(cls)}.{name_of_class(cls)}")

    def _object(self, value: Any) -> OutputSpec:
        """Return the spec of an object of a user's class; a replay runs no constructor."""
        cls, attributes, entries = type(value), self._attributes(value), []
        filled = [(slot, self.of(x)) for slot, x in filled_slots(value)]
        if is_a(value, dict):
            text = "the function returns or stores a dict with keys that it made"
            entries = [(self.key(k, text), self.of(v)) for k, v in items(value)]
        self.objects = True

        def make(frame: ReplayFrame) -> Any:
            made = blank(cls)
            for slot, spec in filled:
                slot.__set__(made, spec(frame))
            for key, spec in entries:
                put(made, key(frame), spec(frame))
            attributes(made, frame)
            return made

        return make

    def _filled(self, value: Any, items: list[tuple[OutputSpec, OutputSpec]]) -> OutputSpec:
        """Return the spec of a dict of a class of `collections`."""
        cls, attributes = type(value), self._attributes(value)
        factory = attribute_of(value, "default_factory")
        if factory is not None and module_name(factory) != "builtins":
            raise NotCacheable("the function returns or stores a defaultdict whose factory is no "
                               "builtin")

        def make(frame: ReplayFrame) -> Any:
            made = cls(factory) if issubclass(cls, defaultdict) else cls()
            for key, spec in items:
                made[key(frame)] = spec(frame)
            attributes(made, frame)
            return made

        return make

    def _like(self, value: Any, parts: list[OutputSpec]) -> OutputSpec:
        """Return the spec of a list or tuple of a derived class; a replay runs no constructor."""
        cls, attributes = type(value), self._attributes(value)
        if not _is_all_contents(cls):
            raise NotCacheable(
                f"the function returns or stores a {module_name(cls)}.{name_of_class(cls)}")

        def make(frame: ReplayFrame) -> Any:
            found = [r(frame) for r in parts]
            made = tuple.__new__(cls, found) if issubclass(cls, tuple) else list.__new__(cls)
            if is_a(made, list):
                list.extend(made, found)
            attributes(made, frame)
            return made

        return make

    def _attributes(self, value: Any) -> Callable[[Any, ReplayFrame], None]:
        """Return a function of (object, frame) that gives the object the attributes of `value`."""
        found = [(name, self.of(x)) for name, x in (instance_dict(value) or {}).items()]
        if not found:
            return lambda made, frame: None
        return lambda made, frame: instance_dict(made).update({n: r(frame) for n, r in found})


def _is_plain_record(cls: type) -> bool:
    """Return True for a namedtuple class itself, whose objects are no more than their elements."""
    return class_attribute(cls, "_make") is not ABSENT and cls.__bases__ == (tuple,)


def _is_all_contents(cls: type) -> bool:
    """Return True if a list or tuple of this class is its elements and its `__dict__`: no slots."""
    mine = [c for c in bases_of(cls) if c is not list and c is not tuple and c is not object]
    return not any(names_in(c).get("__slots__", ()) for c in mine)


Effect = Callable[[ReplayFrame], None]


class SetGrad:
    """Effect of a backward inside the call: sets the gradient of a tensor of the caller's."""

    __slots__ = ("source", "target", "spec")

    def __init__(self, source: Source, target: OutputSpec, spec: OutputSpec):
        self.source, self.target, self.spec = source, target, spec

    def __call__(self, frame: ReplayFrame) -> None:
        self.target(frame)._grad = self.spec(frame)


def effects(
    state: ReachableState,
    arguments: tuple,
    builder: EpilogueBuilder,
    held: dict[int, SymNumber],
    grown: dict[int, int],
) -> list[Effect]:
    """Return the call's changes at the sources it could see, as effects that a replay repeats.

    `held` and `grown` are by the source's id: the runtime numbers at sources; the number of old
    elements in lists that were only appended to. Raise NotCacheable for other changes.
    """
    found: list[Effect] = []
    state.sources += [new for source in state.sources for new in _made_attributes(source)]
    for source in _in_order_of_making(state.sources):
        try:
            now = _now(source, arguments)
        except ValueError:  # an empty closure cell
            continue
        if source.kind not in ("own_names", "missing_names") and not _unchanged(source, now, held):
            found.append(_assignment(source, now, builder))
        was = source.value  # the call may have moved and changed it
        if id(source) in grown:
            fresh = [builder.of(v) for v in elements(was)[grown[id(source)] :]]
            found.append(appending(builder.before(source), fresh))
            builder.changed.append(was)
        elif source.kind == "class" and class_fingerprint(was) != source.keys:
            raise NotCacheable(f"the function changes the methods of {source.text}")
        elif source.kind == "set" and frozenset(elements(was)) != source.keys:
            raise NotCacheable(f"the function changes the set {source.text}")
        elif source.kind in ("sequence", "mapping") and _contents_changed(source, was, held):
            found.append(_refill(source, was, builder))
            builder.changed.append(was)
    return found


def _in_order_of_making(sources: list[Source]) -> list[Source]:
    """Sort the sources: new attributes come in the order in which the object has them."""
    found = list(sources)
    new = [k for k, p in enumerate(sources) if p.how == "attr" and p.value is ABSENT]
    made = {id(p): list(_own_attributes(p.value)) for k in new if (p := sources[k].parent)}
    new = [k for k in new if sources[k].key in made[id(sources[k].parent)]]
    ordered = sorted(new, key=lambda k: made[id(sources[k].parent)].index(sources[k].key))
    for k, other in zip(new, ordered):
        found[k] = sources[other]
    return found


def _now(source: Source, arguments: tuple) -> Any:
    """Return what a source holds now, in the object that was its parent when the call began."""
    owner = source.parent
    return read_from(source, arguments) if owner is None else source.read(owner.value)


def _unchanged(source: Source, now: Any, held: dict[int, SymNumber]) -> bool:
    before, number = source.value, held.get(id(source))
    if number is not None and (now is number or now is number.original):
        return True
    if number is None and (now is before or source.kind == "primitive" and identical(now, before)):
        return True
    return (
        source.how in ("self", "func")
        or source.how == "item"
        and source.parent is not None
        and (source.parent.kind in ("sequence", "mapping"))
    )  # `_refill` replaces all elements


def _made_attributes(source: Source) -> Iterator[Source]:
    """Yield a source for each attribute that the call made under a name that no code mentions."""
    parent: Any = source.parent
    if source.kind not in ("own_names", "missing_names"):
        return
    for how, name in source.made(parent.value):
        if (how, name) in parent.children:
            continue
        if how == "type" and name not in names_in(parent.value):
            raise NotCacheable(
                f"the function adds {name!r} to {source.text}, by a name that it computes")
        text = f"{source.text}.{name}"
        found = parent.children[how, name] = Source(parent, how, name, ABSENT, text)
        yield found


def _contents_changed(source: Source, now: Any, held: dict[int, SymNumber]) -> bool:
    if is_a(now, tuple):
        return False
    keys = range(length(now)) if source.kind == "sequence" else elements(now)
    if source.kind == "mapping" and not all(map(identical, keys, source.keys)):
        return True
    before = {
        key_of(child.key): child
        for (how, _), child in source.children.items()
        if how == "item"
    }
    if length(now) != source.length:
        return True
    for key in keys:
        child = before.get(key_of(key))
        new = item(now, key)
        if child is None:
            continue
        number = held.get(id(child))
        if number is not None:
            if new is not number and new is not number.original:
                return True
        elif new is not child.value and not (
            is_a(new, PRIMITIVE) and identical(new, child.value)
        ):
            return True
    return False


def _assignment(source: Source, now: Any, builder: EpilogueBuilder) -> Effect:
    key = source.key
    parent: Any = source.parent
    if now is ABSENT and source.how == "attr":
        owner = builder.before(parent)
        builder.changed.append(parent.value)
        return lambda frame: _own_attributes(owner(frame)).pop(key, None)
    if now is ABSENT:
        raise NotCacheable(f"the function deletes {source.text}")
    spec = builder.of(now)
    if source.how == "type" and not is_a(parent.value, type):
        return _class_assignment(source, builder, spec)
    if source.how in ("attr", "slot", "type"):
        owner = builder.before(parent)
        builder.changed.append(parent.value)
        if source.how == "attr":  # no `__setattr__` of the user's: its effects are recorded
            return lambda frame: _own_attributes(owner(frame)).__setitem__(key, spec(frame))
        put = type.__setattr__ if source.how == "type" else object.__setattr__
        return lambda frame: put(owner(frame), key, spec(frame))
    if source.how == "context":
        builder.changed.append(parent.value)
        variable = parent.value
        return lambda frame: variable.set(spec(frame))
    if source.how == "global":
        container = source.container
        return lambda frame: container.__setitem__(key, spec(frame))
    if source.how == "closure":
        owner = builder.before(parent)
        builder.changed.append(parent.value.__closure__[key])
        return lambda frame: setattr(
            owner(frame).__closure__[key], "cell_contents", spec(frame)
        )
    if source.how == "cell":
        builder.changed.append(key)
        return lambda frame: setattr(key, "cell_contents", spec(frame))
    raise NotCacheable(f"the function changes {source.text}")


def _class_assignment(source: Source, builder: EpilogueBuilder, spec: OutputSpec) -> Effect:
    """Return the effect `type(x).name = value`, for a class that is found by its object x."""
    parent, key = source.parent, source.key
    cls = type(parent.value)  # type: ignore[union-attr]
    if key not in names_in(cls):  # found in a base class, or deleted
        raise NotCacheable(f"the function changes {source.text}, an attribute of a base class")
    builder.changed.append(cls)
    owner = builder.before(parent)  # type: ignore[arg-type]
    return lambda frame: type.__setattr__(type(owner(frame)), key, spec(frame))


def _own_attributes(value: Any) -> dict[str, Any]:
    return instance_dict(value)


def _refill(source: Source, now: Any, builder: EpilogueBuilder) -> Effect:
    target = builder.before(source)
    if is_a(now, (list, deque)):
        parts = [builder.of(v) for v in elements(now)]
        return lambda frame: refill_sequence(target(frame), [r(frame) for r in parts])
    text = f"the function adds keys that it made to the dict {source.text}"
    items = [(builder.key(k, text), builder.of(item(now, k))) for k in elements(now)]
    return lambda frame: refill_dict(target(frame), {k(frame): r(frame) for k, r in items})


def memories(tensors: list[Tensor]) -> list[FunctionalStorage]:
    """List the distinct pieces of fresh memory behind result tensors."""
    return list(dict.fromkeys(
        t._traced.memory for t in tensors if t._traced.memory.input_tensor is None))
