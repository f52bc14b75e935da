"""Memory that is shared if a value says so: after `if c: y = x * 2 else: y = x`, y may be x.

In: pairs of memory, and of tensors, and the flag under which they are one, from branches and loops;
writes to either. Out: a write to one reaches the other where the flag holds. When a segment ends,
the pairs tell which results are the caller's own tensors. Called by the tracer.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.nodes import edge_of, grad_fn_of, reaches
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import View, canonical, family_of, stand_for, standing_for
from tracejit.core.ops.pointwise import where
from tracejit.core.ops.shapes import known_same_shape
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.storage import FunctionalStorage

Pair = tuple[Any, Any, Tensor]  # (younger, older, flag under which they are one)


class Pairs:
    """Pairs of things that may be one. Keeps only the flags alive."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[int, int], tuple[weakref.ref, weakref.ref, Tensor]] = {}  # by id

    def alive(self) -> list[Pair]:
        """Return the pairs of living things, in the order in which the younger ones were made."""
        held = [(key, (a(), b(), flag)) for key, (a, b, flag) in self.pairs.items()]
        left = [(key, now) for key, now in held if now[0] is not None and now[1] is not None]
        if len(left) < len(held):  # dropping a flag may let more things die
            self.pairs = {key: self.pairs[key] for key, _ in left}
        return [now for _, now in left]

    def of(self, one: Any) -> list[tuple[Any, Tensor]]:
        """Return (thing, flag) for all that `one` may be."""
        return [(b if a is one else a, flag) for a, b, flag in self.alive() if one is a or one is b]

    def put(self, new: Any, other: Any, flag: Any) -> None:
        """Note that `new` is `other` if `flag` holds, or a flag known of the pair before."""
        key = id(new), id(other)
        known = self.pairs.get(key)
        if known is not None and known[0]() is new and known[1]() is other:
            either = known[2] | flag  # recorded first: it may drop other pairs
            self.pairs[key] = (*known[:2], either)
            return
        self.pairs.pop(key, None)  # of dead objects with the same ids
        self.pairs[key] = weakref.ref(new), weakref.ref(other), flag


class Sharing:
    """Memory, and tensors, of a recording that may be the same as others.

    Any two that may be the same have a pair, even where a third is between them. Pairs of memory
    that may be shared by two tensors, as by `x` and `x.detach()`, are in `parts` too.
    """

    def __init__(self, tracer: Any):
        self.tracer = tracer
        self.memories, self.tensors, self.parts = Pairs(), Pairs(), Pairs()
        self.leaves: list[Tensor] = []  # made by the call; results may be these

    def partners(self, memory: FunctionalStorage) -> list[tuple[FunctionalStorage, Tensor]]:
        """Return (memory, flag) for memory that may be the same; in a region also for partners
        around it."""
        found = self.memories.of(memory)
        outer = self.tracer.outer_memory(memory)
        if outer is not None:
            around = self.tracer.parent.sharing.partners(outer)
            found += [(self.tracer.inner_memory(other), flag) for other, flag in around]
        return found

    def add(
        self, new: FunctionalStorage, other: FunctionalStorage, flag: Tensor, whole: bool
    ) -> None:
        """Note that memory made just now is `other` if `flag` holds; `whole`: the tensors are one
        then too."""
        if not known_same_shape(new.value.type.shape, other.value.type.shape):
            raise RegionRefused("a result may be a part or a view of another tensor")
        with no_grad():
            for known, same in [*self.partners(other), (other, None)]:
                if known is not new:
                    self.memories.put(new, known, flag if same is None else flag & same)
                    if not whole or same is not None and self.in_part(other, known):
                        self.parts.put(new, known, flag)

    def in_part(self, one: FunctionalStorage, other: FunctionalStorage) -> bool:
        """Return True if two pieces of memory may be one without the tensors being so."""
        if any(found is other for found, _ in self.parts.of(one)):
            return True
        outer = [self.tracer.outer_memory(memory) for memory in (one, other)]
        return None not in outer and self.tracer.parent.sharing.in_part(*outer)

    def written(self, memory: FunctionalStorage, counted: bool) -> None:
        """Pass a write to `memory` on to memory that may be the same.

        `counted`: the versions of that memory count it too, where the write happened and the flag
        holds.
        """
        tracer = self.tracer
        happened = tracer.write_predicate
        with no_grad():
            for other, flag in self.partners(memory):
                new, old = tracer.tensor_of(memory.value), tracer.tensor_of(other.value)
                value = tracer.traced(where(flag, new, old)).read()
                both = flag if happened is True else flag & happened
                other.write(value, counted, tracer.if_asked(other, both))

    def flags(self) -> list[Tensor]:
        """Return all flags in use, and drop those of pairs that are gone."""
        kinds = (self.memories, self.tensors, self.parts)
        return [flag for pairs in kinds for _, _, flag in pairs.alive()]

    def unite(self, roots: dict[FunctionalStorage, Tensor]) -> None:
        """Unite memory that proved to be the same. The program has run; `roots` are the tensors it
        made."""
        for memory, other, flag in self.memories.alive():
            if _holds(flag, roots):
                if other.input_tensor is not None:
                    memory.input_tensor = other.input_tensor
                elif memory in roots and other in roots:
                    counters = memory.version_counter, other.version_counter
                    most = max(counters, key=attrgetter("count"))
                    memory.version_counter = other.version_counter = most
                    roots[memory] = roots[other]

    def identify(self, new: Tensor, other: Tensor, flag: Tensor) -> None:
        """Note that a tensor made just now is the very tensor `other` if `flag` holds."""
        other = canonical(other)
        if other._traced is not None and other._requires_grad and grad_fn_of(other) is None:
            self.leaves.append(other)
        memory = self.tracer.traced(new).memory
        over: dict[FunctionalStorage, set[int]] = {}  # ids of tensors that `new` may be, by memory
        for known, _ in self.tensors.of(new):
            over.setdefault(self.memory_of(known), set()).add(id(known))
        with no_grad():
            for known, same in [*self.twins(other), (other, None)]:
                if known is not new:
                    self.tensors.put(new, known, flag if same is None else flag & same)
                    place = self.memory_of(known)
                    ones = over.setdefault(place, set())
                    ones.add(id(known))
                    if len(ones) > 1:  # `new` may share memory with each of them, and be another
                        self.parts.put(memory, place, flag)

    def memory_of(self, tensor: Tensor) -> FunctionalStorage:
        """Return the memory of a tensor, as the tracer met it: through the tensor or one standing
        for it.

        Written memory that is met again as another tensor would end the segment.
        """
        names = [tensor, *standing_for(tensor)]
        met = next((one for one in names if self.tracer.has_met(one)), tensor)
        return self.tracer.traced(met).memory

    def twins(self, tensor: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return (tensor, flag) for tensors that may be the very same, in the recordings around
        too."""
        parent = self.tracer.parent
        return self.tensors.of(tensor) + ([] if parent is None else parent.sharing.twins(tensor))

    def leaves_of(self, results: list[Tensor]) -> list[Tensor]:
        """Return leaves made by the call which results may be."""
        return [x for x in self.leaves if any(known is r for known, _ in self.tensors.of(x)
                                              for r in results)]

    def of_results(self, results: list[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return (result, other, flag): the result is the other, made outside or an earlier result,
        if the flag holds."""
        wanted = {id(t) for t in results}
        return [(one, same, flag) for one, same, flag in self.tensors.alive()
                if id(one) in wanted and (same._traced is None or id(same) in wanted)]

    def of_memories(
        self, shown: Collection[FunctionalStorage]
    ) -> list[tuple[FunctionalStorage, FunctionalStorage, Tensor]]:
        """Return (memory of results, other, flag): the other is the caller's or an earlier
        result's."""
        return [(one, same, flag) for one, same, flag in self.memories.alive()
                if one in shown and (same.input_tensor is not None or same in shown)]


def _holds(flag: Tensor, roots: dict[FunctionalStorage, Tensor]) -> bool:
    if flag._traced is None:
        return bool(flag.array)
    root = roots.get(flag._traced.memory)
    return root is not None and bool(root.array)


def are_one(tracer: Any, one: Tensor, other: Tensor) -> bool:
    """Return `one is other`; break the graph if a value decides. Raise RegionRefused for loop
    variables."""
    known = canonical(other)
    if any(canonical(tensor) is known for tensor, _ in tracer.sharing.twins(one)):
        tracer.break_graph(one, "a tensor's value decides which tensor a variable is")
    if canonical(one) is canonical(other):
        return True
    around = [one, other, *(t for x in (one, other) for t, _ in tracer.sharing.twins(x))]
    if any(tracer.carries(tensor) for tensor in around):
        raise RegionRefused("it asks if two variables are one tensor")
    return False


def known_as(tracer: Any, tensor: Tensor) -> Tensor:
    """Return the tensor, or the one it proved to be; break the graph if a value decides."""
    twins = [other for other, _ in tracer.sharing.twins(tensor)]
    if any(tracer.carries(x) for x in (tensor, *twins)):
        raise RegionRefused("it asks which tensor a variable is")
    if twins:
        tracer.break_graph(tensor, "a tensor's value decides which tensor a variable is")
    return canonical(tensor)


def matters(tracer: Any, tensor: Tensor, outputs: Sequence[Any]) -> bool:
    """Return True if gradients of `outputs` depend on which of its possible tensors a tensor is.

    They do if they arrive at another one by a way around the tensor, and do not flow from there to
    the tensor. A tensor without gradients always matters.
    """
    if not tensor._requires_grad:
        return True
    here = edge_of(tensor)
    others = [other for other, _ in tracer.sharing.twins(tensor)] + tracer.before(tensor)
    return any(
        reaches(outputs, edge_of(other), here) and not reaches([other], here)
        for other in others if other._requires_grad
    )


def known_ones(tracer: Any, values: Iterable[Any]) -> list[Any]:
    """Return the values, with each tensor replaced by the one it proved to be."""
    return [known_as(tracer, x) if is_a(x, Tensor) else x for x in values]


def may_be_another(tracer: Any, x: Any) -> bool:
    """Return True if a value decides, or decided, which tensor `x` is."""
    if not is_a(x, Tensor):
        return False
    return canonical(x) is not x or tracer.carries(x) or bool(tracer.sharing.twins(x))


def become(tensor: Tensor, other: Tensor, alive: Collection[Tensor]) -> None:
    """Let a concrete tensor that proved to be another one stand for it from now on.

    Views of it among those `alive` become views of the other one's family.
    """
    old = tensor._view
    other.__dict__.update(tensor.__dict__)
    tensor.__dict__ = other.__dict__
    stand_for(tensor, other)
    if old is not None:
        family = old.family if type(old) is View else old
        for view in (view for x in alive for view in _views_to(x)):
            if view.family is family:
                view.family, view.generation = family_of(other), -1


def _views_to(x: Tensor) -> Iterator[View]:
    while type(x._view) is View:
        yield x._view
        x = x._view.parent
