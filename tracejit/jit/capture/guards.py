"""Guards: one generated Python function per entry that finds the inputs and checks what was read.

In: the `ReachableState` tree of a recorded call, and the sources and numbers of its graph inputs.
Out: `GuardSet.find(arguments)` -> graph inputs and what their binding depends on, or the number of
the failed check. `explain` names path, old and new. Called by `build.py` and `entry.py`.

Before you add a rule here: teach a new `how` to `Source.read` too; `explain` and snapshots use
that. No line may run the user's code or change what it reads: `x[k]` once made a defaultdict's
entry, `getattr` ran `__getattr__`. Ask `item`, `elements`, `slot_of`, `class_attribute`. Guards are
made after the call: compare with what the source recorded (`length`, `keys`). `==` alone takes -0.0
for 0.0 and True for 1. Put a number guarded by value into `guarded_numbers`: where it changes, the
next recording makes it a runtime number. Hold tensors, keys and other instances by `weak_key`, or
not at all. Call `_variable_of` before a span begins: all lines in a span are checks of its source.
A snapshot replaces these checks: give `snapshot.py` rows for yours, or raise `Uncovered`. It also
drops any other line whose variables are all covered, unless `Lines` has a table for it, as
`aliases`. Sizes and strides are guarded by `bind`; what a binding depends on must be in
`_size_key`. In tests/capture, `programs_staleness.py` and `programs_distinct.py` show stale
entries, `test_snapshots.py` changes that a snapshot hides. `test_looking.py` shows user code that
runs, `test_lifetime.py` objects kept alive.
"""

from __future__ import annotations

import math
import weakref
from abc import get_cache_token
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.origins import standing
from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.tape import grad_fn_of, refresh
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import chain_of, counting_family, family_of
from tracejit.core.memory import devices
from tracejit.core.ops import autocast
from tracejit.core.ops.types import default as default_type
from tracejit.core.ops.types import get_default_dtype
from tracejit.jit.capture.access_path import (
    Source,
    behind_proxy,
    default_of,
    identical,
    now_there,
    referent,
    slot_of,
    weak_key,
)
from tracejit.jit.capture.contents import (
    elements,
    hashes_plainly,
    item,
    kind_of_container,
    length,
    reads_itself,
)
from tracejit.jit.capture.dynamic_names import own_names
from tracejit.jit.capture.fast_guards import FastGuards, Lines, check_text
from tracejit.jit.capture.fingerprint import class_fingerprint, subclasses
from tracejit.jit.capture.guard_texts import describe, kind_text, shown, tells
from tracejit.jit.capture.inputs import hooks_of
from tracejit.jit.capture.looking import (
    ABSENT,
    attribute_of,
    cell_contents,
    class_attribute,
    instance_dict,
    is_a,
    is_exactly,
    name_of_class,
    qualname_of_class,
    reads_plainly,
)
from tracejit.jit.capture.module_reads import METHODS, has_methods
from tracejit.jit.capture.number_text import Asked, NumberText, asked_text
from tracejit.jit.capture.runtime_numbers import SymGuard
from tracejit.jit.capture.state import ReachableState


@dataclass(frozen=True)
class GuardFailure:
    """Reason why an entry does not serve a call."""

    path: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}: {self.old} -> {self.new}"


class GuardSet:
    """Check of one entry, generated as Python; `fast_guards` is the short way through it."""

    def __init__(
        self,
        state: ReachableState,
        inputs: list[Any],  # of graph inputs: sources, and expressions of runtime numbers
        reached: list[Source],
        is_call_sym: Callable[[Source], bool],
        aliases: list[tuple[Source, Source]],
        sym_guards: Iterable[SymGuard] = (),
        source_of: Callable[[Any], Source] | None = None,
        distinct: Sequence[Source] = (),
        numbered: Sequence[Source] = (),
        offsets: Container[int] = (),
        no_views: Container[int] = (),
    ):
        self.offsets = offsets  # ids of tensors whose start in a storage was read
        self.no_views = no_views  # ids of tensors of which code raises if they are views
        self.is_call_sym = is_call_sym
        self.entered = state.entered
        self.lifted = {id(p.value) for p in inputs if is_a(p, Source)}
        self.guarded_numbers: list[tuple[Source, Any]] = []  # number that is compared
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {
            "ABSENT": ABSENT,
            "Tensor": Tensor,
            "active": active,
            "ever": ever,
            "default_type": default_type,
            "autocast": autocast.switches,
            "used": autocast.used,
            "default": devices.default,
            "asked": devices.asked,
            "copysign": math.copysign,
            "is_leaf": is_leaf,
            "everywhere": everywhere,
            "hooks_of": hooks_of,
            "item": item,
            "length": length,
            "elements": elements,
            "refresh": refresh,
            "counter_of": counter_of,
            "has_methods": has_methods,
        }
        self.variables: dict[int, str] = {}
        self.sources: list[Source] = []
        self.spans: list[tuple[int, int]] = []  # by source: line of its read, end of its checks
        self.aliases: dict[int, tuple[Source, Source]] = {}  # by the line that compares them
        self.described: list[tuple[Source | Asked | None, str]] = []
        self._flags()
        modes = len(self.lines)
        self._registered(state.registered)
        for ask, what in state.asked:
            answer = f"{self._constant(ask)}({self._constant(what)}) != {ask(what)}"
            self._fail(answer, None, f"{ask.__name__}({what})")
        self.tensor_sources = {
            id(p.value): p for p in reversed(state.sources) if p.kind == "tensor"}
        for source in (*state.sources, *reached):
            self._variable_of(source)
        text = NumberText(
            lambda root: self._variable_of(source_of(root)),  # type: ignore[misc]
            self.lines,
            self.constants,
        )
        for sym_guard in sym_guards:
            self._sym_guard(text, sym_guard)
        for source in numbered:
            differs = f"id({self._variable_of(source)}) != {id(source.value)}"
            self._fail(differs, source, "the same object, because its id() is used")
        names = [self._variable_of(x) if is_a(x, Source) else text.of(x) for x in inputs]
        keys = [self._size_key(x, name) for x, name in zip(inputs, names)]
        for one, other in aliases:
            self._alias(one, other)
        must_differ = self._distinct(distinct)
        plain = self._without_methods(state.modules() if state.reads else ())
        del self.is_call_sym, self.entered, self.tensor_sources  # hold objects of the caller's
        found = f"({', '.join(names)}{',' if names else ''})"
        result = f"return {found}, ({''.join(key + ', ' for key in keys if key)}), None, None"
        self.source = check_text("check(arguments)", [*self.lines, result], "0")
        namespace = self.constants
        exec(compile(self.source, "<guards>", "exec"), namespace)  # our own text, made above
        self.check: Callable[[tuple], Any] = namespace["check"]
        sources = [x if is_a(x, Source) else None for x in inputs]
        self.input_texts = [_written(x) for x in inputs]  # as the user writes them
        lines = Lines(self.lines, self.spans, self.aliases, must_differ, plain, modes)
        names_of = [self.variables[id(source)] for source in self.sources]
        self.fast_guards = FastGuards(
            lines, self.sources, names_of, list(zip(sources, names)), keys, namespace
        )
        del self.variables, self.lines, self.spans

    def find(self, arguments: tuple) -> Any:
        """Run the whole check. Return (graph inputs, what their binding depends on, None, None), or
        the number of the failed check. `FastGuards.fast` gives a snapshot and addresses for the two
        None. A check that passes may make a snapshot."""
        found = self.check(arguments)
        if type(found) is tuple and self.fast_guards.patience:
            self.fast_guards.remember(arguments, self.check)
        return found

    def __str__(self) -> str:
        return "\n".join(f"{p.text if p else 'mode'}: {what}" for p, what in self.described if what)

    # -- building --------------------------------------------------------------------------------
    def _constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _sym_guard(self, text: NumberText, sym_guard: SymGuard) -> None:
        condition = text.fails(sym_guard)
        if condition:
            self._fail(condition, *asked_text(sym_guard))

    def _fail(self, condition: str, source: Source | Asked | None, what: str) -> None:
        number = len(self.described) + 1
        self.described.append((source, what))
        self.lines.append(f"if {condition}: return {number}")

    def _flags(self) -> None:
        grad = is_grad_enabled()
        self._fail(f"active.grad_enabled is not {grad}", None, f"grad mode is {grad}")
        inference = active.inference
        since = "" if inference else "ever.inference and "
        differs = f"{since}active.inference is not {inference}"
        self._fail(differs, None, f"inference mode is {inference}")
        if not everywhere:  # else they are a root, whose contents are guarded
            self._fail("everywhere", None, "no hooks of all modules")
        default = self._constant(get_default_dtype())
        self._fail(
            f"default_type.dtype is not {default}", None,
            f"default dtype is {get_default_dtype()!r}",
        )
        casting = self._constant(autocast.switches.state)
        since = "used.ever and " if autocast.switches.state == autocast.State() else ""
        on = "on" if autocast.switches.on else "off"
        self._fail(
            f"{since}autocast.state is not {casting} and autocast.state != {casting}",
            None,
            f"autocast is {on}",
        )
        here = self._constant(devices.default.place)
        since = "asked.ever and " if devices.default.place is None else ""
        self._fail(
            f"{since}default.place is not {here} and default.place != {here}",
            None,
            f"default device is {devices.get_default_device()}",
        )

    def _registered(self, asked: Iterable[tuple[type, type]]) -> None:
        """Guard the answers to `issubclass` with abstract classes: `register` changes them, and
        neither of the two classes shows it."""
        pairs = tuple(asked)
        if pairs:
            given, known = self._constant(pairs), self._constant(subclasses(pairs))
            token, check = self._constant(get_cache_token), self._constant(subclasses)
            condition = f"{token}() != {get_cache_token()!r} and {check}({given}) != {known}"
            self._fail(condition, None, "the classes registered with abstract ones")

    def _variable_of(self, source: Source) -> str:
        """Emit the read and the checks of a source, once. Return its variable."""
        known = self.variables.get(id(source))
        if known is not None:
            return known
        read = self._read(source)
        if source.first is not None:
            self._variable_of(source.first)
        name = self.variables[id(source)] = f"v{len(self.sources)}"
        self.sources.append(source)
        at = len(self.lines)  # after the reads of other sources, which have spans of their own
        self.lines.append(f"{name} = {read}")
        self._check(source, name)
        self.spans.append((at, len(self.lines)))
        return name

    def _size_key(self, source: Any, name: str) -> str:
        """Return an expression for the part of an input that its binding depends on; "" for none.
        That is a tensor's shape (and strides, if it is not contiguous), or the value of an int."""
        if is_a(source, Source) and source.kind == "tensor":
            contiguous = source.value._strides is None
            return f"{name}._shape" if contiguous else f"({name}._shape, {name}._strides)"
        number = source.value if is_a(source, Source) else source.hint
        return name if type(number) is int else ""

    def _read(self, source: Source) -> str:
        if source.how == "argument":
            return f"arguments[{source.key}]"
        if source.how == "global":
            return f"{self._constant(source.container)}.get({source.key!r}, ABSENT)"
        if source.how == "constant":
            return self._constant(source.value)
        if source.how == "cell":
            return f"{self._constant(cell_contents)}({self._constant(source.key)})"
        parent = self._variable_of(source.parent)  # type: ignore[arg-type]
        if source.how == "key" and type(source.key) is not weakref.ref:
            return self._constant(source.key)
        if source.how == "key":
            return f"{self._constant(referent)}({self._constant(source.key)})"
        if source.how == "attr":
            return f"{self._own(source.parent)}.get({source.key!r}, ABSENT)"
        if source.how == "type":
            owner = parent if is_a(source.parent.value, type) else f"type({parent})"  # type: ignore[union-attr]
            return f"{self._constant(class_attribute)}({owner}, {source.key!r})"
        if source.how == "variable":
            return f"{parent}.__closure__[{source.key}]"
        if source.how == "closure":
            return f"{self._constant(cell_contents)}({parent}.__closure__[{source.key}])"
        if source.how == "slot":
            if not reads_plainly(source.parent.value):  # type: ignore[union-attr]
                return f"{self._constant(slot_of)}({parent}, {source.key!r})"
            return f"getattr({parent}, {source.key!r}, ABSENT)"
        if source.how == "own_names":
            return f"{self._constant(own_names)}({parent})"
        if source.how == "missing_names" and is_a(source.parent.value, type):  # type: ignore[union-attr]
            return f"{self._constant(now_there)}({parent}, {self._constant(tuple(source.key))})"
        if source.how == "missing_names":
            own = self._own(source.parent)
            return f"not {self._constant(frozenset(source.key))}.isdisjoint({own})"
        if source.how == "context":
            return f"{parent}.get(ABSENT)"
        if source.how == "default":
            return f"{self._constant(default_of)}({parent})"
        if source.how == "proxied":
            return f"{self._constant(behind_proxy)}({parent})"
        if source.how == "grad":
            return f"{parent}._grad"
        if source.how == "hook":
            return f"hooks_of({parent})[{source.key}]"
        if source.how == "self":
            return f"{parent}.__self__"
        if source.how == "func":
            return f"{parent}.__func__"
        cls = type(source.parent.value)  # type: ignore[union-attr]
        if cls is defaultdict:  # whose `[]` makes an entry for a missing key
            return f"{parent}.get({self._key(source.key)}, ABSENT)"
        if reads_itself(cls) or class_attribute(cls, "__missing__") is not ABSENT:
            return f"item({parent}, {self._key(source.key)})"
        if type(source.key) is not weakref.ref and not hashes_plainly(source.key):
            return f"item({parent}, {self._key(source.key)})"
        return f"{parent}[{self._key(source.key)}]"

    def _own(self, source: Source | None) -> str:
        """Return an expression for an object's `__dict__`."""
        name = self._variable_of(source)  # type: ignore[arg-type]
        if reads_plainly(source.value):  # type: ignore[union-attr]
            return f"{name}.__dict__"
        return f"{self._constant(instance_dict)}({name})"

    def _key(self, key: Any) -> str:
        if is_a(key, Tensor) and id(key) in self.tensor_sources:
            return self._variable_of(self.tensor_sources[id(key)])
        if is_exactly(key, (int, str, bool)):
            return repr(key)
        weak = weak_key(key)
        constant = self._constant(weak)
        return constant if weak is key else f"{self._constant(referent)}({constant})"

    def _distinct(self, sources: Sequence[Source]) -> dict[int, Sequence[Source]]:
        """Guard that the objects at these sources all differ: the user's code may have compared
        them, or the call changes one. Return the line and its sources."""
        if len(sources) < 2:
            return {}
        names = [f"id({self._variable_of(source)})" for source in sources]
        what = f"another object than at {len(sources) - 1} other places"
        self._fail(f"len({{{', '.join(names)}}}) != {len(names)}", sources[0], what)
        return {len(self.lines) - 1: sources}

    def _without_methods(self, modules: Iterable[Source]) -> dict[int, Sequence[Source]]:
        """Guard that modules replace no method that tracejit's own code calls. Return the line and
        its sources. A module that had replaced one is left out: that attribute has its own check.
        """
        found = [p for p in modules if not any(
            how == "attr" and key in METHODS and child.kind != "absent"
            for (how, key), child in p.children.items())]  # fmt: skip
        if not found:
            return {}
        asked = " or ".join(f"has_methods({self._own(p)})" for p in found)
        others = f", as {len(found) - 1} other modules" if found[1:] else ""
        self._fail(asked, found[0], f"no methods of its own{others}")
        return {len(self.lines) - 1: found}

    def _alias(self, one: Source, other: Source) -> None:
        a, b = self._variable_of(one), self._variable_of(other)
        self.aliases[len(self.lines)] = (one, other)
        if one.value is other.value:
            what = "tensor" if one.kind == "tensor" else "object"
            self._fail(f"{a} is not {b}", one, f"the same {what} as {other.text}")
        else:
            self._fail(
                f"{a}._storage is not {b}._storage or {a}._offset != {b}._offset "
                f"or {a}._shape != {b}._shape "
                f"or {a}._strides != {b}._strides",
                one,
                f"the same memory as {other.text}",
            )

    def _check(self, source: Source, name: str) -> None:
        value, kind = source.value, source.kind
        if kind == "absent":
            self._fail(f"{name} is not ABSENT", source, "absent")
        elif kind == "missing_names":
            self._fail(name, source, "absent")
        elif kind == "primitive":
            if self.is_call_sym(source):
                number = type(value).__name__
                self._fail(f"type({name}) is not {number}", source, f"{number}, any value")
            else:
                self._primitive(source, name, value)
        elif kind == "tensor":
            self._tensor(source, name, value)
        elif kind in ("sequence", "mapping"):
            cls = self._constant(type(value))
            size = "length" if reads_itself(type(value)) else "len"
            self._fail(
                f"type({name}) is not {cls} or {size}({name}) != {source.length}",
                source,
                f"{name_of_class(type(value))} of {source.length}",
            )
            if is_a(value, deque):
                most = value.maxlen
                self._fail(f"{name}.maxlen != {most}", source, f"a deque of at most {most}")
            if kind == "mapping":
                self._keys(source, name)
        elif kind == "set":
            cls = self._constant(type(value))
            known = self._constant(tuple(map(weak_key, elements(value))))
            differ = f"not {self._constant(holds)}({name}, {known})"
            self._fail(f"type({name}) is not {cls} or {differ}", source, f"set {set(source.keys)}")
        elif kind == "same":
            other = self._variable_of(source.first)  # type: ignore[arg-type]
            self._fail(f"{name} is not {other}", source, f"the same object as {source.first.text}")  # type: ignore[union-attr]
        elif kind == "own_names":
            self._fail(f"{name} != {self._constant(value)}", source, f"names {list(value)}")
        elif kind in ("object", "partial", "method", "proxy"):
            self._fail(
                f"type({name}) is not {self._constant(type(value))}",
                source,
                name_of_class(type(value)),
            )
        elif kind == "function":
            self._fail(
                f"type({name}) is not {self._constant(FunctionType)} "
                f"or {name}.__code__ is not {self._constant(value.__code__)}",
                source,
                f"function {value.__qualname__}",
            )
            if value.__code__ in self.entered:  # it ran, and reads these globals
                found = self._constant(value.__globals__)
                self._fail(f"{name}.__globals__ is not {found}", source, "in the same module")
        elif kind == "class":
            found, what = self._constant(source.keys), f"the methods of {qualname_of_class(value)}"
            self._fail(f"{self._constant(class_fingerprint)}({name}) != {found}", source, what)
        elif kind in ("identity", "module"):
            self._fail(
                f"{name} is not {self._constant(value)}",
                source,
                f"{kind} {attribute_of(value, '__name__') or name_of_class(type(value))}",
            )

    def _keys(self, source: Source, name: str) -> None:
        """Guard the keys of a mapping, in order."""
        if all(type(k) is str for k in source.keys):
            what = f"keys {list(source.keys)}"
            found = "elements" if reads_itself(type(source.value)) else "tuple"
            self._fail(f"{found}({name}) != {self._constant(source.keys)}", source, what)
            return
        known = self._constant(tuple(map(weak_key, source.keys)))
        what = f"{len(source.keys)} keys in their order"
        self._fail(f"not {self._constant(holds)}({name}, {known})", source, what)

    def _primitive(self, source: Source, name: str, value: Any) -> None:
        constant = self._constant(value)
        if is_exactly(value, (int, float)):
            self.guarded_numbers.append((source, value))
        if value is None or value is True or value is False:
            self._fail(f"{name} is not {value}", source, f"== {value}")
            return
        cls, own = self._constant(type(value)), kind_of_container(type(value))
        if own is not type(value) and not tells(value):  # `!=` may be the user's
            unequal = f"not {self._constant(identical)}({name}, {constant})"
            self._fail(f"{name} is not {constant} and {unequal}", source, f"== {shown(value)}")
            return
        differs = f"{name} is not {constant} and (type({name}) is not {cls} or {name} != {constant}"
        if is_a(value, (float, np.floating)) and value == 0.0:
            differs += f" or copysign(1.0, {name}) != {math.copysign(1.0, value)}"
        elif is_a(value, (complex, range)):
            differs += f" or repr({name}) != {repr(value)!r}"
        self._fail(differs + ")", source, f"== {value!r}")

    def _tensor(self, source: Source, name: str, value: Tensor) -> None:
        cls = self._constant(type(value))
        dt, dev = self._constant(value._dtype), self._constant(value._device)
        leaf = is_leaf(value)
        stands = stands_outside(value)
        if stands:
            self._fail(f"{name}._view is None", source, kind_text(value))
        self._fail(
            f"type({name}) is not {cls} "
            f"or {name}._view is not None and refresh({name}) != {stands} "
            f"or {name}._dtype is not {dt} "
            f"or {name}._device is not {dev} and {name}._device != {dev} "
            f"or len({name}._shape) != {len(value._shape)} or {name}._traced is not None "
            f"or {name}._requires_grad is not {value._requires_grad}"
            + (f" or {_leaf_text(name, leaf)}" if value._requires_grad else ""),
            source,
            kind_text(value),
        )
        if id(value) in self.lifted:
            counter = counter_of(value)
            unless = f"{name}._view is None or" if counter else f"{name}._view is not None and"
            self._fail(
                f"{unless} counter_of({name}) != {counter!r}",
                source,
                f"{counter}" if counter else "neither made in inference mode nor from .data",
            )
            contiguous = value._strides is None
            self._fail(
                f"({name}._strides is None) is not {contiguous}",
                source,
                "contiguous" if contiguous else "not contiguous",
            )
        if id(value) in self.offsets:
            self._fail(f"{name}._offset != {value._offset}", source,
                       f"{value._offset} elements into its storage")
        if id(value) in self.no_views:
            chain = self._constant(chain_of)
            self._fail(f"{name}._view is not None and {chain}({name})[1]", source, "no view")
        if id(value) in self.lifted and value._requires_grad:
            hooks = hooks_of(value)
            self._fail(
                f"hooks_of({name}) != {self._constant(hooks)}"
                if hooks
                else f"{name}._hooks is not None and hooks_of({name}) != ()",
                source,
                f"{len(hooks)} hooks",
            )

    def explain(self, number: int, arguments: tuple) -> GuardFailure:
        """Return path, old and new of the check with this number; 0: reading a source raised."""
        if number == 0:
            return GuardFailure("state", "as recorded", "a part of it is gone")
        source, what = self.described[number - 1]
        if source is None:
            return GuardFailure("mode", what, "changed")
        if is_a(source, Asked):
            return GuardFailure(source.text, what, "another answer")
        now = read_from(source, arguments)
        if source.kind == "missing_names":
            return GuardFailure(f"{source.text}.{now[0]}", what, "there")
        return GuardFailure(source.text, what, describe(now))


def _leaf_text(name: str, leaf: bool) -> str:
    """Return the condition under which a tensor is no leaf any more, or has become one."""
    unless = f"{name}._node is not None and " if leaf else ""
    return f"{unless}is_leaf({name}) is not {leaf}"


def counter_of(tensor: Tensor) -> str:
    """Return in words what counts a tensor's writes; "" for its storage, as usual."""
    if made_in_inference(tensor):
        return "made in inference mode"
    return "" if counting_family(tensor) is None else "from .data"


def made_in_inference(tensor: Tensor) -> bool:
    """Return True if the tensor was made in inference mode: autograd refuses it."""
    return tensor._view is not None and family_of(tensor).inference


def stands_outside(tensor: Tensor) -> int:
    """Return `standing` of a caller's view, without the writes of the recorded call."""
    if tensor._view is None:
        return 0
    tracer, active.tracer = active.tracer, None
    try:
        return standing(tensor)
    finally:
        active.tracer = tracer


def is_leaf(tensor: Tensor) -> bool:
    """Return True if no node of the tape made this tensor."""
    return grad_fn_of(tensor) is None


def holds(container: Iterable[Any], known: tuple) -> bool:
    """Return True if the container has these elements in order. Weak references match by
    identity."""
    found = elements(container)
    return len(found) == len(known) and all(
        x is k() if type(k) is weakref.ref else identical(x, k) for x, k in zip(found, known)
    )


def read_from(source: Source, arguments: tuple) -> Any:
    """Return the value at a source now; ABSENT where an attribute, entry or variable is gone."""
    if source.how == "argument":
        return arguments[source.key]
    if source.how == "global":
        return source.container.get(source.key, ABSENT)
    if source.how == "constant":
        return source.value
    if source.how == "cell":
        return source.read(None)
    parent = read_from(source.parent, arguments)  # type: ignore[arg-type]
    if source.how == "grad":
        return getattr(parent, "_grad", ABSENT)
    return ABSENT if parent is ABSENT else source.read(parent)


def try_read_from(source: Source, arguments: tuple) -> Any:
    """Do as `read_from`, but return ABSENT where it raises: a parent is of another kind now."""
    try:
        return read_from(source, arguments)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return ABSENT


def _written(given: Any) -> str:
    """Return the text of a graph input: of its source, or of a number's. Return "" for others."""
    source = given if is_a(given, Source) else getattr(given, "source", None)
    return source.text if source is not None else ""
