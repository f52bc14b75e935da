"""Record of the outside memory that history within branches and loops keeps. That memory must not
be written before a backward.

In: for each of two ways of the program the memory, and the results whose history keeps it. A branch
within a branch keeps it depending on values of the outer one. The check computes these again, once
such memory was written.
Out: the error that eager mode raises if memory was written that the taken way keeps. Where a value
decides that, the check reads it. `cond_vjp.py` and `loop_vjp.py` make the record for their nodes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.saved import Saved, TensorLabel, label_now, modified, version_of
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import View, family_made
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import interpret


class SavePredicate(NamedTuple):
    """Test of values within a region that tells whether history keeps something.

    values     of the region's graph
    holds      the test, given their tensors
    iteration  of a loop in which it must hold; negative: from the end; None: any
    """

    values: tuple[Value, ...]
    holds: Callable[[Sequence[Tensor]], bool]
    iteration: int | None = None


# number of a result -> tests of which one must hold; None: always kept
When = Mapping[int, list[SavePredicate] | None]
Decide = Callable[[Sequence[Tensor], Sequence[SavePredicate]], list[bool]]


class InnerSave(NamedTuple):
    """Record of how history within a region keeps memory.

    when    number of a result whose history does -> tests of which one must hold; None: always
    age     of the latest node that does, which a backward meets first
    tensor  the operand that this node keeps; None: it keeps no operand
    label   of the tensor in errors
    """

    when: When
    age: int
    tensor: Tensor | None
    label: TensorLabel

    def seen_as(self, inner: Any, outer: Tensor) -> Tensor | None:
        """Return `outer` if the node keeps `inner`, which stands for it within the region; else
        None."""
        return outer if self.tensor is inner else None


class OuterSave(NamedTuple):
    """Record of memory that one way keeps.

    memory  within the region; `within`: how history there keeps it
    tensor  outside the region, over the same memory
    itself  the program's own tensor outside, if that is what the node within keeps
    """

    memory: FunctionalStorage
    within: InnerSave
    tensor: Tensor
    itself: Tensor | None = None


class BranchSaves(NamedTuple):
    """Memory that one way keeps. `decide`: function that tells which tests hold, for what the node
    holds."""

    kept: Sequence[OuterSave]
    decide: Decide | None = None


class SaveRecord:
    """Record of memory that is kept if the program takes the record's way.

    always  kept on the other way, too
    flag    tensor that alone decides, if there is one; `sense`: value that it must have
    known   label from the recording
    itself  weak reference to the kept tensor, if that is the program's own
    family  of `itself`, which labels it in errors once it is gone
    """

    __slots__ = ("saved", "when", "always", "flag", "sense", "known", "itself", "family")
    holds_tensors = True

    def __init__(self, kept: OuterSave, always: bool, flag: Tensor | None, sense: bool):
        self.saved, self.when, self.always = Saved(kept.tensor), kept.within.when, always
        self.flag, self.sense = None if any(kept.within.when.values()) else flag, sense
        self.known = kept.within.label
        self.itself = None if kept.itself is None else weakref.ref(kept.itself)
        x = None if kept.itself is kept.tensor else kept.itself
        self.family = None if x is None or type(x._view) is View else family_made(x)

    @property
    def tensor(self) -> Tensor:
        return self.saved.tensor

    def label(self, shape: tuple) -> TensorLabel:
        """Return the label of the tensor in errors. `shape`: of the tensor, as recorded."""
        return label_now(self.itself, self.known, shape, self.family)

    def refuse(self) -> None:
        """Raise RuntimeError: the memory was written."""
        label = label_now(self.itself, self.known, family=self.family)
        raise modified(label, version_of(self.tensor), self.saved.version)


class OuterSaves:
    """Record of what a node keeps on one way, or on two of which the program takes the first if
    `first` is true.

    held  tensors from outside that the node holds; tests are computed from them
    """

    holds_tensors = True

    def __init__(self, branches: Sequence[BranchSaves], first: Tensor | None = None,
                 held: Sequence[Tensor] = ()):
        self.decide, self.first, self.held = [branch.decide for branch in branches], first, held
        always = set.intersection(*({x.memory for x in branch.kept
                                     if None in x.within.when.values()} for branch in branches))
        self.branches = [[SaveRecord(x, x.memory in always, first, number == 0)
                          for x in sorted(branch.kept, key=lambda x: -x.within.age)]
                         for number, branch in enumerate(branches)]

    def records(self, always: bool) -> Iterator[SaveRecord]:
        """Yield all records, or with `always` only those of memory that is kept on every way."""
        for branch in self.branches:
            yield from (record for record in branch if record.always or not always)

    def tested(self, read: Callable[[Tensor], Value]
               ) -> Iterator[tuple[SaveRecord, list[SavePredicate] | None]]:
        """Yield each record and its tests, for the region that holds the node. None: always kept.

        `read` gives the value of a tensor in that region.
        """
        given = [] if self.first is None else [self.first]
        for number, branch in enumerate(self.branches):
            for record in branch:
                tests = None
                if not record.always:
                    values = tuple([read(x) for x in (*given, *self.held)])
                    sense = None if self.first is None else number == 0
                    took = partial(_took, sense, record.when, self.decide[number])
                    tests = [SavePredicate(values, took)]
                yield record, tests

    def intact(self) -> bool:
        return all(record.saved.intact() for record in self.records(False))

    def check(self, arriving: Collection[int]) -> None:
        """Raise RuntimeError if memory was written that a backward from the results `arriving`
        needs, on the way that the program took."""
        written = [[record for record in branch
                    if not record.when.keys().isdisjoint(arriving) and not record.saved.intact()]
                   for branch in self.branches]
        if not any(written):
            return
        certain = [[record for record in branch if _certain(record.when, arriving)]
                   for branch in written]
        # Kept and written on both ways: no need to ask which one was taken.
        if all(certain):
            certain[0][0].refuse()
        if any(x._storage is None for x in (self.first, *self.held) if x is not None):
            tracer: Any = active.tracer
            tracer.undecided()
        number = 0 if self.first is None or bool(self.first) else 1
        for record in written[number]:
            if _needed(record.when, self.decide[number], arriving, self.held):
                record.refuse()


def only_if(within: InnerSave, flag: Value) -> InnerSave:
    """Return the record with a flag of the region as a further condition."""
    when = {number: [SavePredicate((flag, *test.values), partial(_both, test.holds), test.iteration)
                     for test in ([SavePredicate((), all)] if tests is None else tests)]
            for number, tests in within.when.items()}
    return within._replace(when=when)


def _both(holds: Callable[[Sequence[Tensor]], bool], given: Sequence[Tensor]) -> bool:
    return bool(given[0]) and holds(given[1:])


def _took(sense: bool | None, when: When, decide: Decide | None, given: Sequence[Tensor]) -> bool:
    """Return True if the program took a way and it keeps the memory. `given`: tensors of the node,
    first the flag that must be `sense` (None: there is no flag)."""
    if sense is not None:
        first, *given = given
        if bool(first) is not sense:
            return False
    return _needed(when, decide, when, given)


def _needed(when: When, decide: Decide | None, arriving: Collection[int],
            held: Sequence[Tensor]) -> bool:
    """Return True if the taken way keeps the memory for a backward from the results `arriving`."""
    if _certain(when, arriving):
        return True
    assert decide is not None
    with no_grad():
        return any(decide(held, [test for k in when.keys() & arriving for test in when[k] or ()]))


def _certain(when: When, arriving: Collection[int]) -> bool:
    """Return True if the way keeps the memory whatever the values are."""
    return any(when[k] is None for k in when.keys() & arriving)


def sizes_of(graph: Graph) -> dict[str, int]:
    """Return the sizes of the recorded call."""
    return graph.scope.complete(dict(graph.scope.hints))


def in_region(graph: Graph, inputs: Sequence[Value], held: Sequence[Tensor],
              tests: Sequence[SavePredicate]) -> list[bool]:
    """Return which tests hold in a region that runs once. `inputs`: its values for which `held`
    stands."""
    part = extract(graph, graph.name, inputs, [v for test in tests for v in test.values])
    return outcomes(tests, interpret(part, held, symbols=sizes_of(graph)).outputs)


def outcomes(tests: Sequence[SavePredicate], values: Sequence[Tensor]) -> list[bool]:
    """Return which tests hold; `values`: of all tests, in order."""
    rest = iter(values)
    return [test.holds([next(rest) for _ in test.values]) for test in tests]
