"""Record of what history within branches and loops keeps of tensors outside: none of it may be
written before a backward.

In: for each of two ways the program may take, memory and the results whose history keeps it. What a
branch within a branch keeps depends on values of the outer one. These are computed again where
somebody wrote such memory.
Out: the error that eager mode raises where some was written and that way was taken. Where a value
decides that, the value is needed. `cond_vjp.py` and `loop_vjp.py` make it for their nodes.
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
    """Values that decide, within a region, whether something is kept, and a test of them.
    `iteration`: where the region is a loop's body the iteration it must hold in; None: any."""

    values: tuple[Value, ...]
    holds: Callable[[Sequence[Tensor]], bool]
    iteration: int | None = None


# numbers of results -> one test must hold; None: always
When = Mapping[int, list[SavePredicate] | None]
Decide = Callable[[Sequence[Tensor], Sequence[SavePredicate]], list[bool]]


class InnerSave(NamedTuple):
    """Record of how history within a region keeps memory.

    when    the results whose history does, and when
    age     of the latest node that does: a backward meets it first
    tensor  what that node keeps, if it is an operand; `label`: what an error says of it
    """

    when: When
    age: int
    tensor: Tensor | None
    label: TensorLabel

    def seen_as(self, inner: Any, outer: Tensor) -> Tensor | None:
        """`outer`, which is `inner` within the region, if that is what the node keeps."""
        return outer if self.tensor is inner else None


class OuterSave(NamedTuple):
    """Record of what a way keeps: memory, and how, with a tensor over it. `itself`: the tensor of
    the program's outside that is what is kept within, if there is one."""

    memory: FunctionalStorage
    within: InnerSave
    tensor: Tensor
    itself: Tensor | None = None


class BranchSaves(NamedTuple):
    """Way through a node: what it keeps; for what the node holds, which tests hold."""

    kept: Sequence[OuterSave]
    decide: Decide | None = None


class SaveRecord:
    """Record of what is kept if its way is taken.

    always  also if not
    flag    what alone decides, otherwise, if something does, and `sense`: what it must be
    itself  the tensor that is kept, if it is one of the program's; its `family`, if it may go
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
        """Return what an error says of it; `shape`: of its tensor, as it was recorded."""
        return label_now(self.itself, self.known, shape, self.family)

    def refuse(self) -> None:
        """RuntimeError: it was written."""
        label = label_now(self.itself, self.known, family=self.family)
        raise modified(label, version_of(self.tensor), self.saved.version)


class OuterSaves:
    """Ways through a node, each with what is kept if it is taken: of two the first one where
    `first` holds.

    held  what the node holds of values outside: what tests are computed from
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
        """Yield what is kept, or (`always`) what is kept in any case."""
        for branch in self.branches:
            yield from (record for record in branch if record.always or not always)

    def tested(self, read: Callable[[Tensor], Value]
               ) -> Iterator[tuple[SaveRecord, list[SavePredicate] | None]]:
        """Yield what is kept, and when, as the region that holds the node says it: with its
        values."""
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
        """RuntimeError where what a backward from the results `arriving` needs was written, given
        which way was taken."""
        written = [[record for record in branch
                    if not record.when.keys().isdisjoint(arriving) and not record.saved.intact()]
                   for branch in self.branches]
        if not any(written):
            return
        certain = [[record for record in branch if _certain(record.when, arriving)]
                   for branch in written]
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
    """Return the same where a flag of the region holds as well."""
    when = {number: [SavePredicate((flag, *test.values), partial(_both, test.holds), test.iteration)
                     for test in ([SavePredicate((), all)] if tests is None else tests)]
            for number, tests in within.when.items()}
    return within._replace(when=when)


def _both(holds: Callable[[Sequence[Tensor]], bool], given: Sequence[Tensor]) -> bool:
    return bool(given[0]) and holds(given[1:])


def _took(sense: bool | None, when: When, decide: Decide | None, given: Sequence[Tensor]) -> bool:
    """Return True if a way was taken, and keeps this, for what the node was given. `sense`: what
    its first operand must be."""
    if sense is not None:
        first, *given = given
        if bool(first) is not sense:
            return False
    return _needed(when, decide, when, given)


def _needed(when: When, decide: Decide | None, arriving: Collection[int],
            held: Sequence[Tensor]) -> bool:
    """Return True if the way, which was taken, keeps this for a backward from these results."""
    if _certain(when, arriving):
        return True
    assert decide is not None
    with no_grad():
        return any(decide(held, [test for k in when.keys() & arriving for test in when[k] or ()]))


def _certain(when: When, arriving: Collection[int]) -> bool:
    """Return True if the way keeps this whatever the values are."""
    return any(when[k] is None for k in when.keys() & arriving)


def sizes_of(graph: Graph) -> dict[str, int]:
    """Return the sizes of the call that was recorded."""
    return graph.scope.complete(dict(graph.scope.hints))


def in_region(graph: Graph, inputs: Sequence[Value], held: Sequence[Tensor],
              tests: Sequence[SavePredicate]) -> list[bool]:
    """Tell which tests hold in a region that runs once; `inputs`: the values of it that are
    held."""
    part = extract(graph, graph.name, inputs, [v for test in tests for v in test.values])
    return outcomes(tests, interpret(part, held, symbols=sizes_of(graph)).outputs)


def outcomes(tests: Sequence[SavePredicate], values: Sequence[Tensor]) -> list[bool]:
    """Tell which tests hold, for all their values in order."""
    rest = iter(values)
    return [test.holds([next(rest) for _ in test.values]) for test in tests]
