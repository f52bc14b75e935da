"""`if` on a tensor: both sides become regions of one `cond` node.

In: a predicate that is a deferred tensor, the two sides as functions, the variables they assign.
Out: the variables hold what the taken side gives, memory that a side writes holds what the taken
side leaves there; the signal they end with. Raises `Refused` (variables as before) where the sides
cannot be regions or do not agree. Called by `control.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.capture.breaks import Refused
from tracejit.capture.choices import Choices
from tracejit.capture.recorder import Recorder
from tracejit.capture.region import RegionRecorder, own_work, region_gradients, trial
from tracejit.capture.signals import BREAK, CONTINUE, Decided, Return, Signal
from tracejit.capture.structure import Structure, difference, put_together, take_apart
from tracejit.capture.variables import UNBOUND, Variables
from tracejit.eager.modes import is_grad_enabled, no_grad
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Value
from tracejit.ops.control import ErrorOf
from tracejit.ops.creation import full_of
from tracejit.ops.record import REGISTRY
from tracejit.ops.shapes import numel, same_shape
from tracejit.ops.types import FLOATING, bool_


class Side:
    """One side of a branch, recorded: what variables hold after it, how it ends."""

    def __init__(self, parent: Recorder, name: str, function: Callable[[], Signal],
                 variables: Variables):
        self.region = RegionRecorder(parent, name)
        self.error: Exception | None = None
        self.signal: Signal = None
        before = variables.values()
        try:
            with trial(self.region):
                try:
                    self.signal = function()
                except Exception as error:
                    self.error = error.with_traceback(None)
                self.after = variables.values()
        finally:
            variables.set(before)
        self.region.unchanged()


def branch(parent: Recorder, predicate: Tensor, then: Callable[[], Signal],
           otherwise: Callable[[], Signal], variables: Variables) -> Signal:
    """Record `then() if predicate else otherwise()`; returns how it ends."""
    flag = truth(predicate)
    one = Side(parent, f"{parent.name}_then", then, variables)
    other = Side(parent, f"{parent.name}_else", otherwise, variables)
    if one.error is not None or other.error is not None:
        return _raising(flag, one, other, then, otherwise)
    with own_work():
        merge = Merge(parent, flag, one.region, other.region)
        signal = _merged(merge, one, other, variables)
    one.region.own.clear()
    other.region.own.clear()
    return signal


def _merged(merge: Merge, one: Side, other: Side, variables: Variables) -> Signal:
    """Make the node and set the variables; how the branch ends."""
    before = variables.values()
    changed = {name: merge.of(one.after[name], other.after[name], name) for name in before
               if one.after[name] is not before[name] or other.after[name] is not before[name]
               if name in variables.live or before[name] is not UNBOUND}
    signal = _merge_signals(merge, one.signal, other.signal)
    merge.record()
    variables.set({name: merge.built(given) for name, given in changed.items()})
    return merge.built_signal(signal)


def truth(predicate: Tensor) -> Tensor:
    """A tensor of one element as a bool tensor without dimensions; what `bool()` raises else."""
    if numel(predicate.shape) != 1:
        bool(predicate)
    with no_grad():
        flag = predicate.detach()
        flag = flag if not flag.shape else flag.reshape(())
        return flag if flag.dtype is bool_ else flag != 0


def _raising(flag: Tensor, one: Side, other: Side, then: Callable, otherwise: Callable) -> Signal:
    """A side that raises: the program fails there, and what remains is the other side."""
    if one.error is not None and other.error is not None:
        raise Refused("both sides raise")
    if (one if one.error is not None else other).region.written_outside():
        raise Refused("memory made outside is written before an exception")
    error = one.error if one.error is not None else other.error
    try:
        described = ErrorOf.of(error)  # type: ignore[arg-type]
    except TypeError as reason:
        raise Refused(str(reason)) from None
    raises = flag if one.error is not None else ~flag
    REGISTRY["raise_if"](raises, error=described)
    return otherwise() if one.error is not None else then()


class Merge:
    """Pairs of tensors that two sides give for the same place; `record` makes the node."""

    def __init__(self, parent: Recorder, flag: Tensor, one: RegionRecorder, other: RegionRecorder):
        self.parent, self.flag, self.one, self.other = parent, flag, one, other
        self.taking = one.taking(), other.taking()
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.known: dict[tuple[int, int], int] = {}
        self.results: list[Any] = []

    def of(self, one: Any, other: Any, what: str) -> tuple[Structure, list[int]]:
        """Take both values apart; the numbers of their tensors among the pairs."""
        if one is UNBOUND and other is UNBOUND:
            return Structure("constant", UNBOUND), []
        mine: list[Tensor] = []
        others: list[Tensor] = []
        structure = take_apart(one, mine, self.taking[0])
        different = difference(structure, take_apart(other, others, self.taking[1]))
        if different:
            raise Refused(f"{what} is {different}")
        return structure, [self.pair(a, b, what) for a, b in zip(mine, others)]

    def pair(self, one: Tensor, other: Tensor, what: str) -> int:
        key = (id(one), id(other))
        if key not in self.known:
            self._agree(one, other, what)
            self.known[key] = len(self.pairs)
            self.pairs.append((one, other))
        return self.known[key]

    def _agree(self, one: Tensor, other: Tensor, what: str) -> None:
        a, b = self.one.traced(one).read().type, self.other.traced(other).read().type
        if a.dtype is not b.dtype:
            raise Refused(f"{what} is {a.dtype.name} in one case and {b.dtype.name} in the other")
        if not same_shape(a.shape, b.shape):
            raise Refused(f"{what} has another shape in one case than in the other")

    def flagged(self, region: RegionRecorder, broke: Any) -> Tensor:
        """Whether a side broke, as a tensor of its region."""
        if isinstance(broke, Tensor):
            return broke
        with trial(region):
            return full_of(None, (), bool(broke), bool_)

    def record(self) -> None:
        """Make the node; from now on memory holds what the taken side left there."""
        parent, one, other = self.parent, self.one, self.other
        kept = [a is b and one.is_outer(a) for a, b in self.pairs]
        rest = [pair for pair, same in zip(self.pairs, kept) if not same]
        choices = Choices((one, other), rest)
        written = dict.fromkeys([*one.written_outside(), *other.written_outside()])
        outs = [[region.traced(pair[side]).read() for pair in rest]
                + [region.inner_memory(memory).value for memory in written]
                + choices.outputs(side) for side, region in enumerate((one, other))]
        keys = list(dict.fromkeys([*one.captured, *other.captured]))
        gradient = self._gradient(rest, keys)
        made: Sequence[Tensor] = ()
        if outs[0] or _may_fail(one) or _may_fail(other):
            regions = tuple(region.region([region.capture(k) for k in keys], values)
                            for region, values in zip((one, other), outs))
            made = parent.control(REGISTRY["cond"], (parent.traced(self.flag).read(), *keys), {},
                                  regions)
        fresh = iter(made)
        self.results = [pair[0] if same else next(fresh) for pair, same in zip(self.pairs, kept)]
        for memory in written:
            memory.write(parent.traced(next(fresh)).read())
        if gradient is not None:
            gradient.attach([r for r, same in zip(self.results, kept) if not same])
        with no_grad():
            choices.remember(parent, self.flag, made[:len(rest)], list(fresh))

    def _gradient(self, rest: list[tuple[Tensor, Tensor]], keys: list[Value]) -> Any:
        """How gradients flow through the node; None where they do not."""
        tracked = [k for k, (a, b) in enumerate(rest)
                   if (a._requires_grad or b._requires_grad) and a._dtype.category >= FLOATING]
        outer = [*self.one.outer_tensors(), *self.other.outer_tensors()]
        wrt = list({id(t): t for t in outer}.values())
        if not tracked or not wrt or not is_grad_enabled():
            return None
        sides = [(region, [rest[k][side] for k in tracked])
                 for side, region in enumerate((self.one, self.other))]
        return region_gradients().of_cond(self.parent, self.flag, keys, sides, wrt, tracked)

    def built(self, given: tuple[Structure, list[int]]) -> Any:
        structure, numbers = given
        return put_together(structure, iter([self.results[k] for k in numbers]))

    def built_signal(self, signal: Any) -> Signal:
        if isinstance(signal, Decided):
            return Decided(self.results[signal.broke])
        return Return(self.built(signal.value)) if isinstance(signal, Return) else signal


def _may_fail(region: RegionRecorder) -> bool:
    return any(node.may_fail for node in region.graph.nodes)


def _merge_signals(merge: Merge, one: Signal, other: Signal) -> Any:
    """How the branch ends: Return(what `Merge.of` gave), Decided(pair), or the same in both."""
    if isinstance(one, Return) and isinstance(other, Return):
        return Return(merge.of(one.value, other.value, "the returned value"))
    if isinstance(one, Return) or isinstance(other, Return):
        raise Refused("one side returns from the function and the other does not")
    if one is other or {one, other} <= {None, CONTINUE}:
        return one
    broke = [merge.flagged(region, s.broke if isinstance(s, Decided) else s is BREAK)
             for region, s in ((merge.one, one), (merge.other, other))]
    return Decided(merge.pair(broke[0], broke[1], "break"))
