"""Body of a rolled loop, recorded once: what it carries, scans, stacks and writes.

In: the body as a function, the variables it assigns. Out: a region and its `CarriedVar`s: variables
that start an iteration as placeholders and end it as something else of the same type. Raises
`RegionRefused` where that is not so, `PeelIteration` where it may be so after one iteration. Called
by `loops.py`; the gradient (`jit/autodiff/loop_vjp.py`) reads what is found here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import Any

from tracejit.core.eager.history import check_rebase
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.eager.writing import check_writable, leaf_error
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.shapes import known_same_shape, same_shape
from tracejit.core.ops.types import TensorType, int64
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.cells import UNBOUND, Variables
from tracejit.jit.capture.exits import ControlExit, TracedExit
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_attempts import (
    GradPromotion,
    LiftNumber,
    PeelIteration,
    Place,
    Retrace,
    StrideChange,
)
from tracejit.jit.capture.loop_contents import Contents, contents_of
from tracejit.jit.capture.loop_elements import SHARES, ElementView, element_views
from tracejit.jit.capture.loop_items import part_at
from tracejit.jit.capture.loop_numbers import DTYPES, GraphSymInt, LoopIndex, as_tensor, number_in
from tracejit.jit.capture.loop_region import LoopBodyTracer
from tracejit.jit.capture.loop_variables import CarriedVar, ScannedInput, StackedStore
from tracejit.jit.capture.rolled import StackedList
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.storage import UNKNOWN, FunctionalStorage
from tracejit.jit.capture.strides import known_strides, merged_strides, same_strides
from tracejit.jit.capture.subgraph import SubgraphTracer, forbid_breaks, speculate
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.capture.tree import (
    TreeSpec,
    difference,
    number_kind,
    tree_flatten,
    tree_unflatten,
)


@dataclass(eq=False)
class LoopBodyTrace:
    """Body of a loop, recorded once."""

    parent: Tracer
    name: str
    variables: Variables
    trip_count: Any = None  # None: an open loop, whose end is decided by a value
    promoted: frozenset = frozenset()  # variables that require grad though they start without
    lifted: frozenset = frozenset()  # Python numbers that change
    stride_changes: frozenset = frozenset()  # variables whose strides change
    written: tuple[Place, ...] = ()  # lists and dicts from before the loop that it writes
    max_trips: Any = None  # how many iterations there can be, where that is known
    before: TracedExit | None = None  # how the iteration before the loop ended
    carried_vars: list[CarriedVar] = field(default_factory=list)
    scans: list[ScannedInput] = field(default_factory=list)
    stores: list[StackedStore] = field(default_factory=list)
    appended: dict[int, tuple[StackedList, list[Any]]] = field(default_factory=dict)
    mutations: dict[int, int] = field(default_factory=dict)  # of elements, when appended
    results: dict[str, tuple[TreeSpec, list[CarriedVar]]] = field(default_factory=dict)
    started: dict[str, tuple[TreeSpec, list[CarriedVar]]] = field(default_factory=dict)
    indices: dict[str, LoopIndex] = field(default_factory=dict)
    learnt: list[Retrace] = field(default_factory=list)  # reasons to record the body again
    contents: list[Contents] = field(default_factory=list)  # of lists and dicts that it writes
    element_views: dict[int, ElementView] = field(default_factory=dict)  # by id of the element
    permutes: bool = False  # a variable ends as what another one was at the start
    signal: ControlExit = None
    decision: Tensor | None = None

    @property
    def counted(self) -> bool:
        """Flag: the loop is open, but has a bound for its iterations."""
        return self.trip_count is None and self.max_trips is not None

    def of_views(self) -> bool:
        """Return True if a variable that changes held a view before the loop."""
        return any(s.is_tensor and self.parent.traced(s.outer).views and s.end is not s.start
                   for s in self.carried_vars)

    def record(self, run: Callable[[LoopBodyTrace], ControlExit]) -> None:
        """Record the body once; `run` returns the exit. Put the variables back afterwards."""
        self.region = LoopBodyTracer(self.parent, self.name)
        self.region.body = self
        self.position: Any = None
        self.following: Any = None
        if self.trip_count is not None:
            self.position = self.region.graph.input(TensorType(int64, ()), source="index")
        elif self.counted:
            self.position = GraphSymInt(
                self.region.graph.input(TensorType(int64, ()), source="index"))
        before = self.variables.values()
        self.grad_mode = is_grad_enabled()
        try:
            with forbid_breaks(self.parent.root):
                self._start(before)
            with self.parent.root.blocks.speculating(), speculate(self.region):
                try:
                    self.signal = run(self)
                except Exception as error:
                    raise RegionRefused(
                        f"its body raises {type(error).__name__}: {error}") from error
                after = self.variables.values()
                self._finish(before, after)
        finally:
            self.variables.set(before)
            for contents in self.contents:
                contents.restore()
        self.region.unchanged()

    def release(self) -> None:
        """Let go of the region: see there. Also of what may be an index, which holds its body."""
        self.region.release()
        self.carried_vars, self.started, self.results, self.indices = [], {}, {}, {}
        self.signal = None
        self.learnt.clear()  # one of them was raised, and refers to frames
        self.contents.clear()
        self.appended.clear()

    def __enter__(self) -> LoopBodyTrace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    # -- the start of an iteration ---------------------------------------------------------------
    def _start(self, before: dict[str, Any]) -> None:
        self.started = {}
        self.containers: dict[str, Any] = {}  # copies, with placeholders, of lists and dicts
        self.originals: dict[int, Any] = {}  # by id of the copy
        for contents in contents_of(self, before):
            self.contents.append(contents)
            contents.start(self)
        written = {id(contents.container) for contents in self.contents}
        for name, value in before.items():
            if value is UNBOUND:
                continue
            if name in self.variables.private:
                self.variables.set({name: UNBOUND})
                continue
            if number_kind(value) is not None and self.is_lifted(name):
                self.variables.set({name: self.start_number(name, value)})
                continue
            leaves: list[Tensor] = []
            # After no iteration the variable is its old list: only a counted loop may copy it.
            copied = self.trip_count is not None and id(value) not in written
            changing = value if copied else UNBOUND
            spec = tree_flatten(value, leaves, partial(is_, changing))
            starts = self.start_tensors(name, value, spec, leaves)
            if starts:
                start = tree_unflatten(spec, iter(starts))
                self.variables.set({name: start})
                if is_a(start, (list, dict)):
                    self.containers[name], self.originals[id(start)] = start, value

    def original(self, container: Any) -> Any:
        """Return the list or dict from before the loop for which a copy stands."""
        return self.originals.get(id(container), container)

    def start_tensors(self, name: str, value: Any, spec: TreeSpec, leaves: list[Tensor]) -> list:
        """Add the tensors of a variable, or of an item; return their placeholders."""
        carried_vars = [
            self.tensor_var(name, leaf, leaf._requires_grad or (name, k) in self.promoted, k)
            for k, leaf in enumerate(leaves)]
        self.started[name] = (spec if carried_vars else TreeSpec("constant", value), carried_vars)
        return [var.start for var in carried_vars]

    def start_number(self, name: str, value: Any) -> Any:
        """Add a number that changes; return its placeholder."""
        var = self._number(name, value)
        self.started[name] = (TreeSpec("tensor"), [var])
        return var.start

    def tensor_var(self, name: str, outer: Tensor, requires_grad: bool, k: int = 0) -> CarriedVar:
        """Add a carried tensor: make the placeholder that an iteration starts from."""
        if outer.__dict__:
            raise RegionRefused(f"{name} has attributes of its own")
        start = self.region.placeholder(outer, requires_grad)
        traced = self.region.traced(start)
        var = CarriedVar(name, outer, start, traced.read(), self._origin(start))
        found = known_strides(self.parent.traced(outer))
        traced.memory.strides = UNKNOWN if (name, k) in self.stride_changes else found
        self.carried_vars.append(var)
        return var

    def _origin(self, start: Tensor) -> Tensor | None:
        """Return a second tensor with the placeholder's history: the placeholder may be written."""
        if not start._requires_grad:
            return None
        origin = self.region.tensor_of(self.region.traced(start).read())
        origin._requires_grad, origin._node, origin._output_nr = True, start._node, 0
        return origin

    def _number(self, name: str, outer: Any) -> CarriedVar:
        kind: Any = number_kind(outer)
        value = self.region.graph.input(TensorType(DTYPES[kind], ()), source=name)
        start = number_in(value, kind)
        var = CarriedVar(name, outer, start, value, None)
        self.carried_vars.append(var)
        return var

    # -- within ----------------------------------------------------------------------------------
    def index(self, start: Any, step: int) -> LoopIndex:
        """Return `start + step * position`, where `position` counts the iterations."""
        value: Any = self.position.value if self.counted else self.position
        graph = self.region.graph
        if step != 1:
            value = graph.append(REGISTRY["mul"], (value, step), {})
        if type(start) is not int or start:
            value = graph.append(REGISTRY["add"], (value, start), {})
        return LoopIndex(value, self, start, step)

    def scanned_item(self, container: Tensor, dim: int, index: LoopIndex) -> Tensor | None:
        """Return `container.select(dim, index)` as a scan. Return None in an open loop, for a
        tensor of the loop itself, and for an index out of range or of both signs."""
        if self.trip_count is None or self._is_inner(container):
            return None
        size = container.shape[dim]
        start, last = index.start, index.start + index.step * (self.trip_count - 1)
        low, high = (start, last) if index.step > 0 else (last, start)
        if self.trip_count < 1 or low < -size or high >= size or low < 0 <= high:
            return None
        return self.scan(container, dim, start if low >= 0 else start + size, index.step)

    def _is_inner(self, tensor: Tensor) -> bool:
        tracer = None if tensor._traced is None else tensor._traced.tracer
        while is_a(tracer, SubgraphTracer):
            if tracer is self.region:
                return True
            tracer = tracer.parent
        return False

    def scan(self, source: Tensor, dim: int, start: Any, step: int) -> Tensor:
        """Return this iteration's slice of a tensor of the parent; in an open loop a copy of it."""
        if self.trip_count is None:
            return part_at(source, dim, as_tensor(self.index(start, step).value).reshape((1,)))
        for known in self.scans:
            if known.source is source and known.key == (dim, start, step):  # type: ignore[attr-defined]
                return self.region.twin(known.item)
        tracer, active.tracer = active.tracer, self.parent
        try:
            whole = _sliced(source, dim, start, step, self.trip_count)
        finally:
            active.tracer = tracer
        kind = self.parent.traced(whole).read().type
        item = self.region.placeholder_of(kind._replace(shape=kind.shape[1:]),
                                          whole._requires_grad)
        self.region.traced(item).memory.strides = known_strides(self.parent.traced(source), dim)
        scan = ScannedInput(source, whole, item, self.region.traced(item).read(),
                            self._origin(item))
        scan.key = (dim, start, step)  # type: ignore[attr-defined]
        self.scans.append(scan)
        return item

    def store(self, target: Tensor, dim: int, index: LoopIndex, item: Any) -> None:
        """Record `target.select(dim, index).copy_(item)`: the rows are written after the loop."""
        if self.trip_count is None or active.tracer is not self.region or self._is_inner(target):
            raise RegionRefused("it writes a tensor at an index that is not known in advance")
        if any(s.target is target for s in self.stores) or self.grad_mode != is_grad_enabled():
            raise RegionRefused(
                "an iteration writes a tensor twice, or in another grad mode")
        if self.parent.overlaps(self.parent.traced(target)):
            raise RegionRefused("it writes rows of a tensor that overlaps itself or another tensor")
        try:
            check_writable(target)
        except RuntimeError as error:
            raise RegionRefused(str(error)) from None
        kind = self.parent.traced(target).read().type
        size = kind.shape[dim]
        start, last = index.start, index.start + index.step * (self.trip_count - 1)
        low, high = (start, last) if index.step > 0 else (last, start)
        if low < -size or high >= size or low < 0 <= high or index.step == 0:
            raise RegionRefused("it writes a tensor out of range")
        shape = (*kind.shape[:dim], *kind.shape[dim + 1 :])
        if not is_a(item, Tensor):
            item = full_of(None, shape, asked_number(item), kind.dtype)
        if len(item.shape) > len(shape):
            raise RegionRefused("it writes a row with too many dimensions")
        rows = item.to(kind.dtype).expand(shape).clone()
        start = start if low >= 0 else start + size
        self.stores.append(StackedStore(target, dim, start, index.step, rows))

    def append(self, container: list, element: Any) -> None:
        """Record `container.append(element)`: the list grows after the loop."""
        if active.tracer is not self.region or not is_a(element, Tensor):
            raise RegionRefused(
                "it appends under a condition, or it appends something that is no tensor")
        if self.trip_count is None:
            raise RegionRefused("a tensor decides when it ends, and it appends to a list")
        if not is_a(container, StackedList) or is_a(self.parent, SubgraphTracer):
            raise RegionRefused("it appends to a list made outside the function or outside a "
                                "surrounding loop")
        known = self.appended.setdefault(id(container), (container, []))
        if known[1]:
            raise RegionRefused("an iteration appends to a list twice")
        known[1].append(element)
        self.mutations[id(element)] = self.region.traced(element).memory.mutations

    # -- the end of an iteration -----------------------------------------------------------------
    def _finish(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        self.claim_created = self.region.claim_created()
        self._check_histories()
        try:
            self._compare_all(before, after)
        except RegionRefused:
            if not self.learnt:
                raise
        if self.learnt:  # the next attempt knows all of it
            raise self.learnt[0]
        self._check_memory()

    def _compare_all(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        for name, value in after.items():
            if name in self.variables.private:
                continue
            if value is before[name] and id(value) in self.appended:
                continue
            if name not in self.started:
                self._new(name, value)
            elif value is self.containers.get(name, self):  # the same list or dict as before
                self.unchanged(name)
            else:
                self.compare(name, before[name], value)
        for contents in self.contents:
            contents.finish(self)

    def is_lifted(self, name: str) -> bool:
        return (name, 0) in self.lifted

    def unchanged(self, name: str) -> None:
        """Note that a variable, or an item, ends the iteration as it started."""
        for k, var in enumerate(self.started[name][1]):
            self._end(var, k, var.start)

    def _end(self, var: CarriedVar, k: int, end: Any) -> None:
        """Take in how a variable's tensor number `k` ends the iteration."""
        var.end = end
        try:
            if var.is_tensor:  # it may have been written in place
                self._agree(var, k, end)
        except (GradPromotion, StrideChange) as found:
            self.learnt.append(found)

    def peel(self, reason: str) -> PeelIteration:
        return PeelIteration(reason)

    def _new(self, name: str, value: Any) -> None:
        """Take in a variable that has no value before the loop."""
        if is_a(value, LoopIndex):
            self.indices[name] = value
        elif (value is not UNBOUND
              and name in self.variables.live_out & self.variables.upward_exposed):
            raise PeelIteration(f"{name} has a value only after the first iteration")

    def compare(self, name: str, before: Any, after: Any) -> None:
        """Take in what a variable, or an item, is after the iteration."""
        spec, carried_vars = self.started[name]
        if self.is_lifted(name):
            carried_vars[0].end = self._number_end(name, before, after)
            return
        leaves: list[Tensor] = []
        found = tree_flatten(after, leaves, self.claim_created)
        different = difference(spec, found)
        if different and number_kind(before) and number_kind(after) is number_kind(before):
            self.learnt.append(LiftNumber(name, 0))
            return
        if different:
            raise PeelIteration(f"{name} is {different}")
        for k, (var, leaf) in enumerate(zip(carried_vars, leaves)):
            self._end(var, k, leaf)
        self.results[name] = (spec, carried_vars)

    def _check_histories(self) -> None:
        """Refuse a write that gives a placeholder a history where eager mode allows none: to a
        leaf, to one of several views."""
        for var in self.carried_vars:
            if var.requires_grad and var.rebased:
                reason = leaf_error(var.outer) if var.outer._requires_grad else None
                try:
                    check_rebase(var.outer)
                except RuntimeError as error:
                    reason = reason or str(error)
                if reason is None and self._may_be_another(var.outer):
                    reason = "a tensor's value decides which tensor it is"
                if reason is not None:
                    raise RegionRefused(f"{var.name}: {reason}")

    def _may_be_another(self, tensor: Tensor) -> bool:
        """Return True if a value before the loop decides whose memory this tensor shares."""
        parent = self.parent
        return parent.remains(lambda: bool(parent.sharing.partners(parent.traced(tensor).memory)))

    def _number_end(self, name: str, before: Any, after: Any) -> Any:
        self.results[name] = (TreeSpec("tensor"), self.started[name][1])
        if number_kind(after) is number_kind(before):
            return after
        kind: Any = number_kind(before)
        raise RegionRefused(f"{name} is of type {kind.__name__} first and something else later")

    def _agree(self, var: CarriedVar, k: int, end: Tensor) -> None:
        kind, found = var.input.type, self.region.traced(end).read().type
        if kind.dtype is not found.dtype:
            raise PeelIteration(f"{var.name} changes from {kind.dtype.name} to {found.dtype.name}")
        if not known_same_shape(kind.shape, found.shape) and not same_shape(
                kind.shape, found.shape):
            raise PeelIteration(f"{var.name} changes its shape")
        if end._requires_grad and not var.requires_grad:
            if self.trip_count is None and not self.counted:  # the body may never run
                raise RegionRefused(f"{var.name} requires grad only after an iteration")
            raise GradPromotion(var.name, k)
        if var.outer._requires_grad and not end._requires_grad and self.region.may_run_zero_times:
            raise RegionRefused(f"{var.name} requires grad only if there is no iteration")
        if end is not var.start and self.region.traced(var.start).memory.mutations:
            raise RegionRefused(f"an iteration writes {var.name} in place and then assigns it")
        start = self.region.traced(var.start).memory.strides
        if end is not var.start and not self.agree_strides(var, end) and start is not UNKNOWN:
            raise StrideChange(var.name, k)

    def agree_strides(self, var: CarriedVar, end: Tensor) -> bool:
        """Return True if a variable's tensor has the same strides before and after an iteration.
        Set `var.strides` to those after the loop."""
        before, after = self.parent.traced(var.outer), self.region.traced(end)
        var.strides = known_strides(after)
        if same_strides(after.shape, known_strides(before), var.strides):
            return True
        if self.trip_count is None and not var.filled:  # after no iteration it is the outer tensor
            var.strides = merged_strides(var.name, before, after)
        return False

    def _check_memory(self) -> None:
        """Refuse if memory that the body writes is also read, carried or scanned in another way."""
        written = self.region.written_outside()
        targets = {self.parent.traced(s.target).memory for s in self.stores}
        if len(targets) < len(self.stores):
            raise RegionRefused("it writes the same memory through two tensors")
        scanned = {self.parent.traced(t).memory for x in self.scans for t in (x.source, x.whole)}
        scanned |= {self.parent.traced(s.outer).memory for s in self.carried_vars if s.is_tensor}
        for memory in [m for t in targets for m in self._may_be(t)]:
            known = memory in scanned or memory in written or memory.overlaps_other
            if known or self.region.reads(memory):
                raise RegionRefused("it reads a tensor whose rows it writes")
        carried = [self.parent.traced(s.outer).memory for s in self.carried_vars if s.is_tensor]
        inner = [s for s in self.carried_vars if s.is_tensor
                 and self.region.traced(s.start).memory.mutations]
        for var in inner if self.region.may_run_zero_times else ():
            self.parent.check_kept(self.parent.traced(var.outer).memory,
                                   counting_family(var.outer))
        if any(self.parent.counts_outside(var.outer) for var in inner):
            raise RegionRefused("it writes a tensor that came from `.data`")
        touched = {self.parent.traced(s.outer).memory for s in inner} | set(written)
        seen = [*self.region.memories, *(self.parent.traced(x.whole).memory for x in self.scans),
                *(self.parent.traced(x.source).memory for x in self.scans), *carried]
        for memory in [m for t in touched for m in self._may_be(t)]:
            if seen.count(memory) > (memory in touched) or memory.overlaps_other:
                raise RegionRefused("it writes memory that it also reads through another tensor")
        if any(self.region.traced(x.item).memory.mutations for x in self.scans):
            raise RegionRefused("it writes a slice of a tensor in place")
        self._check_apart()

    def _may_be(self, memory: FunctionalStorage) -> list[FunctionalStorage]:
        """Return memory of the parent, and all that may be the same."""
        return [memory, *(other for other, _ in self.parent.sharing.partners(memory))]

    def _check_apart(self) -> None:
        """Refuse if results of an iteration share memory, with each other or with tensors made
        outside: after the loop each result has its own."""
        region = self.region
        starts = {region.traced(s.start).memory: s for s in self.carried_vars if s.is_tensor}
        ends = {id(s.end): region.traced(s.end).memory for s in self.carried_vars
                if s.is_tensor and s.end is not s.start}
        appended = [element for _, kept in self.appended.values() for element in kept]
        if len({id(element) for element in appended}) < len(appended):
            raise RegionRefused("it appends a tensor to two lists")
        for element in appended:
            if known_strides(region.traced(element)) is not None:
                raise RegionRefused("it appends a tensor that is not contiguous")
        self.element_views = element_views(self)
        elements = {id(t): region.traced(t).memory for t in appended
                    if id(t) not in self.element_views}
        if len({*ends.values()}) < len(ends) or any(
                elements[key] in ends.values() for key in elements.keys() - ends.keys()):
            raise RegionRefused(SHARES)
        separate = [*{**ends, **elements}.values()]
        for element in appended:
            memory = region.traced(element).memory
            early = memory in starts and id(element) not in self.element_views
            if early or memory.mutations != self.mutations[id(element)]:
                raise RegionRefused("it writes a tensor that it appends, or appends one from "
                                    "before the loop")
        if any(c is read for c, _ in self.appended.values() for read in region.root.lists_read):
            raise RegionRefused("it reads a list that it appends to")
        items = {region.traced(x.item).memory for x in self.scans} | region.gathered_views.keys()
        self._check_elements([*elements.values()], [*starts, *ends.values()])
        for memory in separate:
            others = {other for other, _ in region.sharing.memories.of(memory)}
            if memory in region.copies or items & {memory, *others}:
                raise RegionRefused("a result of an iteration shares memory with an outer tensor")
            self.permutes |= memory in starts
        for var in self.carried_vars:
            self._check_fresh(var, starts)

    def _check_elements(
        self, elements: list[FunctionalStorage], variables: list[FunctionalStorage]
    ) -> None:
        """Refuse an element of a list that may be another tensor, by a branch in the body."""
        for memory in elements:
            for other, _ in self.region.sharing.memories.of(memory):
                if other in elements or other in variables or other in self.region.copies:
                    raise RegionRefused("a tensor's value decides which tensor it appends")

    def _check_fresh(self, var: CarriedVar, starts: dict[FunctionalStorage, CarriedVar]) -> None:
        """Refuse a variable that may hold one of the tensors from before the loop for good: follow
        which variable it takes its tensor from."""
        seen: set[int] = set()
        while var.is_tensor and var.end is not var.start:
            following = starts.get(self.region.traced(var.end).memory)
            if following is None:
                return
            if id(var) in seen or following.end is following.start:
                raise RegionRefused("a variable keeps a tensor from before the loop")
            seen.add(id(var))
            var = following


def asked_number(value: Any) -> Any:
    """Return a plain number that a row is filled with; refuse any other."""
    if is_a(value, SymNumber) or not is_a(value, (int, float, bool)):
        raise RegionRefused("it fills a row with a number that changes")
    return value


def _sliced(source: Tensor, dim: int, start: Any, step: int, trip_count: Any) -> Tensor:
    """Return a tensor whose slices, in order, are what the iterations see of `source`."""
    moved = source if dim == 0 else source.movedim(dim, 0)
    if step > 0:
        if type(start) is int and start == 0 and step == 1 and moved.shape[0] == trip_count:
            return moved
        return moved[start:start + step * (trip_count - 1) + 1:step]
    flipped = moved.flip(0)
    first = moved.shape[0] - 1 - start
    return flipped[first:first - step * (trip_count - 1) + 1:-step]
