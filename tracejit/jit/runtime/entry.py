"""Replay entry: guards, a compiled segment, and specs for results and effects.

In: the facts of a recorded call, from `build`. Out: `CacheEntry.find(arguments)`, then
`CacheEntry.replay`: the plain function's return value and effects, without any Python of the
user's. Called by `CompiledFunction`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.config import flags
from tracejit.core.eager.interrupts import HeldInterrupts
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.writing import bump_version
from tracejit.core.memory.readers import about_to_write, live
from tracejit.core.memory.storage import readonly
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.epilogue import (
    Effect,
    OutputRef,
    OutputRefs,
    OutputSpec,
    ReplayFrame,
    SetGrad,
)
from tracejit.jit.capture.guard_texts import shown
from tracejit.jit.capture.guards import GuardFailure, GuardSet, read_from
from tracejit.jit.capture.known_contents import OTHER_CONTENTS, KnownContents
from tracejit.jit.capture.materialise import laid_out
from tracejit.jit.capture.memoized_calls import MemoizedCall, MemoizedResults, first_changed
from tracejit.jit.capture.storage import substitute
from tracejit.jit.ir.graph import with_size_names
from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.runtime import native_guard  # noqa: F401  installs the comparer
from tracejit.jit.runtime.attach_backward import attach_backward
from tracejit.jit.runtime.backward_plan import BackwardPlan
from tracejit.jit.runtime.compiled_graph import BoundGraph, CompiledGraph
from tracejit.jit.runtime.launch import outputs_after, plan_of
from tracejit.jit.runtime.nan_check import NanFound
from tracejit.jit.runtime.native_start import NOTHING, PostRun
from tracejit.jit.runtime.no_alias import NoAliasCheck
from tracejit.jit.runtime.outputs import ResultTensor, follow, order_of


class ReplayFailed(Exception):
    """Error of a program that stopped before it wrote anything visible. The caller runs the plain
    function for its own error."""


# Where a module holds what the user's code calls `module.weight`.
_HELD = re.compile(r"\._(?:parameters|buffers|modules)\['(\w+)'\]")


_TURNS = 4  # calls of one kind, after which native code serves the next
_PAID = 64  # calls after which a native replay has paid


@dataclass
class CacheEntry:
    """Captured program of a function, and what a replay does around it."""

    guards: GuardSet
    segment: CompiledGraph
    results: list[ResultTensor]
    returned: OutputSpec
    effects: list[Effect]
    input_mutations: list[tuple[int, int]]  # (graph input, writes): memory the program writes
    rng_advances: list[tuple[int, int]]  # (graph input, draws): generators to advance
    backward: BackwardPlan | None = None
    numbers: Callable[[tuple], tuple] | None = None  # arguments -> the numbers that specs read
    sources: list[Source] = field(default_factory=list)  # what specs read as `before`
    versions: list[tuple[int, int]] = field(default_factory=list)  # (output, writes to a result)
    # (output, what stands in its place if the flag holds, flag)
    storage_choices: Sequence[tuple[int, int | OutputSpec, OutputSpec]] = ()
    strided_outputs: Sequence[tuple[int, tuple]] = ()  # (output, its strides)
    # (graph input, flag: the program wrote its memory)
    conditional_versions: Sequence[tuple[int, OutputSpec]] = ()
    # (graph input, writes): a tensor from `.data`, whose family counts what the program writes
    data_versions: Sequence[tuple[int, int]] = ()
    kept: Sequence[MemoizedCall | MemoizedResults] = ()  # cached calls whose results it depends on
    contents: Sequence[KnownContents] = ()  # contents of inputs that the program depends on
    # the user's lines of the size guards, by their text: equal functions share `segment`
    lines: dict[str, str] = field(default_factory=dict)
    catches: bool = False  # the function may catch an error that the program raises
    # the first item of `kept` or `contents` that differed in the last `find`
    other: MemoizedCall | MemoizedResults | KnownContents | None = None
    turns: int = _TURNS  # calls through Python, after which native code shall serve the next
    patience: int = _TURNS  # how many those are
    # last call's key, snapshot and binding
    last: tuple[Any, Any, BoundGraph] | None = None

    def __post_init__(self) -> None:
        self.roots: list[int] = [r.own_output() for r in self.results]
        self.made: list[int] = order_of(self.results)  # results that need further work, in order
        self.shared = [(k, len(r.steps)) for k in self.made if (r := self.results[k]).shared]
        around = (self.input_mutations, self.rng_advances, self.effects, self.backward,
                  self.numbers, self.versions, self.storage_choices, self.strided_outputs,
                  self.conditional_versions, self.data_versions)
        self.bare = -1 not in self.roots and not any(around)
        self.only = self.returned.number if type(self.returned) is OutputRef else -1
        self.fast_guards = self.guards.fast_guards
        number = {id(source): n for n, (source, _) in enumerate(self.fast_guards.inputs)}
        self.grads: list[tuple[int, int]] = []  # (graph input, result): its new gradient
        self.others: list[Effect] = []
        for effect in self.effects:
            n = number.get(id(effect.source)) if isinstance(effect, SetGrad) else None
            if n is not None and isinstance(effect.spec, OutputRef):  # type: ignore[attr-defined]
                self.grads.append((n, effect.spec.number))  # type: ignore[attr-defined]
            else:
                self.others.append(effect)
        # The guards have read the inputs already: their number stands for the source.
        self.looks: list[int | Source] = [
            number.get(id(source), source) if source.kind == "tensor" else source
            for source in self.sources
        ]
        self.exclusive = bool(self.input_mutations) or len(self.rng_advances) > 1
        # The native call may also do what follows the run, if that is versions and gradients only.
        grads = [(n, self.roots[k]) for n, k in self.grads]
        changes = tuple(self.input_mutations), tuple(grads)
        self.post_run = PostRun(*changes) if any(changes) else NOTHING
        self.whole = (
            not (self.rng_advances or self.others or self.storage_choices or self.strided_outputs
                 or self.data_versions)
            and all(k >= 0 for _, k in grads)
            and all(type(result.root) is int for result in self.results)
        )
        # Then the replay may only have to make one result and return it.
        alone = not (
            self.numbers or self.versions or self.storage_choices or self.strided_outputs
            or self.conditional_versions)
        single = self.results[self.only] if alone and self.only >= 0 and not self.backward else None
        self.single = single if single is not None and single.stands_alone() else None
        # Or to return the program's outputs as they come: one, or a container of them.
        returned = self.returned
        self.root = self.roots[self.only] if self.only >= 0 else -1
        self.make: Callable[[list], Any] | None = None
        self.row: list[int] = []
        if type(returned) is OutputRefs:
            self.make, self.row = returned.make, [self.roots[k] for k in returned.numbers]
        alone = alone and not self.made and (self.only >= 0 or self.make is not None)
        # Then a replay launches the program, perhaps attaches history, and is done.
        self.simple = self.whole and self.post_run is NOTHING and alone
        at = {r.tracked: k for k, r in enumerate(self.results) if r.tracked >= 0}
        self.tracked = [at[n] for n in range(len(at))]  # the results that have a history
        # In simple entries: the tracked results are the program's first outputs.
        self.leading = [self.roots[k] for k in self.tracked] == [*range(len(at))]
        self.plans: dict[BoundGraph, tuple | None] = {}
        # Places at which written inputs overlapped no others. That holds for calls with the binding
        # of the last one, until some memory becomes read-only.
        self.no_alias = NoAliasCheck([number for number, _ in self.input_mutations])
        self.no_alias_at: tuple[Any, int, set[tuple | None]] = (None, 0, set())
        self.fast_guards.placed = bool(self.input_mutations)

    def find(self, arguments: tuple) -> tuple[tuple, BoundGraph, Any] | None:
        """Return (graph inputs, their binding, the snapshot that knows their addresses or None).

        None: this entry does not serve the call.
        """
        snapshot = self.fast_guards.snapshot
        found = None if snapshot is None else self.fast_guards.fast(arguments, snapshot)  # type: ignore[misc]
        if found is not None:
            snapshot.hits += 1  # type: ignore[union-attr]
        else:
            found = self.guards.find(arguments)
            if type(found) is int:
                return None
        inputs, key, snapshot, places = found
        last = self.last
        bound: BoundGraph | None
        if last is not None and last[1] is snapshot and last[0] == key:
            bound = last[2]
        else:
            bound = self.segment.bind(inputs)
            if bound is None:
                return None
            self.last = last = key, snapshot, bound
        if self.exclusive:
            like, count, known = self.no_alias_at
            if like is not last or places not in known or count != readonly.count:
                if not self.exclusively(inputs, snapshot):
                    return None
                self._note_no_alias(places, last)
        if self.contents:
            self.other = next((c for c in self.contents if not c.holds(inputs)), None)
            if self.other is not None:
                return None
        if self.kept:
            self.other = first_changed(self.kept)
            if self.other is not None:
                return None
        return inputs, bound, snapshot

    def wait(self, served: int) -> None:
        """Wait with the next native replay: the last one has served so many calls."""
        self.patience = _TURNS if served >= _PAID else min(2 * self.patience, 1 << 20)
        self.turns = self.patience

    def exclusively(self, inputs: Sequence[Any], snapshot: Any = None) -> bool:
        """Return True if memory this program writes overlaps no other input.

        No two generators that the program draws from may be one.
        """
        advances = self.rng_advances
        if len(advances) > 1 and len({id(inputs[n]) for n, _ in advances}) < len(advances):
            return False
        return not self.input_mutations or self.no_alias.holds(inputs, snapshot)

    def _note_no_alias(self, places: tuple | None, last: tuple) -> None:
        if places is None or None in places or len(self.rng_advances) > 1:
            return
        like, count, known = self.no_alias_at
        if like is not last or count != readonly.count or len(known) > 64:
            self.no_alias_at = last, readonly.count, {places}
        else:
            known.add(places)

    def replay(
        self,
        inputs: tuple,
        arguments: tuple,
        bound: BoundGraph,
        snapshot: Any = None,
        held: bool = False,
    ) -> Any:
        """Run natively and return what the plain function would.

        held  True: no signal handler runs during the call. False: if one raises after the program
              ran, `_complete` does the remaining effects first
        """
        direct = bound.direct
        if direct is None:
            if not held and not self.bare:  # many steps follow, between which a handler might raise
                with HeldInterrupts():
                    return self.replay(inputs, arguments, bound, snapshot, True)
        elif self.simple:
            launch, plan = direct
            try:
                roots = launch(inputs, plan)
            except Exception as error:
                if outputs_after(error) is None:
                    raise ReplayFailed from error
                raise
            if self.backward is not None:
                outputs = roots if self.leading else [roots[self.roots[k]] for k in self.tracked]
                attach_backward(self.backward, inputs, roots, outputs, bound, snapshot)
            if self.make is None:
                return roots[self.root]
            return self.make([roots[k] for k in self.row])
        elif self.whole:
            plan = self.plans[bound] if bound in self.plans else self._plan(inputs, bound)
            if plan is not None:
                return self._launch(plan, inputs, arguments, bound, snapshot)
        values: Sequence[Any] = inputs
        numbers = () if self.numbers is None else self.numbers(arguments)
        writes = iter(self.input_mutations)  # an iterator, so that `_complete` does the rest
        roots = frame = None
        done = 0  # effects that are over
        try:
            if self.rng_advances:
                values = self._drawn(inputs, bound)
            if live:
                self._tell(inputs)
            roots = self.segment.run(values, bound, snapshot)
            for number, count in writes:
                inputs[number]._storage.version += count
            before = self._before(inputs, arguments)
            frame = ReplayFrame(arguments, [], bound.sizes, numbers, before)
            self._fill(frame, values, roots, bound, snapshot)
            for number, k in self.grads:
                inputs[number]._grad = frame.tensors[k]
            for effect in self.others:
                effect(frame)
                done = done + 1
            return self.returned(frame)
        except NanFound:  # the user asked for this error: TRACEJIT_CHECK_NANS
            raise
        except BaseException as error:
            with HeldInterrupts():
                if roots is None:
                    after = outputs_after(error)
                    if after is None:
                        self._not_drawn(inputs, values, bound)
                        if isinstance(error, Exception):
                            raise ReplayFailed from error
                        raise
                    roots = after[0]
                if frame is None:
                    before = self._before(inputs, arguments)
                    frame = ReplayFrame(arguments, [], bound.sizes, numbers, before)
                elif not done:
                    frame = ReplayFrame(arguments, [], bound.sizes, numbers, frame.before)
                self._complete(error, inputs, values, writes, roots, bound, frame, done)
            raise

    def _plan(self, inputs: Sequence[Any], bound: BoundGraph) -> tuple | None:
        """Make a launcher whose native call also does what follows the run, and its constants, or
        None."""
        if len(self.plans) > flags.max_bindings:
            self.plans.clear()
        segment = self.segment
        found = plan_of(segment.executable, bound.binding, inputs, bound.outputs, self.post_run)
        self.plans[bound] = found
        return found

    def _launch(
        self, plan: tuple, inputs: Sequence[Any], arguments: tuple, bound: BoundGraph, snapshot: Any
    ) -> Any:
        """Run and do all effects in one native call; then return the results."""
        numbers = () if self.numbers is None else self.numbers(arguments)
        before = self._before(inputs, arguments) if self.only < 0 else ()
        launch, needed = plan
        if live:
            self._tell(inputs)
        try:
            roots = launch(inputs, needed)
        except BaseException as error:
            with HeldInterrupts():
                after = outputs_after(error)
                if after is None:
                    if isinstance(error, Exception):
                        raise ReplayFailed from error
                    raise
                if not after[1]:
                    for number, count in self.post_run.input_mutations:
                        inputs[number]._storage.version += count
                    for number, k in self.post_run.grads:
                        inputs[number]._grad = after[0][k]
            raise
        if self.single is not None:
            return self.single.make([], roots, bound.sizes, None)
        frame = ReplayFrame(arguments, [], bound.sizes, numbers, before)
        self._fill(frame, inputs, roots, bound, snapshot)
        return self.returned(frame)

    def _tell(self, inputs: Sequence[Any]) -> None:
        """Tell the readers of memory before the program writes it."""
        for number, _ in self.input_mutations:
            about_to_write(inputs[number]._storage)

    def _before(self, inputs: Sequence[Any], arguments: tuple) -> list[Any]:
        """Return the objects at the sources that specs read, before effects change what is
        there."""
        return [inputs[at] if type(at) is int else read_from(at, arguments) for at in self.looks]  # type: ignore[arg-type]

    def _fill(
        self, frame: ReplayFrame, values: Sequence[Any], roots: list[Tensor], bound: BoundGraph,
        snapshot: Any = None,
    ) -> None:
        """Fill the frame with the results, made from the program's outputs."""
        tensors = frame.tensors
        if self.strided_outputs:
            roots = list(roots)
            for k, strides in self.strided_outputs:
                roots[k] = laid_out(roots[k], substitute(strides, bound.sizes))
        for k, count in self.versions:
            roots[k]._storage.version = count
        if self.data_versions:
            self._count_data(values)
        if self.conditional_versions:
            self._count_conditional(frame, values, roots)
        if self.storage_choices:
            roots = self._choose_storages(frame, roots)
        tensors += [roots[k] if k >= 0 else None for k in self.roots]
        for k in self.made:
            tensors[k] = self.results[k].make(tensors, roots, bound.sizes, frame)
        if self.backward is not None:
            outputs = [tensors[k] for k in self.tracked]
            attach_backward(self.backward, tuple(values), roots, outputs, bound, snapshot)
        for k, steps in self.shared:
            follow(tensors[k], steps)

    def _count_conditional(self, frame: ReplayFrame, values: Sequence[Any],
                           roots: list[Tensor]) -> None:
        """Advance the version of each input that the program wrote according to its flag."""
        frame.tensors[:] = [roots[k] if k >= 0 else None for k in self.roots]
        for number, flag in self.conditional_versions:
            values[number]._storage.version += bool(flag(frame).array)
        frame.tensors.clear()

    def _count_data(self, values: Sequence[Any]) -> None:
        """Count the program's writes in families of the caller's `.data` tensors."""
        for number, count in self.data_versions:
            bump_version(values[number], count)

    def _choose_storages(self, frame: ReplayFrame, roots: list[Tensor]) -> list[Tensor]:
        """Return the outputs, with the caller's tensor or another output in place of those whose
        flag says so."""
        frame.tensors[:] = [roots[k] if k >= 0 else None for k in self.roots]  # flags among them
        places = list(roots)
        for number, other, flag in self.storage_choices:
            if flag(frame).array:
                places[number] = places[other] if type(other) is int else other(frame)  # type: ignore[operator]
        frame.tensors.clear()
        return places

    def _complete(
        self,
        error: BaseException,
        inputs: Sequence[Any],
        values: Sequence[Any],
        writes: Iterator[tuple[int, int]],
        roots: list[Tensor],
        bound: BoundGraph,
        frame: ReplayFrame,
        done: int,
    ) -> None:
        """Do the rest of what follows the program's run, after a signal's handler raised in the
        middle.

        Wherever a handler may be called, each part is done, not begun, or may be done again.
        """
        for number, count in writes:
            inputs[number]._storage.version += count
        if not done:
            self._fill(frame, values, roots, bound)
            for number, k in self.grads:
                inputs[number]._grad = frame.tensors[k]
        if done < len(self.others) and entered(error, self.others[done]):
            if isinstance(error, Exception):  # the effect itself raised
                return
            done += getattr(self.others[done], "shows", False)  # people saw it: not twice
        for effect in self.others[done:]:
            effect(frame)

    def concrete(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the inputs with generators replaced by a copy of their state."""
        values = list(inputs)
        for number, _ in self.rng_advances:
            values[number] = values[number].array.copy()
        return values

    def _drawn(self, inputs: Sequence[Any], bound: BoundGraph) -> Sequence[Any]:
        """Return the inputs with generators replaced by their state, and advance the generators.

        They advance before the run, so that no other thread draws the same numbers.
        """
        values = list(inputs)
        for number, draws in self.rng_advances:
            values[number] = inputs[number].take(evaluate(draws, bound.sizes))
        return values

    def _not_drawn(self, inputs: Sequence[Any], values: Sequence[Any], bound: BoundGraph) -> None:
        """Give the drawn numbers back to the generators: the program did not run."""
        for number, draws in self.rng_advances if values is not inputs else ():
            inputs[number].give_back(values[number], evaluate(draws, bound.sizes))

    def size_names(self) -> dict[str, str]:
        """Return each size symbol as the user writes it: `x.shape[1]`."""
        texts = self.guards.input_texts
        names = {}
        for symbol, (kind, number, dimension) in self.segment.graph.symbol_sources.items():
            text = texts[number] if number < len(texts) and texts[number] else f"in{number}"
            of = {"number": "", "size": f".shape[{dimension}]"}.get(kind, f".stride({dimension})")
            names[symbol] = _HELD.sub(r".\1", text) + of
        return names

    def named(self, sizes: Any) -> str:
        """Return the text of a size or a guard with sizes as the user writes them."""
        return with_size_names(sizes, self.size_names())

    def guard_failure(self, arguments: tuple) -> GuardFailure:
        """Return the reason why this entry does not serve a call."""
        found = self.guards.check(arguments)
        if type(found) is int:
            return self.guards.explain(found, arguments)
        inputs, *_ = found
        guard = self.segment.failing_guard(inputs)
        if guard is not None:
            values = self.segment.sizes(inputs)
            where = self.lines.get(str(guard))
            return GuardFailure(
                f"size {self.named(guard.left)}" + (f" at {where}" if where else ""),
                self.named(guard),
                f"{evaluate(guard.left, values)} and {evaluate(guard.right, values)}",
            )
        if len({id(inputs[n]) for n, _ in self.rng_advances}) < len(self.rng_advances):
            return GuardFailure("the generators", "different ones", "one and the same")
        if self.other is not None:
            what = OTHER_CONTENTS if type(self.other) is KnownContents else "another result"
            return GuardFailure(self.other.name, shown(self.other.answer), what)
        return GuardFailure(
            "memory of the inputs",
            "disjoint and writable",
            "overlapping or read-only, and the program writes some of it",
        )


def entered(error: BaseException, effect: Effect) -> bool:
    """Return True if an exception was raised inside an effect."""
    code = getattr(effect, "__code__", None) or type(effect).__call__.__code__
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace is not None

