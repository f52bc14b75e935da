"""One recorded call: run the user's Python with deferred tensors, compile what it did, make an
entry if it can be replayed.

In: a function, its normalised arguments. Out: the plain function's result, and an `Entry` or the
reasons why there is none.
Called by `jit.CompiledFunction` when no entry serves a call.
"""

from __future__ import annotations

import builtins
import gc
import warnings
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

import tracejit.autodiff.regions  # noqa: F401  installs the gradients of control flow
from tracejit.autodiff.differentiate import Joint, differentiate
from tracejit.capture.aliasing import Memory
from tracejit.capture.guards import Guards, current
from tracejit.capture.host_program import give_up, settle, surrender
from tracejit.capture.reachable import explained
from tracejit.capture.recorder import Recorder
from tracejit.capture.recursion import deeper
from tracejit.capture.results import (
    Effect,
    Recipes,
    Replay,
    SetGrad,
    Unmodelled,
    effects,
    view_recipe,
)
from tracejit.capture.number_places import NumberPlaces, Path, plain, write
from tracejit.capture.number_reader import reader
from tracejit.capture.number_text import number_text
from tracejit.capture.rolled import FollowedList, settle_lists
from tracejit.capture.scalars import RuntimeNumber
from tracejit.capture.sinks import Sinks, forget
from tracejit.capture.signature import Signature
from tracejit.capture.source import original_code
from tracejit.capture.sources import Draws, values_of
from tracejit.capture.state import ABSENT, Place, State
from tracejit.capture.watch import Names, Watcher
from tracejit.config import flags
from tracejit.eager.interrupts import HeldInterrupts
from tracejit.eager.modes import is_grad_enabled
from tracejit.eager.recording import active
from tracejit.eager.tape import grad_fn_of
from tracejit.eager.tensor import Tensor
from tracejit.ir.extract import extract
from tracejit.ir.graph import Graph, Value
from tracejit.ir.verify import GraphError
from tracejit.ops.random import default_generator
from tracejit.ops.record import REGISTRY
from tracejit.ops.types import get_default_dtype
from tracejit.runtime.entry import Backward, Entry, ResultTensor, attach_backward
from tracejit.runtime.executable import ProgramError
from tracejit.runtime.segment import Segment

Compile = Callable[[Graph], Segment]


class CapturedCall:
    """The recording of one call. `run()` returns the result; `entry` and `breaks` tell what became
    of it."""

    def __init__(
        self,
        name: str,
        signature: Signature,
        function: Callable[..., Any],
        invoke: Callable[[tuple], Any],
        arguments: tuple,
        compile: Compile,
        fullgraph: bool,
        static: bool,
        watch: bool,
        varying: frozenset[Path] = frozenset(),
        adapt: Callable[[Any], Any] | None = None,
    ):
        self.function, self.invoke, self.arguments, self.compile = (
            function,
            invoke,
            arguments,
            compile,
        )
        self.watch = watch
        self.recorder = Recorder(name, self._run_segment, fullgraph, static)
        self.state = State(self._unmodelled, self._exempt)
        self.recorder.refresh = self.state.refresh
        self.reads_source = adapt is not None  # what is called gets plain numbers where it must
        if adapt is not None:
            self.recorder.adapt = adapt
        self.numbers = NumberPlaces(
            self.recorder.numbers, self.state, varying, signature.spread
        )
        self.recorder.replayable = watch
        self.sinks = Sinks()
        self.names = signature.names
        self.entry: Entry | None = None
        self.segments: list[Segment] = []
        self.ended = False  # by Ctrl-C, or an exit
        self.inner: set[CodeType] = set()  # code of functions that executed code defines

    @property
    def breaks(self) -> list:
        return self.recorder.breaks

    # -- running ---------------------------------------------------------------------------------
    def run(self) -> Any:
        recorder = self.recorder
        owner = getattr(
            self.function,
            "__self__",
            None if isinstance(self.function, FunctionType) else self.function,
        )
        if self.watch and owner is not None:  # a bound method, a callable object
            self.state.add_root("constant", owner, None, owner, "self")
        values = tuple(self._argument(k, v) for k, v in enumerate(self.arguments))
        modes = (is_grad_enabled(), get_default_dtype())
        seeded = default_generator.array.copy()
        active.recorder = recorder
        try:
            value = self._user_code(values)
            settle_lists(recorder.followed)
            if self.watch and modes != (is_grad_enabled(), get_default_dtype()):
                recorder.note(
                    "grad mode or the default dtype is left changed",
                    "use `with tracejit.no_grad():`",
                )
            drawn = (default_generator.array != seeded).any()
            if self.watch and not recorder.breaks and drawn:
                recorder.note(
                    "the generator was seeded inside the captured function", "seed it outside"
                )
            if self.watch and not recorder.breaks:
                self._make_entry(value)
            recorder.flush()
            settle(recorder.pending)
        except BaseException as error:
            # What ran before it has happened, so make it so.
            self.ended = not isinstance(error, Exception)
            with HeldInterrupts():
                recorder.abandon()
            raise
        finally:
            active.recorder = None
            if self.watch:
                self.numbers.restore(self.arguments, swept=self.entry is None)
                if recorder.found_same:
                    self._put_same(recorder.found_same)
        return plain(_same(value, recorder.found_same) if recorder.found_same else value)

    def _put_same(self, found: list[tuple[Tensor, Tensor]]) -> None:
        """The caller's own tensors where the call stored what turned out to be them."""
        for place in self.state.places:
            try:
                now = current(place, self.arguments)
            except (AttributeError, KeyError, IndexError, TypeError, ValueError):
                continue  # what led to it is gone
            if isinstance(now, Tensor) and (same := _same(now, found)) is not now:
                write(place, same, self.arguments)
            elif isinstance(now, (list, dict)):
                for key, held in enumerate(now) if isinstance(now, list) else list(now.items()):
                    if isinstance(held, Tensor) and (same := _same(held, found)) is not held:
                        now[key] = same

    def _user_code(self, values: tuple) -> Any:
        with deeper():
            if not self.watch:
                return self.invoke(values)
            with Watcher(self._entered, self._foreign, self._library):
                return self.invoke(values)

    def _argument(self, k: int, value: Any) -> Any:
        """Arguments as the function sees them: numbers become runtime scalars."""
        if self.watch:
            self.state.add_root("argument", self, k, value, self.names[k])
            place = self.state.roots["argument", id(self), k]
            if type(value) is float or type(value) is int and (
                self.reads_source or self.numbers.varies(place)
            ):
                return self.numbers.argument(place)
        return value

    def _run_segment(self, graph: Graph, inputs: list[Any]) -> Callable[[], list[Tensor]]:
        """Compile; what is returned runs it."""
        active.recorder = None
        try:
            if self.ended:  # nobody wants to wait for a compiler now
                return lambda: self._unrecorded(lambda: op_by_op(graph, inputs))
            segment = self._compiled(graph)
            self.segments.append(segment)
            bound = segment.bound(inputs)
        finally:
            active.recorder = self.recorder

        def run() -> list[Tensor]:
            try:
                return segment.run(inputs, bound)
            except (ProgramError, GraphError):
                pass  # nothing visible is written yet
            return op_by_op(graph, inputs)  # for the op's own error

        return lambda: self._unrecorded(run)

    def _unrecorded(self, run: Callable[[], list[Tensor]]) -> list[Tensor]:
        active.recorder = None
        try:
            return run()
        finally:
            active.recorder = self.recorder

    def _compiled(self, graph: Graph) -> Segment:
        try:
            return self.compile(graph)
        except Exception as error:
            if flags.verify_passes:  # set in tests: a graph that cannot be compiled is a defect
                raise
            reason = f"could not be compiled ({type(error).__name__}: {error}); it runs op by op"
            warnings.warn(f"tracejit: {self.recorder.name} {reason}", RuntimeWarning, stacklevel=2)
            self.recorder.note(reason, "please report it")
            return Segment(graph, "graph", "fast")

    # -- what the watcher and the state walker report
    # ------------------------------------------------
    def _entered(self, names: Names, frame: FrameType) -> None:
        state = self.state
        saved, active.recorder = active.recorder, None
        try:
            state.mention(names.attributes, names.stored, names.dynamic)
            self.numbers.mention(names)
            self.sinks.entered(original_code(frame.f_code))
            self.inner.update(names.nested)
            for name in names.globals:
                container = frame.f_globals
                if name in container or not hasattr(builtins, name):
                    state.add_root("global", container, name, container.get(name, ABSENT), name)
            self._cells(frame)
            self.numbers.look()
        finally:
            active.recorder = saved

    def _cells(self, frame: FrameType) -> None:
        code = original_code(frame.f_code)
        if self.state.enter(code) or not code.co_freevars:
            return
        function = getattr(self.function, "__func__", self.function)
        if getattr(function, "__code__", None) is code:
            for name, cell in zip(code.co_freevars, function.__closure__ or ()):
                try:
                    self.state.add_root("cell", cell, cell, cell.cell_contents, name)
                except ValueError:  # not assigned yet
                    continue
        elif (
            code not in self.inner
        ):  # else made inside the call: what it closes over was made there too
            self.recorder.seen(f"{code.co_qualname} closes over variables and was found nowhere")

    def _foreign(self, function: Any) -> None:
        if active.recorder is None:  # a segment is compiled or runs: not the user's doing
            return
        if self.recorder.output or self.recorder.pending:
            give_up(self.recorder)
        name = getattr(function, "__qualname__", repr(function))
        module = getattr(function, "__module__", None)
        known = f"{module}.{name}" if module and module != "builtins" else name
        self.recorder.seen(
            f"calls {known}, whose effects and sources cannot be seen",
            "move it out of the captured function",
        )

    def _library(self, frame: FrameType) -> None:
        if self.recorder.pending:
            surrender(self.recorder, frame)

    def _unmodelled(self, path: str, what: str) -> None:
        self.recorder.seen(f"{path}: {what}")

    def _exempt(self, container: Any, key: Any) -> bool:
        return False

    # -- making an entry --------------------------------------------------------------------------
    def _make_entry(self, value: Any) -> None:
        try:
            self.entry = EntryMaker(self, value).make()
        except Unmodelled as reason:
            self.recorder.note(str(reason))
        self.state.release()


class EntryMaker:
    """Turns a finished, unbroken recording into an entry; runs its program on the way."""

    def __init__(self, call: CapturedCall, value: Any):
        self.call, self.recorder, self.state = call, call.recorder, call.state
        self.graph = call.recorder.graph
        self.value = value
        self.given: set[Memory] = set()  # memory whose root tensor some result is

    def make(self) -> Entry:
        recorder, arguments = self.recorder, self.call.arguments
        self.held = self._numbers_at_places()
        needed = [self._found(source) for source in recorder.input_sources().values()]
        grown = self.call.sinks.find(self.state, arguments, needed, self.held)
        forget(self.state, grown)
        recipes = Recipes(self.state)
        returned = recipes.of(self.value)
        changed = effects(self.state, arguments, recipes, self.held, grown)
        changed += self._gradients(recipes)
        changed = [*recipes.host.effects(recorder.output, recipes), *changed]
        changed = [*self._shared(recipes), *changed]
        results = recipes.tensors
        places = {value: self._found(source) for value, source in recorder.input_sources().items()}
        for value, place in places.items():
            value.source = place.text if isinstance(place, Place) else number_text(place)
        self._refuse_unseen(results)
        joint = self._differentiate(results)
        tangents = set() if joint is None else set(joint.tangents)
        inputs = [v for v in self.graph.inputs if v not in tangents]
        guards = Guards(
            self.state,
            [places[v] for v in inputs],
            self._checked(),
            self._is_runtime,
            self._aliases(),
            recorder.numbers.guarded_questions(),
            self._number_place,
        )
        self.numbers = reader(recipes.numbers, self._number_place)
        concrete = [recorder.input_sources()[v] for v in inputs]
        return self._run(joint, inputs, concrete, results, guards, returned, changed)

    def _gradients(self, recipes: Recipes) -> list[Effect]:
        """`.grad` of the caller's tensors, where the call changed it."""
        found: list[Effect] = []
        for item in self.recorder.lifted_tensors():
            tensor = item.tensor
            grad, requires, node = item.before
            if tensor._requires_grad is not requires or grad_fn_of(tensor) is not node:
                raise Unmodelled(
                    "requires_grad or the history of a tensor made outside was changed"
                )
            if tensor._grad is not grad:
                found.append(SetGrad(self._place(tensor), recipes.of(tensor._grad)))
        return found

    def _found(self, source: Any) -> Place | RuntimeNumber:
        """What a graph input is on replay: what is at a place, or an expression of numbers."""
        return source if isinstance(source, RuntimeNumber) else self._place(source)

    def _place(self, source: Any) -> Place:
        """Where a graph input is found on replay."""
        if isinstance(source, Tensor):
            if id(source) in self.recorder.constants:
                return Place(None, "constant", source, source, "a constant")
            found = self.state.place_of(source) or self._grad_place(source)
            if found is None:
                raise Unmodelled(
                    "a tensor is read that was found through no argument, global, closure or "
                    "attribute"
                )
            return found
        if isinstance(source, Draws):
            generator = source.generator
            return self.state.place_of(generator) or Place(
                None, "constant", generator, generator, "generator"
            )
        raise TypeError(f"{source!r} is no source of a graph input")

    def _number_place(self, number: Any) -> Place:
        """Where a runtime number that is no expression is found."""
        if isinstance(number.source, Place):
            return number.source
        container, key = number.source
        owner = self.state.place_of(container)
        if owner is None:
            raise Unmodelled(f"the number {key!r} is read from a container that was found nowhere")
        place = owner.children.get(("item", key))
        if place is None:
            raise Unmodelled(f"the number {owner.text}[{key!r}] cannot be found again")
        return place

    def _numbers_at_places(self) -> dict[int, RuntimeNumber]:
        """The runtime numbers that stand for what is at a place, by the place's id."""
        held = dict(self.call.numbers.roots)
        for number in self.recorder.numbers.stored.values():
            held[id(self._number_place(number))] = number
        return held

    def _grad_place(self, tensor: Tensor) -> Place | None:
        for place in self.state.places:
            if place.kind == "tensor" and place.value._grad is tensor:
                return Place(place, "grad", None, tensor, f"{place.text}.grad")
        for item in self.recorder.lifted_tensors():
            if item.before[0] is tensor:
                owner = self.state.place_of(item.tensor)
                return owner and Place(owner, "grad", None, tensor, f"{owner.text}.grad")
        return None

    def _checked(self) -> list[Place]:
        """Places guarded beside the state: gradients whose presence was read."""
        found = []
        for tensor, grad in self.recorder.grads_read:
            owner = self.state.place_of(tensor)
            if owner is None:
                raise Unmodelled("the gradient of a tensor that was found nowhere is read")
            found.append(Place(owner, "grad", None, grad, f"{owner.text}.grad"))
        return found

    def _is_runtime(self, place: Place) -> bool:
        """Whether the number at this place may change from call to call."""
        number = self.held.get(id(place))
        return number is not None and not self.recorder.numbers.is_asked(number)

    def _aliases(self) -> list[tuple[Place, Place]]:
        """Pairs of places at which the program expects the same tensor, or the same memory."""
        lifted = {id(item.tensor): item for item in self.recorder.lifted_tensors()}
        pairs = [(a, b) for a, b in self.state.repeated if id(a.value) in lifted]
        first: dict[Value, Any] = {}
        for item in lifted.values():
            other = first.setdefault(item.value, item)
            if other is not item:
                pairs.append((self._place(item.tensor), self._place(other.tensor)))
        return pairs

    def _shared(self, recipes: Recipes) -> list[Effect]:
        """Results that are a tensor of the caller's if a value of the program says so."""
        found: list[Effect] = []
        for tensor, owner, flag in self.recorder.sharing.of_results(list(recipes.tensors)):
            numbers = {id(t): k for k, t in enumerate(recipes.tensors)}
            same = numbers.get(id(owner))
            place = self._place(owner) if same is None else same
            found.append(_replace_if(numbers[id(tensor)], place, recipes.of(flag)))
        return found

    def _refuse_unseen(self, results: list[Tensor]) -> None:
        """Tensors made here that somebody holds where no replay could put them."""
        if self._unseen(results):
            gc.collect()
            if not self._unseen(results):
                return
            raise Unmodelled(
                "a tensor made in the call is kept somewhere its effects cannot be seen"
            )

    def _unseen(self, results: list[Tensor]) -> bool:
        recorder = self.recorder
        numbers = [n for n in (r() for r in recorder.loop_numbers) if n is not None]
        held = [t for n in numbers for t in n.tensors()]
        known = explained([*results, *recorder.sharing.flags(), *held])
        return any(id(t) not in known for t in recorder.alive())

    def _differentiate(self, results: list[Tensor]) -> Joint | None:
        tracked = [
            t
            for t in results
            if t._requires_grad and grad_fn_of(t) is not None and t._traced is not None
        ]
        wrt = [item.tensor for item in self.recorder.lifted_tensors() if item.tensor._requires_grad]
        if not tracked or not wrt:
            return None
        return differentiate(self.recorder, tracked, wrt)

    def _run(
        self,
        joint: Joint | None,
        inputs: list[Value],
        concrete: list[Any],
        results: list[Tensor],
        guards: Guards,
        returned: Any,
        changed: list[Effect],
    ) -> Entry:
        recorder = self.recorder
        fresh = list(
            dict.fromkeys(t._traced.memory for t in results if t._traced.memory.owner is None)
        )
        roots_of: dict[Memory, int] = {m: k for k, m in enumerate(fresh)}
        tracked = {} if joint is None else {id(t): k for k, t in enumerate(joint.outputs)}
        described = [self._describe(t, roots_of, tracked) for t in results]
        written = recorder.written()
        primal = {v: k for k, v in enumerate(inputs)}
        draws = [(primal[d.value], d.count) for d in recorder.generators.values()]
        extra, backward = self._backward(joint, primal, len(fresh))
        writes = [(primal[m.input], m.generation) for m in written]
        roots = recorder.finish(inputs, concrete, results, fresh, extra)
        segment = self.call.segments[-1]
        entry = Entry(
            guards, segment, described, returned, changed, writes, draws, backward, self.numbers
        )
        if backward is not None and joint is not None:
            values = values_of(concrete)
            attach_backward(backward, values, roots, joint.outputs, segment.bound(values))
        return entry

    def _describe(
        self, tensor: Tensor, roots: dict[Memory, int], tracked: dict[int, int]
    ) -> ResultTensor:
        traced = tensor._traced
        memory = traced.memory
        root: Any
        if memory.owner is None:
            root = roots[memory]
        else:
            place = self._place(memory.owner)
            root = lambda replay: current(place, replay.arguments)  # noqa: E731
        history = (
            grad_fn_of(tensor) is not None and id(tensor) not in tracked and tensor._requires_grad
        )
        leaf = tensor._requires_grad and grad_fn_of(tensor) is None
        # Two results over the same memory are two tensors: only one can be the root itself.
        viewed = bool(traced.views) or memory.owner is not None or memory in self.given
        self.given.add(memory)
        return ResultTensor(
            root, view_recipe(traced), viewed, history, leaf, tracked.get(id(tensor), -1)
        )

    @staticmethod
    def _saved(
        saved: list[Value], primal: dict[Value, int], first: int, written: set[Value]
    ) -> tuple[list[Value], list[tuple[str, int]]]:
        """Which saved values become further outputs, and where each is found after the run."""
        extra: list[Value] = []
        found: list[tuple[str, int]] = []
        for value in saved:
            if value in primal and value not in written:
                found.append(("input", primal[value]))
            else:
                found.append(("output", first + len(extra)))
                extra.append(
                    value.graph.append(REGISTRY["clone"], (value,), {})
                    if value in primal
                    else value
                )
        return extra, found

    def _backward(
        self, joint: Joint | None, primal: dict[Value, int], first: int
    ) -> tuple[list[Value], Backward | None]:
        """Outputs to keep for the backward, numbered from `first`, and the backward."""
        if joint is None:
            return [], None
        real = [k for k, g in enumerate(joint.grads) if g is not None]
        grads = [real.index(k) if k in real else None for k in range(len(joint.grads))]
        whole = extract(
            joint.graph,
            f"{joint.graph.name}_joint",
            joint.graph.inputs,
            [g for g in joint.grads if g is not None],
        )
        read = {v for node in whole.nodes for v in node.operand_values()}
        before = [
            v
            for v, again in zip(joint.graph.inputs, whole.inputs)
            if v in joint.written and again in read
        ]
        kept = list(dict.fromkeys([*joint.saved, *before]))
        extra, places = self._saved(kept, primal, first, joint.written)
        place = dict(zip(kept, places))
        saved = [place[v] for v in joint.saved]
        originals = [(primal[v], place[v][1]) for v in before]
        number = {v: k for k, v in enumerate(joint.graph.inputs)}
        tangents = [number[t] for t in joint.tangents]
        wrt = [primal[self.recorder.lifted[id(x)].value] for x in joint.inputs]
        plan = Backward(
            whole,
            len(primal),
            tangents,
            grads,
            wrt,
            saved,
            originals,
            joint.reached,
            joint.groups,
            joint.backward,
            self.call.compile,
        )
        return extra, plan


def _same(value: Any, found: list[tuple[Tensor, Tensor]]) -> Any:
    """`value` with the caller's own tensors where a result turned out to be one."""
    if isinstance(value, Tensor):
        return next((owner for tensor, owner in found if tensor is value), value)
    if type(value) in (list, tuple):
        return type(value)([_same(v, found) for v in value])
    return {k: _same(v, found) for k, v in value.items()} if type(value) is dict else value


def _replace_if(number: int, place: Place | int, flag: Any) -> Effect:
    """Result `number` is what is at a place, or an earlier result, if the flag holds."""

    def replace(replay: Replay) -> None:
        if bool(flag(replay).array):
            found = type(place) is int
            same = replay.tensors[place] if found else current(place, replay.arguments)
            replay.tensors[number] = same

    return replace


def op_by_op(graph: Graph, inputs: list[Any]) -> list[Tensor]:
    """Interpret a graph; what an op raises is raised as eager mode would."""
    segment = Segment(graph, "graph", "fast")
    try:
        return segment.run(inputs, segment.bound(inputs))
    except GraphError as error:
        raise (error.__cause__ or error) from None
