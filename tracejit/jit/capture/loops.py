"""Loops that become one node: `for` over sizes and tensors, `while` on a tensor.

In: what is iterated or tested, the body as a function, the variables it assigns. Out: a `for_loop`
or `while_loop` node in the graph; variables, lists and memory as the loop leaves them. Raises
`RegionRefused` (nothing changed) where the body cannot be a region. Called by `control.py`.
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
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.cells import UNBOUND, Variables
from tracejit.jit.capture.cond import truth
from tracejit.jit.capture.conditional_writes import write_condition
from tracejit.jit.capture.exits import CONTINUE, ControlExit, Return, TracedExit
from tracejit.jit.capture.inputs import RngInput
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_attempts import (
    GradPromotion,
    LiftNumber,
    Retrace,
    StrideChange,
    WrittenContainer,
)
from tracejit.jit.capture.loop_body import LoopBodyTrace
from tracejit.jit.capture.loop_elements import handed_on
from tracejit.jit.capture.loop_exit import LoopExits
from tracejit.jit.capture.loop_items import LoopIterable
from tracejit.jit.capture.loop_numbers import as_tensor, number_result, number_tensor, tested
from tracejit.jit.capture.loop_sharing import LoopSharing
from tracejit.jit.capture.loop_variables import CarriedVar
from tracejit.jit.capture.rolled import extend_by
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import forbid_breaks, refuse_on_bug, region_gradients, speculate
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.capture.tree import tree_unflatten
from tracejit.jit.ir.graph import Graph, Value

NO_ITERATION = "if no iteration runs, a variable is a view or another variable's tensor"
ATTEMPTS = 16  # each learns something: numbers to lift, variables to promote


def trace_for(parent: Tracer, rolled: LoopIterable, body: Callable[[Any], ControlExit],
              variables: Variables, before: TracedExit | None) -> ControlExit:
    """Record `for item in rolled: body(item)` as a node; return its exit. `before`: the exit of the
    iteration before these, if the program decides it."""
    if rolled.trip_count < 1:
        return before
    if before is not None:
        return _breaking_loop(parent, rolled, body, variables, before)
    name = f"{parent.name}_loop"
    with _recorded(parent, name, variables, rolled.trip_count, lambda b: body(rolled.item(b)),
                   rolled.trip_count) as recorded:
        may_end = is_a(recorded.signal, TracedExit)
        if not may_end:
            _add_counted(recorded, rolled, variables)
    return _breaking_loop(parent, rolled, body, variables, None) if may_end else None


def _add_counted(recorded: LoopBodyTrace, rolled: LoopIterable, variables: Variables) -> None:
    """Make the node of a loop that nothing ends early."""
    if recorded.signal not in (None, CONTINUE):
        raise RegionRefused("the body leaves the loop or the function")
    if recorded.permutes and not rolled.trip_count > len(recorded.carried_vars):
        raise RegionRefused(
            "its variables exchange tensors, and it has few iterations")
    LoopBuilder(recorded).add()
    for name, index in recorded.indices.items():
        if name in variables.live_out & variables.upward_exposed:
            variables.set({name: index.start + index.step * (rolled.trip_count - 1)})


def _breaking_loop(parent: Tracer, rolled: LoopIterable, body: Callable[[Any], ControlExit],
                   variables: Variables, before: TracedExit | None) -> ControlExit:
    """Record a counted loop that a value may end early."""

    def run(b: LoopBodyTrace) -> ControlExit:
        signal = body(rolled.item(b))
        following = b.position + 1
        goes_on = as_tensor(b.region.graph.append(
            REGISTRY["lt"], (following.value, rolled.trip_count), {}))
        b.decision = goes_on & ~signal.ended if is_a(signal, TracedExit) else goes_on
        b.following = following
        return signal

    with _recorded(parent, f"{parent.name}_loop", variables, None, run, rolled.trip_count,
                   before) as recorded:
        if recorded.permutes:
            raise RegionRefused(
                "its variables exchange tensors, and a tensor decides when it ends")
        if before is not None and recorded.of_views():
            raise RegionRefused(NO_ITERATION)
        if not is_a(recorded.signal, TracedExit) and recorded.signal not in (None, CONTINUE):
            raise RegionRefused("the body leaves the loop or the function")
        made = LoopBuilder(recorded,
                           full_of(None, (), True, bool_) if before is None else ~before.ended)
        signal = made.add()
        for name, index in recorded.indices.items():
            if name in variables.live_out & variables.upward_exposed:
                last = number_result(parent, made.count, int) - 1
                variables.set({name: index.start + index.step * last})
        return signal


def trace_while(parent: Tracer, decision: Tensor, test: Callable[[], Any],
                body: Callable[[], ControlExit], variables: Variables,
                before: TracedExit | None) -> ControlExit:
    """Record `while test(): body()` as a node; return its exit. `decision` is the test's first
    answer, `before` as in `trace_for`."""
    endless = False

    def run(b: LoopBodyTrace) -> ControlExit:
        nonlocal endless
        signal = body()
        if signal not in (None, CONTINUE) and not is_a(signal, TracedExit):
            raise RegionRefused("the body leaves the loop or the function")
        nodes = len(b.region.graph.nodes)
        again = tested(test())
        if is_a(signal, TracedExit) and any(n.may_fail for n in b.region.graph.nodes[nodes:]):
            raise RegionRefused("its test may raise an error, and its body may leave the loop "
                                "first")
        endless = not is_a(again, Tensor) and bool(again)
        if endless and is_a(signal, TracedExit):
            b.decision = ~signal.ended
            return signal
        if not is_a(again, Tensor):
            again = full_of(None, (), bool(again), bool_)
        again = truth(again)
        b.decision = again & ~signal.ended if is_a(signal, TracedExit) else again
        return signal

    with _recorded(parent, f"{parent.name}_while", variables, None, run, None,
                   before) as recorded:
        if recorded.permutes or recorded.of_views():
            raise RegionRefused(NO_ITERATION)
        signal = LoopBuilder(recorded, truth(decision)).add()
    if endless and is_a(signal, TracedExit):  # `while True`: only break or return ends it
        if signal.broke is False:
            return Return(signal.value)
    return signal


def _recorded(parent: Tracer, name: str, variables: Variables, trip_count: Any,
              run: Callable[[LoopBodyTrace], ControlExit], max_trips: Any = None,
             before: TracedExit | None = None) -> LoopBodyTrace:
    """Record the body until no `Retrace` asks for another attempt."""
    known: dict[type, dict] = {
        kind: {} for kind in (GradPromotion, LiftNumber, StrideChange, WrittenContainer)}
    for _ in range(ATTEMPTS):
        promoted, lifted, stride_changes, written = known.values()
        body = LoopBodyTrace(parent, name, variables, trip_count, frozenset(promoted),
                             frozenset(lifted), frozenset(stride_changes), tuple(written),
                             max_trips, before)
        try:
            body.record(run)
            return body
        except BaseException as found:
            places = [(type(each), each.place) for each in body.learnt]
            body.release()  # a failed attempt keeps nothing alive
            if not is_a(found, Retrace) or is_a(found, WrittenContainer) and found.body is not body:
                raise
            for kind, place in places or [(type(found), found.place)]:
                known[kind][place] = True
    raise RegionRefused("its variables change in too many ways")


@dataclass(eq=False)
class Carried:
    """Value that goes from one iteration to the next: before the loop, within, at the end."""

    init: Value
    input: Value
    end: Value
    var: CarriedVar | None = None
    result: Any = None


class LoopBuilder:
    """Maker of the node for a recorded body, and of the state after the loop."""

    def __init__(self, body: LoopBodyTrace, go: Any = None):
        self.body, self.go = body, go  # `go`: of a loop without a trip count, a tensor
        self.parent, self.region = body.parent, body.region
        self.count: Any = None
        with forbid_breaks(self.parent.root):
            self.exit = LoopExits(body, body.before)
        if not is_grad_enabled() and self._gives_history():
            raise RegionRefused(
                "under no_grad(), a result may be an outer tensor that requires grad")
        self.invariant = [s for s in body.carried_vars if s.is_tensor and s.end is s.start
                          and not self._written(s)]
        self.carried = [self._carried(s) for s in body.carried_vars if s not in self.invariant]
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
            s.start for s in body.carried_vars
            if s.end is s.start and s.is_tensor and self._written(s)])}
        self.carried += [h for h in self.happened.values() if is_a(h, Carried)]
        drawing = [d for d in self.region.generators.values() if d.any()]
        self.sharing = LoopSharing(body)
        held = [x for var in self.sharing.changing for x in self._may_hold(var)]
        if any(counting_family(x) is not None for x in held):
            raise RegionRefused(
                "a variable may be `.data` of a tensor")
        self.flags = [Carried(*flag) for flag in self.sharing.flags]
        self.carried += self.flags
        self.draws = [(d, self._state(d)) for d in drawing]
        self.carried += [c for _, c in self.draws]
        self.stacked = [elements[0] for _, elements in body.appended.values()]
        self.stacked += [stored.rows for stored in body.stores]
        self.lasts: dict[int, Tensor] = {}  # by id of an element that a variable holds too

    def _gives_history(self) -> bool:
        """Return True if a result requires grad, as the body leaves it or, after no iteration, as
        it was."""
        changing = [s for s in self.body.carried_vars if s.is_tensor and s.end is not s.start]
        given = [*(s.end for s in changing),
                 *(x for _, elements in self.body.appended.values() for x in elements),
                 *(s.outer for s in changing if self.region.may_run_zero_times)]
        return any(x._requires_grad for x in given)

    def _may_hold(self, var: CarriedVar) -> list[Tensor]:
        """Return the tensors made before the loop that a variable may be after it."""
        found = self.sharing.outside(var)
        if self.region.may_run_zero_times and not var.filled and not self.sharing.tells(var):
            found.append(var.outer)
        return found if var.first_of is None else [*found, var.first_of.outer]

    def _memory(self, x: Tensor) -> FunctionalStorage:
        return self.region.traced(x).memory

    def _written(self, var: CarriedVar) -> bool:
        return bool(self._memory(var.start).mutations)

    def _happened(self, memory: FunctionalStorage, before: int) -> bool | Carried:
        """Return whether each iteration writes memory: a bool, or a carried flag that one did."""
        parent, region = self.parent, self.region
        happened = write_condition(region, memory, before)
        if not is_a(happened, Tensor):
            return happened
        init = parent.traced(full_of(None, (), False, bool_, happened.device)).read()
        known = region.graph.input(init.type, source="written")
        with speculate(region), no_grad():
            either = region.tensor_of(known) | happened
            return Carried(init, known, region.traced(either).read())

    def _flag(self, memory: FunctionalStorage) -> bool | Tensor:
        """Return whether memory was written in the loop: a bool, or the flag that says so."""
        happened = self.happened[memory]
        if is_a(happened, Carried):
            return happened.result
        if not happened or not self.region.may_run_zero_times:
            return happened
        with no_grad():
            return self.count >= 1

    def _store(self, var: CarriedVar, result: Tensor) -> None:
        """Store the result of a variable written in place in the tensor it was before the loop."""
        happened = self._flag(self._memory(var.start))
        with self.parent.writing_under(happened), nullcontext() if var.rebased else no_grad():
            store(var.outer, result)

    def _carried(self, var: CarriedVar) -> Carried:
        parent, region = self.parent, self.region
        if var.is_tensor:
            end = region.traced(var.end).read()
            if not known_same_shape(end.type.shape, var.input.type.shape):
                end = region.graph.append(REGISTRY["reshape"], (end,),
                                          {"shape": var.input.type.shape})
            return Carried(parent.traced(var.outer).read(), var.input, end, var)
        kind = var.start.kind
        init = parent.traced(number_tensor(parent, var.outer, kind)).read()
        with speculate(region):
            end = region.traced(number_tensor(region, var.end, kind)).read()
        return Carried(init, var.input, end, var)

    def _state(self, draws: RngInput) -> Carried:
        """Carry the generator's state from iteration to iteration."""
        outer = self.parent.rng_input_of(draws.generator)
        init = _advanced(self.parent, outer.tensor, outer.offset)
        with speculate(self.region):
            end = _advanced(self.region, draws.tensor, draws.offset)
        return Carried(init, draws.value, end)

    def _counter(self) -> list[Carried]:
        body = self.body
        if not body.counted:
            return []
        init = self.parent.traced(full_of(None, (), 0, int64)).read()
        return [Carried(init, body.position.value, body.following.value)]

    def add(self) -> ControlExit:
        """Make the node; set variables, lists and memory as after the loop. Return its exit."""
        with refuse_on_bug():
            return self._add()

    def _add(self) -> ControlExit:
        parent, region, body = self.parent, self.region, self.body
        with forbid_breaks(parent.root):  # the body uses values of this segment
            gradient = self._gradient()
            residuals = [] if gradient is None else gradient.residuals
            init = {m.value for m, _ in self.memories}
            captured = {key: value for key, value in region.captured.items() if key not in init}
            operands = [c.init for c in self.carried]
            inputs = [c.input for c in self.carried]
            outputs = [c.end for c in self.carried]
            if body.trip_count is not None:
                operands += [parent.traced(s.whole).read() for s in body.scans]
                inputs = [body.position, *inputs, *(s.input for s in body.scans)]
                outputs += [region.traced(t).read() for t in self.stacked]
            operands += [*captured, *(parent.traced(s.outer).read() for s in self.invariant)]
            inputs += [*captured.values(), *(s.input for s in self.invariant)]
            self.given = operands, inputs, outputs
            op, operands, attributes, graph = self.parts(residuals)
            made = list(parent.control(op, operands, attributes, (graph,)))
        if body.trip_count is None:
            self.count = made.pop(0)
        for c, result in zip(self.carried, made):
            c.result = result
        self._count_writes()
        stacked = made[len(self.carried):len(self.carried) + len(self.stacked)]
        if gradient is not None:
            gradient.attach(self, stacked, made[len(self.carried) + len(self.stacked):])
        return self._leave(stacked)

    def parts(self, more: list[Value]) -> tuple[Op, list[Value], dict[str, Any], Graph]:
        """Return the node's op, operands, attributes and body; `more`: further outputs of the
        body."""
        parent, body = self.parent, self.body
        operands, inputs, outputs = self.given
        carried = len(self.carried)
        if body.trip_count is not None:
            attributes = {"trip_count": body.trip_count, "carried": carried,
                          "scanned": len(body.scans), "reverse": False}
            graph = self.region.region(inputs, [*outputs, *more])
            return REGISTRY["for_loop"], operands, attributes, graph
        decides: Any = body.decision
        decision = self.region.traced(decides).read()
        graph = self.region.region(inputs, [decision, *outputs, *more])
        go = parent.traced(self.go).read()
        return REGISTRY["while_loop"], [go, *operands], {"carried": carried}, graph

    def _count_writes(self) -> None:
        """Give a result the write count of what it may be, before history keeps the result."""
        known: dict[int, list[Tensor]] = {}  # by id of what variables hold after an iteration
        changing = [(c.var, c.result) for c in self.carried
                    if c.var is not None and c.var.is_tensor and c.var.end is not c.var.start]
        for var, _ in changing:
            known.setdefault(id(var.end), []).extend(self._may_hold(var))
        for var, result in changing:
            counts = [self.parent.traced(x).memory.version for x in known[id(var.end)]]
            self.parent.traced(result).memory.version_counter.count = max(counts, default=0)

    def _gradient(self) -> Any:
        return region_gradients().of_loop(self) if is_grad_enabled() else None

    # -- after the loop --------------------------------------------------------------------------
    def _leave(self, stacked: list[Tensor]) -> ControlExit:
        parent, body = self.parent, self.body
        for memory, c in self.written:
            happened = self._flag(memory)
            memory.write(parent.traced(c.result).read(), happened is not False,
                         parent.if_asked(memory, happened))
        for draws, c in self.draws:
            outer = parent.rng_input_of(draws.generator)
            state = parent.traced(c.result)
            outer.tensor, outer.offset = parent._wrap(state, track=False), 0
            outer.count = outer.count + body.trip_count * draws.count
        values: dict[int, Any] = {id(var): var.outer for var in self.invariant}
        ends: dict[int, list[CarriedVar]] = {}  # several variables may hold one tensor
        carried_vars = [(c, c.var) for c in self.carried if c.var is not None]
        for c, var in carried_vars:
            if var.end is not var.start and var.is_tensor:
                others = ends.setdefault(id(var.end), [])
                values[id(var)] = self._end(c, var, stacked, others, values)
                others.append(var)
        self.sharing.remember(values, [c.result for c in self.flags])
        for c, var in carried_vars:  # last: a store, or a number, may end the segment
            if var.end is var.start and var.is_tensor:  # written in place: so is the outer tensor
                self._store(var, c.result)
                values[id(var)] = var.outer
            elif not var.is_tensor:
                values[id(var)] = number_result(self.parent, c.result, var.start.kind)
        found = {
            name: tree_unflatten(spec, iter([values[id(s)] for s in carried_vars]))
            for name, (spec, carried_vars) in body.results.items() if carried_vars}
        for contents in body.contents:
            contents.store(found)
        body.variables.set({name: found[name] for name in found.keys() & body.variables.cells})
        body.variables.set(dict.fromkeys(body.variables.private & {*body.variables.cells}, UNBOUND))
        for (container, elements), whole in zip(body.appended.values(), stacked):
            extend_by(container, whole, body.trip_count, self._held(elements[0], values))
        for stored, whole in zip(body.stores, stacked[len(body.appended):]):
            stored.write(whole, body.trip_count)
        body.appended.clear()  # held here, a list could not go before its elements are made
        return self.exit.ended([c.result for c in self.exits], values)

    def _held(self, element: Tensor, values: dict[int, Any]) -> dict[int, Tensor]:
        """Return the elements of a list, by position, where a tensor beside the list is the element
        or has its memory."""
        view = self.body.element_views.get(id(element))
        if view is not None:
            held = view.var.outer if view.before else values[id(view.var)]
            return {0 if view.before else -1: view.of(held)}
        last = self.lasts.get(id(element))
        handed = [] if last is None else handed_on(self.body, element)
        return {} if last is None else {
            -1: last, **{-2 - k: values[id(var)] for k, var in enumerate(handed)}}

    def _end(self, c: Carried, var: CarriedVar, stacked: list[Tensor], others: list[CarriedVar],
             values: dict[int, Any]) -> Tensor:
        """Return what a variable is after the loop; `others` are variables that an iteration ends
        with the same tensor."""
        for other in others:
            if self.body.trip_count is not None or other.outer is var.outer:
                return values[id(other)]
        result = self._tensor(c, var, stacked)
        for other in others[:1]:
            self._may_be(result, values[id(other)], self.count >= 1)
        return result

    def _tensor(self, c: Carried, var: CarriedVar, stacked: list[Tensor]) -> Tensor:
        for element, whole in zip(self.stacked, stacked):
            if element is var.end:  # the variable is the list's last element
                last = self.lasts[id(element)] = whole[self.body.trip_count - 1].clone()
                return last
        self.parent.traced(c.result).memory.strides = var.strides
        if self.region.may_run_zero_times and not var.filled and not self.sharing.tells(var):
            self._may_be(c.result, var.outer, self.count == 0)
        if var.first_of is not None:
            self._may_be(c.result, var.first_of.outer, self.count == 1)
        return c.result

    def _may_be(self, result: Tensor, other: Tensor, flag: Tensor) -> None:
        """Tell the parent that `result` is `other`, memory and all, where `flag` holds."""
        parent = self.parent
        memory, known = parent.traced(result).memory, parent.traced(other).memory
        parent.may_share(memory, known, flag)
        parent.may_be(result, other, flag)


def _advanced(tracer: Tracer, state: Tensor, draws: int) -> Value:
    """Return a generator's state, a (key, draws made) pair, after `draws` further draws."""
    with no_grad():
        after = state + iota(2) * draws if draws else state
    return tracer.traced(after).read()
