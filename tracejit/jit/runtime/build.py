"""Builder of replay entries from finished recordings: guards, a program, specs for results and
effects.

In: a recorded call without a break, and the value it returned. Out: a `CacheEntry`. The builder
runs the program once, which computes the call's deferred tensors. Raises `NotCacheable` where a
replay could not do what the call did. Called by `runtime.session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tracejit.jit.autodiff.cond_vjp  # noqa: F401  installs the gradients of control flow
from tracejit.core.eager.nodes import AccumulateGrad
from tracejit.core.eager.origins import NO_GRAD
from tracejit.core.eager.tape import grad_fn_of, refresh
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import AliasFamily, View, counting_family, family_of
from tracejit.jit.autodiff.differentiate import JointGraph, differentiate
from tracejit.jit.autodiff.reach import extras_behind, is_freed, kept, leaves
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.append_only import forget
from tracejit.jit.capture.deferred_warnings import must_be_over
from tracejit.jit.capture.epilogue import (
    Effect,
    EpilogueBuilder,
    NotCacheable,
    OutputRef,
    OutputSpec,
    ReplayFrame,
    SetGrad,
    effects,
    memories,
    plainest,
)
from tracejit.jit.capture.escapes import accounted_tensors, remains
from tracejit.jit.capture.flush import finish
from tracejit.jit.capture.guards import GuardSet, made_in_inference, read_from
from tracejit.jit.capture.inputs import RngInput, tensor_history, values_of
from tracejit.jit.capture.known_contents import KnownContents
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.number_reader import reader
from tracejit.jit.capture.number_text import number_text
from tracejit.jit.capture.scalars import SymNumber
from tracejit.jit.capture.storage import UNKNOWN, FunctionalStorage
from tracejit.jit.ir.graph import Value
from tracejit.jit.runtime.attach_backward import attach_backward
from tracejit.jit.runtime.backward_maker import backward_plan
from tracejit.jit.runtime.call_nodes import FreedBackward, NoGradient, record_no_gradient
from tracejit.jit.runtime.entry import CacheEntry
from tracejit.jit.runtime.outputs import CreationMeta, Lines, ResultTensor

if TYPE_CHECKING:
    from tracejit.jit.runtime.session import CaptureSession


class CacheEntryBuilder:
    """Builder of the entry of one finished, unbroken recording. It runs the program on the way."""

    def __init__(self, call: CaptureSession, value: Any):
        self.call, self.tracer, self.state = call, call.tracer, call.state
        self.graph = call.tracer.graph
        self.value = value
        self.given: set[FunctionalStorage] = set()  # memory whose root tensor is a result
        # (memory of a result, the memory that it is if the flag holds, flag)
        self.storage_choices: list[
            tuple[FunctionalStorage, FunctionalStorage | OutputSpec, OutputSpec]
        ] = []
        self.families: dict[int, int] = {}  # id of a `.data` family -> number of its first result
        self.grads: dict[int, Source] | None = None  # id of a gradient -> source of its tensor
        # (memory, flag: the program wrote it)
        self.conditional_versions: list[tuple[FunctionalStorage, OutputSpec]] = []

    def make(self) -> CacheEntry | None:
        """Return the entry, or None if only the recording of the next call can give one."""
        tracer, arguments = self.tracer, self.call.arguments
        if self.call.may_fill and self.state.kept.filled():
            self.call.filled = True
            return None
        for name in self.state.kept.others(tracer.identities.asked):
            raise NotCacheable(f"{name} caches results (functools.lru_cache), and it ran or gave "
                               "an object that may change")
        for owner in tracer.owners:
            if self.state.source_of(owner) is None:
                raise NotCacheable(f"the function uses a {type(owner).__name__} that tracejit "
                                   "cannot find through an argument, global, closure or attribute")
        must_be_over(tracer)
        self._must_stay()
        self.held = self._numbers_at_sources()
        needed = [self._found(origin) for origin in tracer.input_sources().values()]
        grown = self.call.append_only.find(self.state, needed, self.held)
        forget(self.state, grown)
        builder = EpilogueBuilder(self.state, self.graph.scope)
        returned = builder.of(self.value)
        try:
            changed = effects(self.state, arguments, builder, self.held, grown)
        except NotCacheable:  # perhaps an import, or a cache that the next call finds filled
            if not self.call.may_fill or tracer.fullgraph:
                raise
            self.call.filled = True
            return None
        changed += self._gradients(builder) + self._own_gradients(builder)
        changed = [*builder.host.effects(tracer.output, builder), *changed]
        changed = [*self._shared(builder), *changed]
        self.conditional_versions = [(m, builder.of(x))
                                     for m in tracer.written() for _, x in m.conditional_writes]
        results = builder.tensors
        for tensor in results:
            refresh(tensor)  # a later write to its base may have replaced its history
        self.lines = Lines(tracer, results, {memory for memory, _, _ in self.storage_choices})
        self._named()
        self._refuse_unseen(results)
        joint = self._differentiate(results)
        sources = self._named()  # a gradient rule may have read more numbers
        tangents = set() if joint is None else set(joint.tangents)
        inputs = [v for v in self.graph.inputs if v not in tangents]
        guards = GuardSet(
            self.state,
            [sources[v] for v in inputs],
            self._checked(),
            self._is_call_sym,
            [*self._aliases(), *tracer.identities.same(self.state, builder.changed)],
            tracer.sym_env.expression_guards(),
            self._number_source,
            self._distinct(builder.changed, changed),
            tracer.identities.numbered(self.state),
            tracer.offsets_read,
            tracer.views_refused,
        )
        self.numbers = reader(builder.numbers, self._number_source)
        self.sources = builder.sources
        self.call.made_objects = builder.objects
        sources = tracer.input_sources()
        concrete = [sources[v] for v in inputs]
        return self._run(joint, inputs, concrete, results, guards, returned, changed)

    def _contents(self, inputs: dict[Value, int]) -> list[KnownContents]:
        """Return the contents that inputs must have in each replay."""
        known = self.tracer.constant_values
        return [KnownContents(inputs[x.value], self._source_of(x.tensor), known[x.value])
                for x in self.tracer.lifted_tensors() if x.value in self.tracer.contents]

    def _must_stay(self) -> None:
        """Refuse a program that could serve no second call: it writes contents that must stay the
        same."""
        written = [m for m in self.tracer.written() if m.input in self.tracer.contents]
        if written or self.tracer.contents and any(m.overlaps_other for m in self.tracer.written()):
            raise NotCacheable("the function writes a tensor whose values decided what Python did")

    def _named(self) -> dict[Value, Any]:
        """Return the source of each input, and name the graph's inputs after it."""
        found = {v: self._found(origin) for v, origin in self.tracer.input_sources().items()}
        for value, source in found.items():
            value.source = source.text if is_a(source, Source) else number_text(source)
        return found

    def _gradients(self, builder: EpilogueBuilder) -> list[Effect]:
        """Return effects that set `.grad` of the caller's tensors, where the call changed it."""
        known = [(item.tensor, item.before) for item in self.tracer.lifted_tensors()]
        known += [(p.value, p.keys) for p in self.state.objects() if p.kind == "tensor"]
        other = dict(self.tracer.grads_set)
        for tensor, (grad, history) in known:
            now, after = tensor_history(tensor)
            if history != after:
                raise NotCacheable(
                    "the function changes requires_grad, history or hooks of a tensor made outside "
                    "it"
                )
            if now is not grad:
                other[id(tensor)] = tensor
        return [_set_grad(self._source_of(t), builder, t._grad) for t in other.values()]

    @staticmethod
    def _own_gradients(builder: EpilogueBuilder) -> list[Effect]:
        """Return effects that set `.grad` of leaves that the call made and gives away."""
        found: list[Effect] = []
        for number, tensor in enumerate(builder.tensors):  # it grows: gradients become results
            if tensor._grad is not None:
                if grad_fn_of(tensor) is not None:
                    raise NotCacheable("a result retains its gradient")
                found.append(_set_grad_of(number, builder.of(tensor._grad)))
        return found

    def _found(self, origin: Any) -> Source | SymNumber:
        """Return what gives a graph input on replay: a source, or an expression over the call's
        numbers."""
        return origin if is_a(origin, SymNumber) else self._source_of(origin)

    def _source_of(self, origin: Any) -> Source:
        """Return the source at which a replay finds a graph input."""
        if is_a(origin, Tensor):
            if id(origin) in self.tracer.constants:
                group = id(origin) in self.tracer.groups
                text = "process group" if group else "a constant"
                return Source(None, "constant", origin, origin, text)
            found = self.state.source_of(origin) or self._grad_source(origin)
            if found is None:
                raise NotCacheable(
                    "the function reads a tensor that tracejit cannot find through an argument, "
                    "global, closure or attribute"
                )
            return found
        if is_a(origin, RngInput):
            generator = origin.generator
            return self.state.source_of(generator) or Source(
                None, "constant", generator, generator, "generator"
            )
        raise TypeError(f"{origin!r} is no source of a graph input")

    def _number_source(self, number: Any) -> Source:
        """Return the source of a number of the caller's, whose value may differ in each call."""
        if is_a(number.source, Source):
            return number.source
        if number.source is None:
            raise NotCacheable("the function reads a number that an earlier call left somewhere")
        container, key = number.source
        owner = self.state.source_of(container)
        if owner is None:
            raise NotCacheable(
                f"the function reads the number {key!r} from a container that tracejit cannot find")
        source = owner.children.get(("item", key))
        if source is None:
            raise NotCacheable(f"tracejit cannot find the number {owner.text}[{key!r}] again")
        return source

    def _numbers_at_sources(self) -> dict[int, SymNumber]:
        """Return the `SymNumber`s that stand for the numbers at sources, by the source's id."""
        held = dict(self.call.lifter.roots)
        for number in self.tracer.sym_env.stored.values():
            held[id(self._number_source(number))] = number
        return held

    def _grad_source(self, tensor: Tensor) -> Source | None:
        owner = self._owners_of_grads().get(id(tensor))
        for item in self.tracer.lifted_tensors() if owner is None else ():
            if item.before[0] is tensor:
                owner = self.state.source_of(item.tensor)
                break
        return owner and Source(owner, "grad", None, tensor, f"{owner.text}.grad")

    def _owners_of_grads(self) -> dict[int, Source]:
        """Return the sources of tensors by the id of the tensor that is, or was, their `.grad`."""
        if self.grads is None:
            self.grads = {}
            for source in self.state.sources:
                if source.kind == "tensor" and source.value._grad is not None:
                    self.grads.setdefault(id(source.value._grad), source)
            for item in self.tracer.lifted_tensors():
                owner = None if item.before[0] is None else self.state.source_of(item.tensor)
                if owner is not None:
                    self.grads.setdefault(id(item.before[0]), owner)
        return self.grads

    def _checked(self) -> list[Source]:
        """Return the sources of gradients that the call looked at; guards check them beside the
        state."""
        found = []
        for tensor, grad in self.tracer.grads_read:
            owner = self.state.source_of(tensor)
            if owner is None:
                raise NotCacheable("the function reads the gradient of a tensor that tracejit "
                                   "cannot find")
            found.append(Source(owner, "grad", None, grad, f"{owner.text}.grad"))
        return found

    def _objects(self) -> list[Source]:
        """Return the sources of objects, each object once, and of gradients that the call looked
        at."""
        grads = {id(p.value): p for p in self._checked() if p.kind == "tensor"}
        return [*self.state.objects(),
                *(p for p in grads.values() if self.state.source_of(p.value) is None)]

    def _distinct(self, changed: list[Any], effects: list[Effect]) -> list[Source]:
        """Return the sources of objects that must be different objects on replay."""
        graded = [e.source.value for e in effects if is_a(e, SetGrad)]
        if graded:
            graded += [tensor for tensor, _ in self.tracer.grads_read]
        objects = self._objects()
        return self.tracer.identities.distinct(self.state, objects, changed, graded)

    def _is_call_sym(self, source: Source) -> bool:
        """Return True if the number at this source may change from call to call."""
        number = self.held.get(id(source))
        if number is None or self.call.lifter.read_elsewhere(source):
            return False
        return not self.tracer.sym_env.is_concretized(number)

    def _aliases(self) -> list[tuple[Source, Source]]:
        """Return pairs of sources at which the program expects the same tensor, or the same
        memory."""
        lifted = {id(item.tensor): item for item in self.tracer.lifted_tensors()}
        pairs = list(self.state.repeated)
        grads: dict[int, Source] = {}
        for source in self._checked():
            if source.kind == "tensor":
                other = self.state.source_of(source.value) or grads.get(id(source.value))
                if other is not None:
                    pairs.append((source, other))
                grads.setdefault(id(source.value), source)
        first: dict[Value, Any] = {}
        for item in lifted.values():
            other = first.setdefault(item.value, item)
            if other is not item:
                pairs.append((self._source_of(item.tensor), self._source_of(other.tensor)))
        return pairs

    def _shared(self, builder: EpilogueBuilder) -> list[Effect]:
        """Return effects that replace a result by another tensor if a value of the program says so.

        The other tensor is one of the caller's, or an earlier result. Choices between memories are
        noted in `storage_choices`.
        """
        found: list[Effect] = []
        sharing = self.tracer.sharing
        for leaf in sharing.leaves_of(list(builder.tensors)):
            builder.of(leaf)
        for memory, known, flag in sharing.of_memories(memories(builder.tensors)):
            given = known.input_tensor
            at = known if given is None else builder.before(self._source_of(given))
            self.storage_choices.append((memory, at, builder.of(flag)))
        for tensor, owner, flag in sharing.of_results(list(builder.tensors)):
            numbers = {id(t): k for k, t in enumerate(builder.tensors)}
            same = numbers.get(id(owner))
            other = builder.before(self._source_of(owner)) if same is None else OutputRef(same)
            found.append(_replace_if(numbers[id(tensor)], other, builder.of(flag)))
        return found

    def _refuse_unseen(self, results: list[Tensor]) -> None:
        """Refuse if user code holds a tensor of this call where no replay could put one."""
        if remains(lambda: self._unseen(results)):
            raise NotCacheable(
                "the function keeps a tensor somewhere that tracejit cannot see"
            )

    def _unseen(self, results: list[Tensor]) -> bool:
        tracer = self.tracer
        numbers = [n for n in (r() for r in tracer.loop_numbers) if n is not None]
        held = [t for n in numbers for t in n.tensors()]
        known = accounted_tensors(
            [*results, *tracer.sharing.flags(), *tracer.sharing.leaves, *held])
        return any(id(t) not in known for t in tracer.alive())

    def _only_to(self, own: list[Any], result: Any) -> bool:
        """Return True if the history of a result leads to leaves that the call made, and nowhere
        else."""
        ends = leaves([result], self.tracer.first_node) if grad_fn_of(result) is not None else ()
        found = [n.variable if type(n) is AccumulateGrad else None for n in ends]
        return bool(found) and all(any(x is t for t in own) for x in found)

    def _differentiate(self, results: list[Tensor]) -> JointGraph | None:
        tracked = [
            t
            for t in results
            if t._requires_grad and grad_fn_of(t) is not None and t._traced is not None
            and not is_freed(t, self.tracer.first_node) and not self.lines.shares(t)
            and leaves([t], self.tracer.first_node)
        ]
        wrt = [item.tensor for item in self.tracer.lifted_tensors() if item.tensor._requires_grad]
        ends = [n for n in leaves(tracked, self.tracer.first_node) if type(n) is AccumulateGrad]
        own = [n.variable for n in ends if n.variable._traced is not None]
        if own and (not wrt or any(x is t or self._only_to(own, t) for x in own for t in results)):
            raise NotCacheable("backward() from a result may reach a leaf that the function made")
        if not tracked or not wrt:
            return None
        self._refuse_kept_data(tracked, results)
        return differentiate(self.tracer, tracked, wrt, memories(results))

    def _end(self, result: Tensor) -> type[NoGradient]:
        """Return the class of node that stands for a history of which no backward can be made."""
        first = self.tracer.first_node
        if is_freed(result, first) or leaves([result], first):
            return FreedBackward
        if extras_behind([result], first):
            raise NotCacheable("a result has a hook, and its history reaches no leaf")
        return NoGradient

    def _refuse_kept_data(self, tracked: list[Tensor], results: list[Tensor]) -> None:
        """Refuse a result from `.data` that a later backward needs.

        Such a result counts its own writes, and the backward would not see them.
        """
        own = {counting_family(t) for t in results if not self.tracer.counts_outside(t)} - {None}
        if own and any(counting_family(x) in own
                       for x in kept(tracked, True, self.tracer.first_node)):
            raise NotCacheable("a result is from `.data`, and a later backward() needs its "
                               "present value")

    def _run(
        self,
        joint: JointGraph | None,
        inputs: list[Value],
        concrete: list[Any],
        results: list[Tensor],
        guards: GuardSet,
        returned: Any,
        changed: list[Effect],
    ) -> CacheEntry:
        tracer = self.tracer
        fresh = memories(results)
        roots_of: dict[FunctionalStorage, int] = {m: k for k, m in enumerate(fresh)}
        tracked = {} if joint is None else {id(t): k for k, t in enumerate(joint.outputs)}
        storage_choices = [
            (roots_of[memory], roots_of[other] if is_a(other, FunctionalStorage) else other, flag)
            for memory, other, flag in self.storage_choices
        ]
        strided_outputs = [
            (k, m.strides) for m, k in roots_of.items()
            if m.strides is not None and m.strides is not UNKNOWN
        ]
        self.given.update(memory for memory, _, _ in self.storage_choices)
        self.given.update(fresh[k] for k, _ in strided_outputs)
        self.numbered = {id(t): k for k, t in enumerate(results)}
        described = [self._describe(t, roots_of, tracked) for t in results]
        written = tracer.written()
        primal = {v: k for k, v in enumerate(inputs)}
        rng_advances = [(primal[d.value], d.count) for d in tracer.generators.values()]
        extra: list[Value] = []
        backward = None
        if joint is not None:
            extra, backward = backward_plan(tracer, joint, primal, roots_of, self.call.compile)
        writes = [(primal[m.input], m.mutations - m.uncounted - len(m.conditional_writes))
                  for m in written]
        conditional_versions = [(primal[m.input], flag) for m, flag in self.conditional_versions]
        contents = self._contents(primal)
        placed = [*results, *self.lines.between()]
        scope = tracer.graph.scope  # `finish` starts another graph
        roots = finish(tracer, inputs, concrete, placed, fresh, extra)
        segment = self.call.segments[-1]
        entry = CacheEntry(
            guards, segment, described, plainest(returned), changed, writes, rng_advances, backward,
            self.numbers,
            self.sources,
            [(k, memory.version) for k, memory in enumerate(fresh) if memory.version],
            storage_choices,
            strided_outputs,
            conditional_versions,
            [(primal[m.input], m.data_writes) for m in written if m.data_writes],
            self.state.kept.calls,
            contents,
            {str(guard): guard.where for guard in scope.guards},
        )
        with tracer.paused():
            if backward is not None and joint is not None:
                values = tuple(values_of(concrete))
                attach_backward(backward, values, roots, joint.outputs, segment.bound(values))
            for tensor, found in zip(results, described):
                if found.end is not None:  # the program computed nothing for its history
                    record_no_gradient(tensor, found.end)
            self.lines.renew(entry.made)
        return entry

    def _describe(
        self, tensor: Tensor, roots: dict[FunctionalStorage, int], tracked: dict[int, int]
    ) -> ResultTensor:
        traced = tensor._traced
        memory = traced.memory
        line = self.lines.of(tensor)
        shared = line is not None and line.shared
        known = tracked.get(id(tensor), -1)
        history = tensor._requires_grad and grad_fn_of(tensor) is not None
        found = ResultTensor(
            -1,
            end=self._end(tensor) if history and known < 0 and not shared else None,
            leaf=tensor._requires_grad and not history,
            tracked=known,
        )
        if line is not None:
            found.steps, found.base, found.shared = line.steps(self._numbers), False, shared
            number = self.numbered.get(id(line.parent), -1)
            if number >= 0:
                found.of = number
            else:
                found.root = self._at(line.parent)
            return found
        found.root = roots[memory] if memory.input_tensor is None else self._at(memory.input_tensor)
        found.steps = [(op, self._numbers(operands), attributes, CreationMeta(NO_GRAD, None, 0))
                       for op, operands, attributes in traced.views]
        # Two results over the same memory are two tensors: only one can be the root itself.
        found.alias = memory.input_tensor is not None or memory in self.given
        found.base = type(tensor._view) is not View
        found.inference = made_in_inference(tensor)
        found.counted = self._counted(tensor)
        self.given.add(memory)
        return found

    def _numbers(self, operands: tuple) -> list[int]:
        """Return the numbers of the results that are the further operands of a view."""
        return [self.numbered[id(self.lines.places[v])] for v in operands]

    def _at(self, tensor: Tensor) -> OutputSpec:
        """Return a spec that reads a tensor of the caller's on replay."""
        source = self._source_of(tensor)
        return lambda frame: read_from(source, frame.arguments)

    def _counted(self, tensor: Tensor) -> tuple[int, int] | None:
        """Return the result whose writes a tensor from `.data` counts, or -1 for its own, and their
        number.

        None: the tensor is not from `.data`, or counts with one of the caller's.
        """
        family = tensor._view
        if type(family) is not AliasFamily or family.version is None:
            return None
        given = [item.tensor for item in self.tracer.lifted_tensors()]
        if any(x._view is not None and family_of(x) is family for x in given):
            return None  # one of the caller's, which counts the writes of an alias too
        number = self.numbered[id(tensor)]
        first = self.families.setdefault(id(family), number)
        return (-1 if first == number else first), family.version


def _set_grad(source: Source, builder: EpilogueBuilder, grad: Any) -> Effect:
    return SetGrad(source, builder.before(source), builder.of(grad))


def _set_grad_of(number: int, spec: OutputSpec) -> Effect:
    def set_grad(frame: ReplayFrame) -> None:
        frame.tensors[number]._grad = spec(frame)

    return set_grad


def _replace_if(number: int, other: OutputSpec, flag: OutputSpec) -> Effect:
    """Make an effect that replaces result `number` by what `other` gives if the flag holds."""

    def replace(frame: ReplayFrame) -> None:
        if bool(flag(frame).array):
            frame.tensors[number] = other(frame)

    return replace
