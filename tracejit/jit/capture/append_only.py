"""Lists that recorded code only appends to: its program does not depend on their contents.

In: the code objects that a recorded call entered, the sources that it could see. Out: the lists and
deques that grew and that no code reads. The entry guards only their type, and each replay appends
to them, however long they are. Called by `runtime.session`, and when an entry is made.

Bytecode decides, not source. A list is read if an instruction loads its name for anything but
`append` or `extend`. The name is that of an attribute, a variable or a literal key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType
from typing import Any

from tracejit.core.memory.reliances import holds
from tracejit.jit.capture.access_path import Source, key_of
from tracejit.jit.capture.attributes import MODULE_TABLES
from tracejit.jit.capture.instructions import Step, steps
from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.state import ReachableState

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_VARIABLES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
_APPENDS = ("append", "extend")
ANY = object()  # stands for a key that is no literal

Name = tuple[str, str]  # ("attribute" or "variable", its name)
Use = tuple[tuple, bool]  # keys that follow a name; whether an append follows them
_uses: dict[CodeType, dict[Name, frozenset[Use]]] = {}


def uses_of(code: CodeType) -> dict[Name, frozenset[Use]]:
    """Return, by name, how a code object and those nested in it use the values that they load."""
    found = _uses.get(code)
    if found is None:
        made: dict[Name, set[Use]] = {}
        for name, use in _scan(code):
            made.setdefault(name, set()).add(use)
        found = _uses[code] = {name: frozenset(uses) for name, uses in made.items()}
    return found


def _scan(code: CodeType) -> Iterator[tuple[Name, Use]]:
    if not holds("instructions"):  # bytecode cannot be judged: each name counts as read
        named = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
        yield from (((how, x), ((), False)) for x in named for how in ("attribute", "variable"))
    instructions = steps(code) if holds("instructions") else []
    for k, instruction in enumerate(instructions):
        if instruction.opname in _ATTRIBUTES:
            yield ("attribute", instruction.argval), _use(instructions, k + 1)
        elif instruction.opname in _VARIABLES:
            yield ("variable", instruction.argval), _use(instructions, k + 1)
    for constant in code.co_consts:
        if is_a(constant, CodeType):
            for name, uses in uses_of(constant).items():
                yield from ((name, use) for use in uses)


def _use(instructions: list[Step], k: int) -> Use:
    """Return the keys by which code subscripts the value on the stack, and if it then appends."""
    keys = []
    while k + 1 < len(instructions) and instructions[k + 1].opname == "BINARY_SUBSCR":
        one = instructions[k]
        if one.opname != "LOAD_CONST" and one.opname not in _VARIABLES:
            break
        keys.append(one.argval if one.opname == "LOAD_CONST" else ANY)
        k += 2
    last = instructions[k] if k < len(instructions) else None
    appends = last is not None and last.opname in _ATTRIBUTES and last.argval in _APPENDS
    return tuple(keys), appends


class AppendOnlyLists:
    """Finder of the lists that one recorded call only appends to."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()

    def entered(self, code: CodeType) -> None:
        """Add a code object that the call is about to run."""
        self.codes.add(code)

    def find(
        self, state: ReachableState, needed: Iterable[Any], held: dict[int, Any]
    ) -> dict[int, int]:
        """Return {id of the source: number of old elements left} for the lists that only grew.

        Leave out lists that lead to a `needed` source, or to an object that the call found in two
        places. `held`: the runtime numbers at sources, by the source's id.
        """
        if state.everything:
            return {}
        firsts = (p.first for p in state.sources if p.first is not None and p.first.how == "item")
        leading = {id(q) for p in (*needed, *firsts) for q in _above(p)}
        leading |= {id(q) for _, known in state.repeated for q in _above(known)}
        found = {
            id(source): kept
            for source in state.sources
            if is_exactly(source.value, (list, deque))
            and source.kind == "sequence"
            and id(source) not in leading
            and (kept := _kept(source, held)) is not None
            and self._unread(source)
        }
        for source in state.sources:
            if source.first is not None and id(source.first) in found and not self._unread(source):
                del found[id(source.first)]
        return found

    def _unread(self, source: Source) -> bool:
        """Return True if all code that loads the list by its name only appends to it."""
        keys: list[Any] = []
        while source.how == "item" and source.parent is not None:
            if key_of(source.key) is not source.key:
                return False
            keys.insert(0, source.key)
            source = source.parent
        if source.how == "self" and not keys:  # of a method that is kept: `append = kept.append`
            method: Any = source.parent.value  # type: ignore[union-attr]
            asked = any(("attribute", "__self__") in uses_of(code) for code in self.codes)
            return is_a(method, BuiltinFunctionType) and method.__name__ in _APPENDS and not asked
        name = _name_of(source)
        if name is None:
            return False
        uses = [use for code in self.codes for use in uses_of(code).get(name, ())]
        return bool(uses) and all(_harmless(use, tuple(keys)) for use in uses)


def _kept(source: Source, held: dict[int, Any]) -> int | None:
    """Count the old elements that a list still has; None if it did not change by appends alone.

    Old elements must lead to no other objects. A full deque drops as many at its start as it gets;
    no new element may be one that it had.
    """
    now, most = tuple(source.value), getattr(source.value, "maxlen", None)
    items = [c for (how, _), c in source.children.items() if how == "item"]
    before = {c.key: (c.value, held.get(id(c))) for c in items}
    known = {id(x) for both in before.values() for x in both}
    # A full deque may have dropped any number of elements at its start.
    for lost in range(source.length if len(now) == most else 1):
        kept = source.length - lost
        if kept >= len(now) or len(now) == most and any(id(x) in known for x in now[kept:]):
            continue
        if all(any(x is y for y in before.get(n + lost, ())) for n, x in enumerate(now[:kept])):
            return kept if all(map(_leads_nowhere, items)) else None
    return None


def _leads_nowhere(source: Source) -> bool:
    if source.kind == "sequence" and is_a(source.value, tuple):
        return all(map(_leads_nowhere, source.children.values()))
    return source.kind in ("primitive", "tensor")


def _name_of(source: Source) -> Name | None:
    if source.how in ("attr", "type") or source.how == "slot" and type(source.key) is str:
        return None if source.key in MODULE_TABLES else ("attribute", source.key)
    if source.how == "global":
        return ("variable", source.key)
    if source.how in ("argument", "cell", "closure"):
        return ("variable", source.text)
    return None


def _harmless(use: Use, keys: tuple) -> bool:
    """Return True if a use appends to the list at these keys, or is of another object."""
    used, appends = use
    matched = [ANY in (a, b) or a == b for a, b in zip(used, keys)]
    if not all(matched):
        return True
    return appends and len(used) == len(keys)


def _way_to(source: Any) -> Iterator[Source]:
    """Yield a source, then its parent and so on up to the root."""
    while is_a(source, Source):
        yield source
        source = source.parent


def appending(
    found: Callable[[Any], Any], parts: list[Callable[[Any], Any]]
) -> Callable[[Any], None]:
    """Return the effect by which a replay appends new elements to the list that `found` gives."""

    def append(frame: Any) -> None:
        target, more = found(frame), [part(frame) for part in parts]
        # Statements without a call, after which a signal's handler could run and raise.
        if type(target) is deque:
            target += more
        else:
            target[len(target) :] = more

    return append


def forget(state: ReachableState, lists: dict[int, int]) -> None:
    """Remove the sources inside these lists; guards then check only the type of a list."""
    inside = {id(p) for p in state.sources if any(id(q) in lists for q in _above(p))}
    for source in state.sources:
        if id(source) in inside and state.by_id.get(id(source.value)) is source:
            del state.by_id[id(source.value)]
        elif id(source) in lists:
            source.kind = "object"  # guards check its type alone
    state.sources[:] = [p for p in state.sources if id(p) not in inside]


def _above(source: Any) -> Iterator[Source]:
    """Yield the sources above this one, the nearest first."""
    return _way_to(source.parent) if is_a(source, Source) else iter(())
