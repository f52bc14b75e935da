"""Snapshots: rows of memory words which show that an entry's state did not change since the last
call.

In: an entry's sources, and the objects found there in a call whose guards held. Out: a
`GuardSnapshot`: rows (address, expected word). While they hold, the checks of the sources they
cover would pass again and find the same objects. Built and used by `fast_guards`; compared natively
by code that the runtime installs here.

A source is covered if every step from a root to it is. Dicts, classes and lists show every change
by a version or by their elements, tensors by the objects in their slots. The snapshot keeps alive
what the rows compare by address alone (numbers, shapes, dtypes). Tensors, modules and containers
are compared in full. So another object at the same address is seen. The snapshot keeps no object of
the user's alive that could be freed.

An owner of rows that changes from call to call is left to Python from then on. Python reads its
sources, and the objects found there become roots.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from tracejit.core.eager.nodes import LeafSink
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import View
from tracejit.core.memory import Storage
from tracejit.jit.capture import memory_words as words
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.contents import length
from tracejit.jit.capture.looking import (
    ABSENT,
    class_attribute,
    instance_dict,
    is_a,
    is_exactly,
    is_thread_local,
)

Rows = list[tuple[int, int]]
Owner = tuple[int, str]  # (number of a source, kind of its words)


# Kinds of sources whose check compares the object itself, and nothing else.
_COMPARED = ("primitive", "absent", "identity", "module", "own_names", "missing_names")
_LASTING = ("identity", "primitive")  # guards keep the compared object alive
_OF_FUNCTIONS = ("__name__", "__qualname__", "__defaults__", "__kwdefaults__")


class Uncovered(Exception):
    """Signal that words do not cover a source."""


# (addresses of roots, rows, inputs: an address, or -1 - the number of a later argument)
# -> function of (*roots, *later arguments): the graph's inputs, or None where a row differs. No
# other code runs between the first comparison and the last reference taken.
Comparer = Callable[[Sequence[int], Rows, Sequence[int]], Callable[..., tuple | None]]
_comparer: list[Comparer] = []


def install_comparer(make: Comparer) -> None:
    """Set the function that compares rows; the runtime provides it."""
    _comparer[:] = [make]


def available() -> bool:
    """Return True if snapshots can be made here."""
    return bool(_comparer) and words.supported()


class Coverage:
    """Sources that words cover, and their rows in one call."""

    def __init__(self, sources: Sequence[Source], values: dict[int, Any], changing: set[Owner]):
        self.values, self.changing = values, changing
        self.number = {id(source): k for k, source in enumerate(sources)}
        self.rows: dict[Owner, Rows] = {}  # in the order in which they may be read
        self.pins: list[Any] = []
        self.reads: set[int] = set()  # numbers of sources found by rows alone
        self.roots: list[int] = []  # sources that Python reads, and from which rows go on
        self.checks: set[int] = set()  # sources whose check the rows replace
        self.volatile: set[int] = set()  # sources that hold another object each time
        for k, source in enumerate(sources):
            self._cover(k, source)

    def _cover(self, k: int, source: Source) -> None:
        if (k, "root") in self.changing or self.number.get(id(source.parent)) in self.volatile:
            self.volatile.add(k)
            return
        value = self.values[k]
        before = len(self.pins)
        try:
            read = self._read(source, value)
            self.reads.add(k)
        except Uncovered:
            read = None
        try:
            rows = self._value(k, source, value)
        except Uncovered:
            rows = None
            del self.pins[before:]
        if read is not None:
            for owner, found in read.items():
                self.rows.setdefault(owner, found)
        elif source.kind in _COMPARED:
            return  # its check compares the object, so rows save nothing
        elif rows is not None:
            self.roots.append(k)
        if rows is not None:
            self.checks.add(k)
            if rows:
                self.rows[k, "value"] = rows

    # -- how a source is found ---------------------------------------------------------------------
    def _read(self, source: Source, value: Any) -> dict[Owner, Rows]:
        """Return rows that fix which object is at a source, given that its parent is fixed.

        Raise Uncovered if words cannot.
        """
        how, key = source.how, source.key
        if how == "constant":
            return {}
        if how == "global":
            table = source.container
            return self._steady((-1 - id(table), "entries"), lambda: _dict_rows(table))
        if how == "cell":
            self._held(source, value)
            return {(self.number[id(source)], "cell"): [_cell_row(key, value)]}
        k = self._fixed(source.parent)
        parent = self.values[k]
        told = how in ("own_names", "missing_names")
        if how == "attr" or told and not is_a(parent, type):
            return self._steady((k, "attributes"), lambda: attribute_rows(parent))
        if how == "item":
            return self._item(k, source, parent, value)
        if how == "type" or told:
            cls = parent if is_a(parent, type) else type(parent)
            return self._steady((k, "class"), lambda: _class_rows(cls))
        own = (self.number[id(source)], how)
        if how == "closure":
            self._held(source, value)
            return {own: _closure_rows(parent, key, value)}
        if how == "slot" and key in _OF_FUNCTIONS and is_a(parent, FunctionType):
            self._held(source, value)
            at = id(parent) + words.function_offset(key)
            return {own: [(at, id(value) if value is not None else 0)]}  # no defaults: no pointer
        if how == "slot" and key == "default_factory" and source.kind in _LASTING:
            self._held(source, value)
            at = words.slot_offset(vars(defaultdict)["default_factory"])
            return {own: [(id(parent) + at, id(value))]}
        if how in ("self", "func") and is_a(parent, MethodType):
            at = words.METHOD_SELF if how == "self" else words.METHOD_FUNCTION
            return {own: [(id(parent) + at, id(value))]}
        raise Uncovered

    def _item(self, k: int, source: Source, parent: Any, value: Any) -> dict[Owner, Rows]:
        if is_a(parent, dict):  # its version fixes the items
            return {}
        if not is_a(parent, (list, tuple)):
            raise Uncovered
        self._held(source, value)
        start = words.TUPLE_ITEMS + id(parent)
        if is_a(parent, list):
            start = words.word(id(parent) + words.LIST_ITEMS)
        own = (self.number[id(source)], "item")
        return self._steady(own, lambda: [(start + 8 * source.key, id(value))])

    def _held(self, source: Source, value: Any) -> None:
        """Keep a primitive alive, which the rows identify by address alone."""
        if source.kind == "primitive":
            self.pins.append(value)

    def _fixed(self, parent: Source | None) -> int:
        """Return the number of a parent whose object rows or Python have fixed; raise Uncovered for
        any other."""
        k = self.number.get(id(parent), -1)
        if k not in self.checks and getattr(parent, "kind", "") not in ("identity", "module"):
            raise Uncovered
        return k

    def _steady(self, owner: Owner, rows: Callable[[], Rows]) -> dict[Owner, Rows]:
        if owner in self.changing:
            raise Uncovered
        return {owner: self.rows[owner] if owner in self.rows else rows()}

    # -- what is there ----------------------------------------------------------------------------
    def _value(self, k: int, source: Source, value: Any) -> Rows:
        """Return rows that hold only while the check of the source's value would pass."""
        kind = source.kind
        if (k, "value") in self.changing:
            raise Uncovered
        if kind in _COMPARED:
            return []
        if kind == "same":
            other = self.number[id(source.first)]
            if other not in self.checks:
                raise Uncovered
            return []
        if kind == "class":
            return _class_rows(value)
        rows = [] if self._is_proven(source, value) else [(id(value) + words.TYPE, id(type(value)))]
        if kind == "tensor":
            return rows + self._tensor(value)
        if kind == "sequence":
            return rows + _sequence_rows(value)
        if kind == "mapping":
            return rows + _dict_rows(value)
        if kind == "function":
            names = ("__code__", "__globals__")
            return rows + [
                (id(value) + words.function_offset(n), id(getattr(value, n))) for n in names
            ]
        if kind in ("object", "method", "partial"):
            return rows
        raise Uncovered

    def _is_proven(self, source: Source, value: Any) -> bool:
        """Return True if the rows of the parent prove that the very object is there, and its class
        cannot change.

        The version of a dict proves that. An address alone does not: another object may lie there.
        """
        how = source.how
        if how == "item":
            versioned = is_a(self.values[self.number[id(source.parent)]], dict)
        else:
            versioned = how in ("global", "attr")
        return versioned and self.number[id(source)] in self.reads and (
            words.is_immutable(type(value)))

    def _tensor(self, x: Tensor) -> Rows:
        if not is_exactly(x._node, (type(None), LeafSink)) or x._hooks is not None:
            raise Uncovered
        if type(x._view) is View:  # a write to its base gives it a history
            raise Uncovered
        storage = x._storage
        if storage is None or x._device.type != "cpu":
            raise Uncovered
        kept = [getattr(x, name) for name in _SLOTS]
        self.pins += [*kept, storage.ptr]
        expected = [*map(id, (*kept, storage, type(storage), storage._ptr))]
        slots, of_storage = tensor_offsets()
        at = [*(id(x) + offset for offset in slots), *(id(storage) + n for n in of_storage)]
        return [*zip(at, expected)]


_SLOTS = ("_dtype", "_device", "_requires_grad", "_traced", "_node", "_hooks", "_shape", "_strides",
          "_offset")  # fmt: skip


@functools.cache
def tensor_offsets() -> tuple[list[int], list[int]]:
    """Return the offsets of the words in the rows of a tensor: in itself, the last of which has its
    Storage, and in that."""
    slots = TensorState.__dict__
    found = [words.slot_offset(slots[name]) for name in (*_SLOTS, "_storage")]
    return found, [words.TYPE, words.slot_offset(Storage.__dict__["_ptr"])]


def _dict_rows(table: Any) -> Rows:
    if any(not _reads_as(table, dict, name) for name in ("__getitem__", "__iter__")):
        raise Uncovered  # an OrderedDict keeps its order elsewhere
    return [(id(table) + words.DICT_VERSION, _version(table))]  # of which there is only one


def _reads_as(value: Any, kind: type, name: str) -> bool:
    """Return True if a container's class has Python's own method of this name."""
    return class_attribute(type(value), name) is class_attribute(kind, name)


def _version(table: dict) -> int:
    return words.word(id(table) + words.DICT_VERSION)


def attribute_rows(value: Any) -> Rows:
    """Return rows that hold as long as an object's own attributes stay the same."""
    own = instance_dict(value)
    lasting = type(own) is dict and not is_thread_local(type(value))
    at = words.dict_pointer(value) if lasting else 0
    if not at:
        raise Uncovered
    return [(at, id(own)), *_dict_rows(own)]


def _class_rows(cls: type) -> Rows:
    if not words.class_version(cls):
        raise Uncovered
    at = id(cls) + words.TYPE_VERSION
    return [(at, words.word(at))]


def _closure_rows(function: Any, key: int, value: Any) -> Rows:
    cells = function.__closure__
    return [
        (id(function) + words.function_offset("__closure__"), id(cells)),
        (id(cells) + words.TUPLE_ITEMS + 8 * key, id(cells[key])),
        _cell_row(cells[key], value),
    ]


def _cell_row(cell: Any, value: Any) -> tuple[int, int]:
    return id(cell) + words.CELL, 0 if value is ABSENT else id(value)  # empty: no pointer


def _sequence_rows(value: Any) -> Rows:
    size = (id(value) + words.SIZE, length(value))
    if is_a(value, tuple) and _reads_as(value, tuple, "__getitem__"):
        return [size]
    if is_a(value, list) and _reads_as(value, list, "__getitem__"):
        return [size, (id(value) + words.LIST_ITEMS, words.word(id(value) + words.LIST_ITEMS))]
    raise Uncovered


class GuardSnapshot:
    """Rows of one call, ready to be compared.

    compare    function of (*roots, *uncovered inputs): the graph's inputs, or None
    rows       by owner; `roots` has ids of roots by number of their source
    addresses  where the elements of covered inputs lie; None for other inputs
    uncovered  numbers of those other inputs
    ids        of the covered objects among those that must differ
    arguments  which argument a source is, by its number
    same       arguments that are guarded by value, and may be compared by identity
    covered    numbers of the sources whose checks the rows replace
    pins       objects to keep alive
    hits       calls it has served
    """

    __slots__ = ("ids", "compare", "rows", "roots", "pins", "hits", "addresses", "uncovered",
                 "covered", "arguments", "same")  # fmt: skip

    def __init__(
        self,
        coverage: Coverage,
        inputs: Sequence[int | None],
        must_differ: Sequence[int],
        found: Sequence[Any],
        fixed: Sequence[bool],
    ):
        values, covered = coverage.values, coverage.checks
        self.covered = frozenset(covered)
        self.arguments: dict[int, int] = {}
        self.same: list[int] = []
        self.rows, self.pins, self.hits = coverage.rows, coverage.pins, 0
        self.ids = frozenset([id(values[k]) for k in must_differ if k in covered])
        self.roots = {k: id(values[k]) for k in coverage.roots}
        taken, others = [], 0
        for k, x, known in zip(inputs, found, fixed):
            if known and k is None:  # a number
                self.pins.append(x)
            taken.append(id(x) if known else -1 - len(self.roots) - others)
            others += not known
        self.addresses = [
            _address(values[k]) if k is not None and k in covered else None for k in inputs
        ]
        self.uncovered = [n for n, address in enumerate(self.addresses) if address is None]
        rows = [row for part in self.rows.values() for row in part]
        self.compare = _comparer[0](list(self.roots.values()), rows, taken)

    def differing(self, now: Coverage) -> list[Owner]:
        """Return the owners whose rows, or roots, are not what they were."""
        found = [k for k, part in self.rows.items() if now.rows.get(k, part) != part]
        return found + [
            (k, "root") for k, root in self.roots.items() if id(now.values[k]) != root
        ]


def _address(x: Any) -> int | None:
    """Return the address of a covered tensor's elements; None for other objects."""
    if not is_a(x, Tensor):
        return None
    return x._storage.ptr + x._offset * x._dtype.itemsize
