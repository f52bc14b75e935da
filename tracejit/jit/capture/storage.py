"""Shared memory of tensors while a function is recorded.

In: tensors met by the tracer. Out: for each a `FunctionalTensor` state: the piece of memory it
looks at, through which views, and the graph value that memory holds now. A mutation becomes a new
value of the whole piece (C1), so graphs stay pure. Called by the tracer, `lifting`, branches and
loops.

Before you add a rule here: set `FunctionalStorage.value` only in `write`, which moves `mutations`,
or `read` returns a stale value. A replay adds `mutations - uncounted - len(conditional_writes)` to
the caller's version (`build.py`), so only counted writes get a flag. `lifting.py` gives all memory
of one Storage one `VersionCounter`; a region gives each piece its own, since `write_condition`
compares counts. `Tracer.write` writes now if `overlaps` holds, and passes all other writes to
`Sharing.written`; both ask `Sharing.partners`. `lifting.py` sets `overlaps_other` by addresses in
this call; `no_alias.py` checks replays. A view op needs a `view_inverse` and a row in `_CHANGES` of
`strides.py`, or a program serves one layout only. If its elements may share memory, `may_overlap`
must say so. `strides` may be UNKNOWN: call `Tracer.laid_out` before `_layout` or `offset`.
`join.py` and `loops.py` set strides of a region's results, which else lie in order. In
`tests/capture`, `programs_mutation`, `programs_aliasing`, `programs_region_layouts`,
`programs_region_sharing` and `programs_of_data` show mistakes; so does
`tests/random_programs/aliases.py`.
"""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

from tracejit.core.eager.state import laid_out, strides_of
from tracejit.core.ops.record import Op
from tracejit.jit.capture.breaks import leaked
from tracejit.jit.ir.graph import Graph, Location, Value
from tracejit.jit.ir.sizes import ShapeEnv, SymInt, evaluate

View = tuple[Op, tuple, dict]  # (op, its further operands, its attributes)
UNKNOWN = object()  # strides that a value decides


class VersionCounter:
    """Version of a Storage while recording. Its pieces of memory share the counter, except in
    regions."""

    __slots__ = ("count",)

    def __init__(self, count: int = 0):
        self.count = count


class FunctionalStorage:
    """Piece of memory: its content as a graph value, and counts of its writes."""

    __slots__ = ("value", "mutations", "uncounted", "version_counter", "input_tensor", "input",
                 "strides", "overlaps_other", "conditional_writes", "data_writes", "__weakref__")

    def __init__(
        self, value: Value, counter: VersionCounter | None = None, input_tensor: Any = None
    ):
        self.value = value
        self.mutations = 0  # writes recorded since it entered the graph
        self.uncounted = 0  # those among them that no version counts
        self.version_counter = VersionCounter() if counter is None else counter
        # the caller's concrete tensor, or None for memory made while recording
        self.input_tensor = input_tensor
        self.input: Any = value if input_tensor is not None else None
        self.strides: Any = None  # in elements; None: row-major; or UNKNOWN
        self.overlaps_other = False  # other memory of this graph overlaps it in another layout
        # (version after the write, flag: did it happen)
        self.conditional_writes: list[tuple[int, Any]] = []
        self.data_writes = 0  # writes that the caller's `.data` family counts

    @property
    def version(self) -> int:
        """Version that `Tensor._version` shows."""
        return self.version_counter.count

    def write(self, value: Value, counted: bool = True, happened: Any = True) -> None:
        """Let the memory hold `value`. `counted`: the version counts the write; for `.data` it does
        not.

        `happened`: True, or a flag; where the flag is False, `value` is what the memory held
        before.
        """
        self.value = value
        self.mutations += 1
        self.uncounted += not counted
        self.version_counter.count += counted
        if counted and happened is not True:
            self.conditional_writes.append((self.version_counter.count, happened))


class FunctionalTensor:
    """State of one tensor in the recording: memory, the views that lead to it, its current
    value."""

    __slots__ = ("tracer", "memory", "views", "shape", "_value", "_mutations", "__weakref__")

    def __init__(
        self,
        tracer: Any,
        memory: FunctionalStorage,
        views: tuple[View, ...] = (),
        value: Value | None = None,
    ):
        self.tracer, self.memory, self.views = tracer, memory, views
        self._value = memory.value if value is None else value
        self._mutations = memory.mutations
        self.shape = self._value.type.shape

    @property
    def origin(self) -> Location | None:
        """User's line that made the tensor."""
        return None if self._value.node is None else self._value.node.location

    def escaped(self) -> str:
        """Return the error text for a use of the tensor outside the recording."""
        return leaked(self)

    def read(self) -> Value:
        """Return the graph value that this tensor shows now. After a write the views are applied
        again."""
        if self._mutations != self.memory.mutations:
            value = self.memory.value
            for op, operands, attributes in self.views:
                value = value.graph.append(op, (value, *operands), attributes)
            self._value, self._mutations = value, self.memory.mutations
        return self._value

    def write(self, value: Value, counted: bool = True, happened: Any = True) -> None:
        """Make the memory hold `value` where this tensor looks at it, by the inverses of its
        views."""
        steps = [self.memory.value]
        for op, operands, attributes in self.views[:-1]:
            steps.append(value.graph.append(op, (steps[-1], *operands), attributes))
        # inverses, last view first; each needs what the view before it showed
        whole = value
        for (op, operands, attributes), before in zip(reversed(self.views), reversed(steps)):
            if op.view_inverse is None:
                raise RuntimeError(f"cannot write through a view made by {op.name}")
            whole = op.view_inverse(before, whole, *operands, **attributes)
        self.memory.write(whole, counted, happened)
        self._value, self._mutations = value, self.memory.mutations

    def viewed(self, op: Op, operands: tuple, attributes: dict, value: Value) -> FunctionalTensor:
        """Make the state of a view of this tensor, whose value is `value`."""
        views = (*self.views, (op, operands, attributes))
        return FunctionalTensor(self.tracer, self.memory, views, value)

    @property
    def dense(self) -> bool:
        """True if the tensor is all of its memory, in order."""
        memory = self.memory
        if self.views or memory.input_tensor is None:
            return not self.views and memory.strides is None
        return bool(laid_out(memory.input_tensor).flags["C_CONTIGUOUS"])

    def settle_layout(self) -> None:
        """Fix the tensor's sizes and strides by guards: the program serves no others from here
        on."""
        root = self.memory.value if self.memory.input is None else self.memory.input
        for size in (*root.type.shape, *(self.memory.strides or ()), *self.shape):
            int(size)

    def layout(self, exact: bool = False) -> np.ndarray:
        """Return an array laid out as the tensor would be if every symbol were at least 2.

        `exact`: laid out as it is in this call, which guards fix.
        """
        graph = self.memory.value.graph
        values = None if exact else _generic_sizes(graph)
        if values is not None:
            try:
                return self._laid_out(values)
            except ValueError:  # so many dimensions that NumPy cannot count the elements
                pass
        self.settle_layout()
        return self._laid_out(dict(graph.scope.hints))

    def _laid_out(self, values: dict[str, int]) -> np.ndarray:
        """Return the array for these sizes. It has strides and a shape, but no elements of its
        own."""
        shape = tuple(evaluate(s, values) for s in self.memory.value.type.shape)
        one: Any = np.empty(1, self.memory.value.dtype.numpy)
        strides = tuple(s * one.itemsize for s in self._strides(shape, values))
        array: Any = np.lib.stride_tricks.as_strided(one, shape, strides, writeable=False)
        for op, operands, attributes in self.views:
            eager: Any = op.eager
            places = [0 for _ in operands]  # strides are the same at any position
            given = {k: substitute(v, values) for k, v in attributes.items()}
            array = eager(np, array, *places, **given)
        return array

    def _strides(self, shape: tuple[int, ...], values: dict[str, int]) -> tuple[int, ...]:
        memory = self.memory
        if memory.input_tensor is not None:
            return _input_strides(memory.input_tensor, shape)
        if memory.strides is None:
            return _contiguous(shape)
        return substitute(memory.strides, values)


def _input_strides(input_tensor: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of the caller's tensor, or contiguous ones for `shape` if it is
    contiguous."""
    array = laid_out(input_tensor)
    contiguous = array.flags["C_CONTIGUOUS"]
    return _contiguous(shape) if contiguous else tuple(s // array.itemsize for s in array.strides)


def _generic_sizes(graph: Graph) -> dict[str, int] | None:
    """Return sizes of at least 2 where the example has 0 or 1; None if a guard rules them out."""
    scope = graph.scope
    # found anew only when a symbol or a guard was added
    asked = (len(scope.hints), len(scope.guards), scope.learnt)
    if scope.generic is None or scope.generic[0] != asked:
        scope.generic = (asked, _satisfying(scope))
    return scope.generic[1]


def _satisfying(scope: ShapeEnv) -> dict[str, int] | None:
    values = {name: max(hint, 2) for name, hint in scope.hints.items()}
    for name in values.keys() & scope.equal.keys():
        values[name] = evaluate(scope.resolve(SymInt({(name,): 1}, scope)), values)
    if values == scope.hints or all(guard.holds(values) for guard in scope.guards):
        return values
    return None


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def substitute(attribute: Any, values: dict[str, int]) -> Any:
    """Return an attribute with its symbolic sizes evaluated."""
    if type(attribute) is SymInt:
        return evaluate(attribute, values)
    if type(attribute) is tuple:
        return tuple(substitute(a, values) for a in attribute)
    return attribute


def byte_range(x: Any) -> tuple[int, int]:
    """Return the first byte address that a tensor reaches, and the one after the last."""
    start = x._storage.ptr + x._offset * x._dtype.itemsize
    strides = strides_of(x)
    if 0 in x._shape:
        return start, start
    reach = sum((n - 1) * s for n, s in zip(x._shape, strides) if s > 0)
    back = sum((n - 1) * s for n, s in zip(x._shape, strides) if s < 0)
    return start + back * x._dtype.itemsize, start + (reach + 1) * x._dtype.itemsize


def has_internal_overlap(x: Any) -> bool:
    """Return True if elements of a tensor may share memory: strides alone do not rule it out."""
    if x._strides is None or 0 in x._shape:
        return False
    reach = 0
    for stride, size in sorted((abs(s), n) for s, n in zip(x._strides, x._shape) if n > 1):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


class IntervalMap:
    """Addresses of the memory that entered a recording, to find what overlaps."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.items: list[tuple[int, int, FunctionalStorage]] = []
        self.longest = 0

    def overlapping(self, start: int, end: int) -> list[FunctionalStorage]:
        """Return memory that shares an address with [start, end)."""
        found = []
        k = bisect.bisect_left(self.starts, end)
        while k > 0 and self.items[k - 1][0] > start - self.longest:
            k -= 1
            if self.items[k][1] > start:
                found.append(self.items[k][2])
        return found

    def add(self, start: int, end: int, memory: FunctionalStorage) -> None:
        k = bisect.bisect_left(self.starts, start)
        self.starts.insert(k, start)
        self.items.insert(k, (start, end, memory))
        self.longest = max(self.longest, end - start)
