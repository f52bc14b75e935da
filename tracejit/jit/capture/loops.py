"""Loops that become one node: `for` over sizes and tensors, `while` on a tensor.

In: what is iterated or tested, the body as a function, the variables it assigns. Out: a
`for_loop` or `while_loop` node in the graph; variables, lists and memory as the loop leaves them.
Raises `RegionRefused` (nothing changed) where the body cannot be a region. Called by `control.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.modes import is_grad_enabled, no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import counting_family
from tracejit.core.eager.writing import store
from tracejit.core.ops.creation import full_of, iota
from tracejit.core.ops.record import REGISTRY, Op
from tracejit.core.ops.shapes import known_same_shape
from tracejit.core.ops.types import bool_, int64
from tracejit.jit.capture.aliasing import FunctionalStorage
from tracejit.jit.capture.branches import truth
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_attempts import Again, Lift, Promote, Strewn, Whole
from tracejit.jit.capture.loop_body import Body, Slot
from tracejit.jit.capture.loop_exit import Exit
from tracejit.jit.capture.loop_items import Rolled
from tracejit.jit.capture.loop_numbers import as_tensor, number_result, number_tensor, tested
from tracejit.jit.capture.loop_sharing import LoopSharing
from tracejit.jit.capture.maybe_written import write_condition
from tracejit.jit.capture.region import own_work, region_gradients, trial, without_breaks
from tracejit.jit.capture.rolled import extend_by
from tracejit.jit.capture.signals import CONTINUE, Decided, Return, Signal
from tracejit.jit.capture.sources import RngInput
from tracejit.jit.capture.structure import put_together
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.capture.variables import Variables
from tracejit.jit.ir.graph import Graph, Value

NO_ITERATION = "after no iteration a variable is a view, or another one"
ATTEMPTS = 16  # numbers lifted and variables promoted, one in each


def counted_loop(parent: Tracer, rolled: Rolled, body: Callable[[Any], Signal],
                 variables: Variables, before: Decided | None) -> Signal:
    """`for item in rolled: body(item)`; how it ends. `before`: how the iteration before these did,
    if that is for the program to know."""
    if rolled.trip < 1:
        return before
    if before is not None:
        return _breaking_loop(parent, rolled, body, variables, before)
    name = f"{parent.name}_loop"
    recorded = _recorded(parent, name, variables, rolled.trip, lambda b: body(rolled.item(b)),
                         rolled.trip)
    if is_a(recorded.signal, Decided):
        return _breaking_loop(parent, rolled, body, variables, None)
    if recorded.signal not in (None, CONTINUE):
        raise RegionRefused("the body leaves the loop or the function")
    if recorded.shifted and not rolled.trip > len(recorded.slots):
        raise RegionRefused(
            "after so few iterations a variable is what another one was before the loop")
    LoopNode(recorded).add()
    for name, index in recorded.indices.items():
        if name in variables.live & variables.loose:
            variables.set({name: index.start + index.step * (rolled.trip - 1)})
    return None


def _breaking_loop(parent: Tracer, rolled: Rolled, body: Callable[[Any], Signal],
                   variables: Variables, before: Decided | None) -> Signal:
    """A counted loop that a value may end before."""

    def run(b: Body) -> Signal:
        signal = body(rolled.item(b))
        following = b.position + 1
        goes_on = as_tensor(b.region.graph.append(REGISTRY["lt"], (following.value, rolled.trip),
                                                  {}))
        b.decision = goes_on & ~signal.ended if is_a(signal, Decided) else goes_on
        b.following = following
        return signal

    recorded = _recorded(parent, f"{parent.name}_loop", variables, None, run, rolled.trip, before)
    if recorded.shifted:
        raise RegionRefused(
            "after one iteration a variable is what another one was before the loop")
    if before is not None and recorded.of_views():
        raise RegionRefused(NO_ITERATION)
    if not is_a(recorded.signal, Decided) and recorded.signal not in (None, CONTINUE):
        raise RegionRefused("the body leaves the loop or the function")
    made = LoopNode(recorded, full_of(None, (), True, bool_) if before is None else ~before.ended)
    signal = made.add()
    for name, index in recorded.indices.items():
        if name in variables.live & variables.loose:
            last = number_result(parent, made.count, int) - 1
            variables.set({name: index.start + index.step * last})
    return signal


def open_loop(parent: Tracer, decision: Tensor, test: Callable[[], Any],
              body: Callable[[], Signal], variables: Variables, before: Decided | None) -> Signal:
    """`while test(): body()`, where `decision` is what the test just gave; how it ends. `before` as
    above."""
    endless = False

    def run(b: Body) -> Signal:
        nonlocal endless
        signal = body()
        if signal not in (None, CONTINUE) and not is_a(signal, Decided):
            raise RegionRefused("the body leaves the loop or the function")
        nodes = len(b.region.graph.nodes)
        again = tested(test())
        if is_a(signal, Decided) and any(n.may_fail for n in b.region.graph.nodes[nodes:]):
            raise RegionRefused("the test may fail, and the body may leave the loop before")
        endless = not is_a(again, Tensor) and bool(again)
        if endless and is_a(signal, Decided):
            b.decision = ~signal.ended
            return signal
        if not is_a(again, Tensor):
            again = full_of(None, (), bool(again), bool_)
        again = truth(again)
        b.decision = again & ~signal.ended if is_a(signal, Decided) else again
        return signal

    recorded = _recorded(parent, f"{parent.name}_while", variables, None, run, None, before)
    if recorded.shifted or recorded.of_views():
        raise RegionRefused(NO_ITERATION)
    signal = LoopNode(recorded, truth(decision)).add()
    if endless and is_a(signal, Decided):  # nothing else ends it
        if signal.broke is False:
            return Return(signal.value)
    return signal


def _recorded(parent: Tracer, name: str, variables: Variables, trip: Any,
              run: Callable[[Body], Signal], most: Any = None,
             before: Decided | None = None) -> Body:
    """The body, recorded as often as it takes to know what is carried."""
    known: dict[type, set] = {kind: set() for kind in (Promote, Lift, Strewn, Whole)}
    for _ in range(ATTEMPTS):
        promoted, lifted, strewn, whole = map(frozenset, known.values())
        body = Body(parent, name, variables, trip, promoted, lifted, strewn, whole, most, before)
        try:
            body.record(run)
            return body
        except Again as found:
            body.appended.clear()  # an attempt that is given up holds nothing
            known[type(found)].add(found.place)
    raise RegionRefused("its variables do not settle")


@dataclass(eq=False)
class Carried:
    """A value that goes from one iteration to the next: before the loop, within, at the end."""

    init: Value
    input: Value
    end: Value
    slot: Slot | None = None
    result: Any = None


class LoopNode:
    """Makes the node of a recorded body, and the state after it."""

    def __init__(self, body: Body, go: Any = None):
        self.body, self.go = body, go  # `go`: of a loop without a trip count, a tensor
        self.parent, self.region = body.parent, body.region
        self.count: Any = None
        with without_breaks(self.parent.root):
            self.exit = Exit(body, body.before)
        if not is_grad_enabled() and self._gives_history():
            raise RegionRefused(
                "a tensor may be one that requires grad, where no gradients are recorded")
        self.invariant = [s for s in body.slots if s.is_tensor and s.end is s.start
                          and not self._written(s)]
        self.carried = [self._carried(s) for s in body.slots if s not in self.invariant]
        self.exits = [Carried(self.parent.traced(init).read(), value, end)
                      for init, value, end in self.exit.flags]
        self.carried += [*self._counter(), *self.exits]
        self.memories = list(self.region.written_outside().items())
        self.written = [
            (m, Carried(m.value, inner.input, inner.value)) for m, inner in self.memories
        ]
        self.carried += [c for _, c in self.written]
        self.happened = {memory: self._happened(inner, memory.version)
                         for memory, inner in self.memories}
        self.happened |= {memory: self._happened(memory, 0) for memory in map(self._memory, [
            s.start for s in body.slots if s.end is s.start and s.is_tensor and self._written(s)])}
        self.carried += [h for h in self.happened.values() if is_a(h, Carried)]
        drawing = [d for d in self.region.generators.values() if d.any()]
        self.sharing = LoopSharing(body)
        held = [x for slot in self.sharing.changing for x in self._may_hold(slot)]
        if any(counting_family(x) is not None for x in held):
            raise RegionRefused(
                "a variable counts writes of its own: it may be `.data` of a tensor")
        self.flags = [Carried(*flag) for flag in self.sharing.flags]
        self.carried += self.flags
        self.draws = [(d, self._state(d)) for d in drawing]
        self.carried += [c for _, c in self.draws]
        self.stacked = [elements[0] for _, elements in body.appended.values()]
        self.stacked += [stored.rows for stored in body.stores]
        self.lasts: dict[int, Tensor] = {}  # of elements that variables are too: the last one

    def _gives_history(self) -> bool:
        """Whether a result, as the body or nothing of it leaves it, requires grad."""
        changing = [s for s in self.body.slots if s.is_tensor and s.end is not s.start]
        given = [*(s.end for s in changing),
                 *(x for _, elements in self.body.appended.values() for x in elements),
                 *(s.outer for s in changing if self.region.may_not_run)]
        return any(x._requires_grad for x in given)

    def _may_hold(self, slot: Slot) -> list[Tensor]:
        """Tensors made before the loop that a variable which changes may be after it."""
        found = self.sharing.outside(slot)
        if self.region.may_not_run and not slot.filled and not self.sharing.tells(slot):
            found.append(slot.outer)
        return found if slot.first_of is None else [*found, slot.first_of.outer]

    def _memory(self, x: Tensor) -> FunctionalStorage:
        return self.region.traced(x).memory

    def _written(self, slot: Slot) -> bool:
        return bool(self._memory(slot.start).mutations)

    def _happened(self, memory: FunctionalStorage, before: int) -> bool | Carried:
        """Whether each iteration writes memory, or what carries whether one did."""
        parent, region = self.parent, self.region
        happened = write_condition(region, memory, before)
        if not is_a(happened, Tensor):
            return happened
        init = parent.traced(full_of(None, (), False, bool_, happened.device)).read()
        known = region.graph.input(init.type, source="written")
        with trial(region), no_grad():
            either = region.tensor_of(known) | happened  # type: ignore[operator]
            return Carried(init, known, region.traced(either).read())

    def _flag(self, memory: FunctionalStorage) -> bool | Tensor:
        """Whether memory was written in the loop, or the flag that says so."""
        happened = self.happened[memory]
        if is_a(happened, Carried):
            return happened.result
        if not happened or not self.region.may_not_run:
            return happened
        with no_grad():
            return self.count >= 1

    def _store(self, slot: Slot, result: Tensor) -> None:
        """What a variable was before the loop is stored anew: perhaps nothing was written."""
        happened = self._flag(self._memory(slot.start))
        with self.parent.writing_under(happened), nullcontext() if slot.rebased else no_grad():
            store(slot.outer, result)

    def _carried(self, slot: Slot) -> Carried:
        parent, region = self.parent, self.region
        if slot.is_tensor:
            end = region.traced(slot.end).read()
            if not known_same_shape(end.type.shape, slot.input.type.shape):
                end = region.graph.append(REGISTRY["reshape"], (end,),
                                          {"shape": slot.input.type.shape})
            return Carried(parent.traced(slot.outer).read(), slot.input, end, slot)
        kind = slot.start.kind
        init = parent.traced(number_tensor(parent, slot.outer, kind)).read()
        with trial(region):
            end = region.traced(number_tensor(region, slot.end, kind)).read()
        return Carried(init, slot.input, end, slot)

    def _state(self, draws: RngInput) -> Carried:
        """The generator's state goes from one iteration to the next."""
        outer = self.parent.rng_input_of(draws.generator)
        init = _advanced(self.parent, outer.tensor, outer.offset)
        with trial(self.region):
            end = _advanced(self.region, draws.tensor, draws.offset)
        return Carried(init, draws.value, end)

    def _counter(self) -> list[Carried]:
        body = self.body
        if not body.counted:
            return []
        init = self.parent.traced(full_of(None, (), 0, int64)).read()
        return [Carried(init, body.position.value, body.following.value)]

    def add(self) -> Signal:
        """Make the node; variables, lists and memory are as after the loop, which ended so."""
        with own_work():
            return self._add()

    def _add(self) -> Signal:
        parent, region, body = self.parent, self.region, self.body
        with without_breaks(parent.root):  # the body is made of the graph so far
            gradient = self._gradient()
            residuals = [] if gradient is None else gradient.residuals
            init = {m.value for m, _ in self.memories}
            captured = {key: value for key, value in region.captured.items() if key not in init}
            operands = [c.init for c in self.carried]
            inputs = [c.input for c in self.carried]
            outputs = [c.end for c in self.carried]
            if body.trip is not None:
                operands += [parent.traced(s.whole).read() for s in body.scans]
                inputs = [body.position, *inputs, *(s.input for s in body.scans)]
                outputs += [region.traced(t).read() for t in self.stacked]
            operands += [*captured, *(parent.traced(s.outer).read() for s in self.invariant)]
            inputs += [*captured.values(), *(s.input for s in self.invariant)]
            self.given = operands, inputs, outputs
            op, operands, attributes, graph = self.parts(residuals)
            made = list(parent.control(op, operands, attributes, (graph,)))
        if body.trip is None:
            self.count = made.pop(0)
        for c, result in zip(self.carried, made):
            c.result = result
        self._count_writes()
        stacked = made[len(self.carried):len(self.carried) + len(self.stacked)]
        if gradient is not None:
            gradient.attach(self, stacked, made[len(self.carried) + len(self.stacked):])
        return self._leave(stacked)

    def parts(self, more: list[Value]) -> tuple[Op, list[Value], dict[str, Any], Graph]:
        """What the node is made of; `more`: what its body gives besides."""
        parent, body = self.parent, self.body
        operands, inputs, outputs = self.given
        carried = len(self.carried)
        if body.trip is not None:
            attributes = {"trip": body.trip, "carried": carried, "scanned": len(body.scans),
                          "reverse": False}
            graph = self.region.region(inputs, [*outputs, *more])
            return REGISTRY["for_loop"], operands, attributes, graph
        decides: Any = body.decision
        decision = self.region.traced(decides).read()
        graph = self.region.region(inputs, [decision, *outputs, *more])
        go = parent.traced(self.go).read()
        return REGISTRY["while_loop"], [go, *operands], {"carried": carried}, graph

    def _count_writes(self) -> None:
        """A result counts the writes to what it may be, already when history keeps it."""
        known: dict[int, list[Tensor]] = {}  # by what an iteration ends with
        changing = [(c.slot, c.result) for c in self.carried
                    if c.slot is not None and c.slot.is_tensor and c.slot.end is not c.slot.start]
        for slot, _ in changing:
            known.setdefault(id(slot.end), []).extend(self._may_hold(slot))
        for slot, result in changing:
            counts = [self.parent.traced(x).memory.version for x in known[id(slot.end)]]
            self.parent.traced(result).memory.version_counter.count = max(counts, default=0)

    def _gradient(self) -> Any:
        return region_gradients().of_loop(self) if is_grad_enabled() else None

    # -- after the loop --------------------------------------------------------------------------
    def _leave(self, stacked: list[Tensor]) -> Signal:
        parent, body = self.parent, self.body
        for memory, c in self.written:
            happened = self._flag(memory)
            memory.write(parent.traced(c.result).read(), happened is not False,
                         parent.if_asked(memory, happened))
        for draws, c in self.draws:
            outer = parent.rng_input_of(draws.generator)
            state = parent.traced(c.result)
            outer.tensor, outer.offset = parent._wrap(state, track=False), 0
            outer.count = outer.count + body.trip * draws.count
        values: dict[int, Any] = {id(slot): slot.outer for slot in self.invariant}
        ends: dict[int, list[Slot]] = {}  # several variables may hold one tensor
        slots = [(c, c.slot) for c in self.carried if c.slot is not None]
        for c, slot in slots:
            if slot.end is not slot.start and slot.is_tensor:
                others = ends.setdefault(id(slot.end), [])
                values[id(slot)] = self._end(c, slot, stacked, others, values)
                others.append(slot)
        self.sharing.remember(values, [c.result for c in self.flags])
        for c, slot in slots:  # last: these may end the segment
            if slot.end is slot.start and slot.is_tensor:  # written: so is what it stood for
                self._store(slot, c.result)
                values[id(slot)] = slot.outer
            elif not slot.is_tensor:
                values[id(slot)] = number_result(self.parent, c.result, slot.start.kind)
        body.variables.set({
            name: put_together(structure, iter([values[id(s)] for s in slots]))
            for name, (structure, slots) in body.results.items() if slots})
        for (container, elements), whole in zip(body.appended.values(), stacked):
            extend_by(container, whole, body.trip, self.lasts.get(id(elements[0])))
        for stored, whole in zip(body.stores, stacked[len(body.appended):]):
            stored.write(whole, body.trip)
        self.region.created_here.clear()
        body.appended.clear()  # what is held here could never be let go of untaken
        return self.exit.ended([c.result for c in self.exits], values)

    def _end(self, c: Carried, slot: Slot, stacked: list[Tensor], others: list[Slot],
             values: dict[int, Any]) -> Tensor:
        """What a variable is after the loop; after an iteration the `others` are that too."""
        for other in others:
            if self.body.trip is not None or other.outer is slot.outer:
                return values[id(other)]
        result = self._tensor(c, slot, stacked)
        for other in others[:1]:
            self._may_be(result, values[id(other)], self.count >= 1)
        return result

    def _tensor(self, c: Carried, slot: Slot, stacked: list[Tensor]) -> Tensor:
        for element, whole in zip(self.stacked, stacked):
            if element is slot.end:  # the last element of the list is this very tensor
                last = self.lasts[id(element)] = whole[self.body.trip - 1].clone()
                return last
        self.parent.traced(c.result).memory.strides = slot.strides
        if self.region.may_not_run and not slot.filled and not self.sharing.tells(slot):
            self._may_be(c.result, slot.outer, self.count == 0)
        if slot.first_of is not None:
            self._may_be(c.result, slot.first_of.outer, self.count == 1)
        return c.result

    def _may_be(self, result: Tensor, other: Tensor, flag: Tensor) -> None:
        """After so many iterations a variable is what it, or another, was, memory and all."""
        parent = self.parent
        memory, known = parent.traced(result).memory, parent.traced(other).memory
        parent.may_share(memory, known, flag)
        parent.may_be(result, other, flag)


def _advanced(tracer: Tracer, state: Tensor, draws: int) -> Value:
    """A generator's state (key, draws made) after further draws."""
    with no_grad():
        after = state + iota(2) * draws if draws else state
    return tracer.traced(after).read()
