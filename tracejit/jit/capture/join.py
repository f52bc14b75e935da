"""Join of the two sides of a branch: what each gives becomes one result of a `cond` node.

In: the recorded regions of both sides; the values, memory and exits that they leave. Out: the node,
and values made of its results. Tensors of both sides must agree in dtype and shape, Python numbers
in their type. A value may come from one side only, if the other leaves the function or goes on.
Zeros that nothing reads stand for it on the other side. Called by `cond.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tracejit.core.eager.modes import is_grad_enabled, no_grad
from tracejit.core.eager.subclasses import keeps_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of, zeros_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.shapes import known_same_shape, same_shape
from tracejit.core.ops.types import FLOATING, bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.choices import Choices
from tracejit.jit.capture.conditional_writes import as_flag, write_condition
from tracejit.jit.capture.exits import (
    BREAK,
    CONTINUE,
    CONTINUE_THROUGH,
    ControlExit,
    Return,
    TracedExit,
)
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_numbers import (
    is_bounded,
    made_in,
    number_result,
    number_tensor,
)
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.strides import known_strides, merged_strides, same_strides
from tracejit.jit.capture.subgraph import SubgraphTracer, forbid_breaks, region_gradients, speculate
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.capture.tree import (
    TreeSpec,
    common_kind,
    difference,
    plain_constants,
    same_kind,
    text,
    tree_flatten,
    tree_unflatten,
)
from tracejit.jit.ir.graph import Value

JoinedValue = tuple[TreeSpec, list[int]]  # a value of both sides: its structure, numbers of pairs


class BranchJoin:
    """Pairs of tensors, one of each side, for the node's results; `record` makes the node."""

    def __init__(self, parent: Tracer, flag: Tensor, one: SubgraphTracer, other: SubgraphTracer):
        self.parent, self.flag, self.sides = parent, flag, (one, other)
        self.claim_created = one.claim_created(), other.claim_created()
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.known: dict[tuple[int, int], int] = {}
        self.from_one_side: dict[int, int] = {}  # a pair's number -> the side that gives it
        self.numbers: dict[int, tuple[type, bool]] = {}  # pairs of numbers: type, is it bounded?
        self.strides: list[Any] = []  # of pairs
        self.results: list[Any] = []

    # -- what both sides give --------------------------------------------------------------------
    def of(self, one: Any, other: Any, what: str) -> JoinedValue:
        """Pair the tensors of a value of both sides. Return its structure and the numbers of the
        pairs; `what` names the value in errors."""
        leaves: tuple[list[Tensor], list[Tensor]] = [], []
        mine, others = [tree_flatten(value, into, claim)
                        for value, into, claim in zip((one, other), leaves, self.claim_created)]
        numbers: list[int] = []
        return self._joined(mine, others, [iter(x) for x in leaves], what, numbers), numbers

    def _joined(self, one: TreeSpec, other: TreeSpec, leaves: list[Iterator[Tensor]], what: str,
                numbers: list[int]) -> TreeSpec:
        if one.kind == other.kind == "tensor":
            numbers.append(self.pair(next(leaves[0]), next(leaves[1]), what))
            return one
        if one.kind == other.kind == "constant" and not same_kind(one, other):
            kind = common_kind(one.value, other.value)
            if kind is not None:
                numbers.append(self._number((one.value, other.value), kind))
                return TreeSpec("number", kind)
        if not same_kind(one, other):
            raise RegionRefused(f"{what} is {difference(one, other)}")
        parts = [self._joined(a, b, leaves, what, numbers) for a, b in zip(one.parts, other.parts)]
        return TreeSpec(one.kind, one.value, tuple(parts))

    def pair(self, one: Tensor, other: Tensor, what: str, from_one_side: int | None = None) -> int:
        key = (id(one), id(other))
        if key not in self.known:
            strides = None
            if one is not other or not self.sides[0].is_outer(one):
                self._agree(one, other, what)
                strides = self._lie((one, other), what, from_one_side)
            self.known[key] = len(self.pairs)
            self.pairs.append((one, other))
            self.strides.append(strides)
        return self.known[key]

    def _lie(self, pair: tuple[Tensor, Tensor], what: str, from_one_side: int | None) -> Any:
        """Return the strides of the result of a pair, or of its only side."""
        cases = [region.traced(t) for region, t in zip(self.sides, pair)]
        found = [known_strides(traced) for traced in cases]
        if from_one_side is not None:
            return found[from_one_side]
        same = same_strides(cases[0].shape, *found)
        return found[0] if same else merged_strides(what, *cases)

    def _number(self, values: tuple[Any, Any], kind: type) -> int:
        one, other = [self._held(side, x, kind) for side, x in enumerate(values)]
        number = self.pair(one, other, "a number")
        self.numbers[number] = kind, all(map(is_bounded, values))
        return number

    def _held(self, side: int, number: Any, kind: type) -> Tensor:
        """Make a number of a side a tensor of its region."""
        with speculate(self.sides[side]), no_grad():
            return number_tensor(self.sides[side], number, kind)

    def _agree(self, one: Tensor, other: Tensor, what: str) -> None:
        if one.__dict__ or other.__dict__:
            raise RegionRefused(f"{what} has attributes of its own")
        if type(one) is not type(other):
            raise RegionRefused(f"{what} is a {type(one).__name__} in one case and a "
                                f"{type(other).__name__} in the other")
        a, b = [region.traced(t).read().type for region, t in zip(self.sides, (one, other))]
        if a.dtype is not b.dtype:
            raise RegionRefused(
                f"{what} is {a.dtype.name} in one case and {b.dtype.name} in the other")
        if not same_shape(a.shape, b.shape):
            raise RegionRefused(f"{what} has different shapes in the two cases")
        for region, tensor in zip(self.sides, (one, other)):
            if region.is_gathered_view(tensor) and one is not other:
                raise RegionRefused(f"{what} is a view of an outer tensor in one case only")

    # -- what one side gives ---------------------------------------------------------------------
    def only(self, side: int, value: Any, what: str) -> JoinedValue:
        """Do as `of` for a value that counts only if `side` is taken."""
        leaves: list[Any] = []
        graph = self.sides[side].graph
        spec = tree_flatten(value, leaves, self.claim_created[side], lambda x: made_in(x, graph))
        if not plain_constants(spec):
            raise RegionRefused(f"{what} is {text(spec)} in one case only")
        return spec, [self._filled_up(side, x, what) if is_a(x, Tensor)
                      else self._number_from_one_side(side, x) for x in leaves]

    def _filled_up(self, side: int, tensor: Tensor, what: str) -> int:
        """Pair a side's tensor with zeros and return the number of the pair."""
        if self.sides[side].is_outer(tensor):
            return self.pair(tensor, tensor, what)
        known = (id(tensor), ~side)
        if known not in self.known:
            other = self.sides[1 - side]
            with speculate(other), no_grad():
                zeros = zeros_of(None, self.sides[side].traced(tensor).read().type)
            if keeps_class(type(tensor)):
                of_class(zeros, type(tensor))
            one, another = (tensor, zeros) if side == 0 else (zeros, tensor)
            number = self.known[known] = self.pair(one, another, what, side)
            self.from_one_side[number] = side
        return self.known[known]

    def _number_from_one_side(self, side: int, number: Any) -> int:
        kind = number.kind
        values = (number, kind()) if side == 0 else (kind(), number)
        return self._number(values, kind)

    # -- the node --------------------------------------------------------------------------------
    def record(self, together: Sequence[Sequence[JoinedValue]]) -> None:
        """Make the node; from now on written memory holds what the taken side left there.
        `together`: lists of values that code may see side by side."""
        parent, (one, other) = self.parent, self.sides
        with forbid_breaks(parent.root):  # the sides use values of this segment
            kept = [a is b and one.is_outer(a) for a, b in self.pairs]
            places = [k for k, same in enumerate(kept) if not same]
            rest = [self.pairs[k] for k in places]
            apart = [{places.index(k) for _, numbers in given for k in numbers if not kept[k]}
                     for given in together]
            choices = Choices(self.sides, rest, apart)
            rest = [(a, self._shaped(a, b)) for a, b in rest]
            written = dict.fromkeys([*one.written_outside(), *other.written_outside()])
            happened, unsure = self._happened(written)
            outs = [[region.traced(pair[side]).read() for pair in rest]
                    + [region.inner_memory(memory).value for memory in written]
                    + [region.traced(flags[side]).read() for flags in unsure]
                    + choices.outputs(side) for side, region in enumerate(self.sides)]
            keys = list(dict.fromkeys([*one.captured, *other.captured]))
            gradient = self._gradient(rest, [self.from_one_side.get(k) for k in places], keys)
            made: Sequence[Tensor] = ()
            if outs[0] or one.may_fail() or other.may_fail():
                regions = tuple(region.region([region.capture(k) for k in keys], values)
                                for region, values in zip(self.sides, outs))
                flag = parent.traced(self.flag).read()
                made = parent.control(REGISTRY["cond"], (flag, *keys), {}, regions)
        results, others = made[:len(rest)], iter(made[len(rest):])
        for k, result in zip(places, results):
            parent.traced(result).memory.strides = self.strides[k]
        values = [parent.traced(next(others)).read() for _ in written]
        flags = [next(others) for _ in unsure]
        for memory, value, said in zip(written, values, happened):
            counted = said if type(said) is not int else flags[said]
            memory.write(value, counted is not False, parent.if_asked(memory, counted))
        with no_grad():
            choices.remember(parent, self.flag, results, [*others])
        if gradient is not None:
            gradient.attach(results)  # last: it notes how often results were written
        fresh = dict(zip(places, results))
        self.results = [self._result(k, fresh.get(k, pair[0]))
                        for k, pair in enumerate(self.pairs)]

    def _happened(
        self, written: Iterable[FunctionalStorage]
    ) -> tuple[list[Any], list[list[Tensor]]]:
        """Return for each piece of memory whether it is written: a bool, a flag, or the number of a
        pair of the sides' flags. The second result has these pairs."""
        found: list[Any] = []
        pairs: list[list[Tensor]] = []
        for memory in written:
            one, other = [write_condition(region, region.memories.get(memory), memory.version)
                          for region in self.sides]
            if is_a(one, Tensor) or is_a(other, Tensor):
                found.append(len(pairs))
                flags = as_flag(self.sides[0], one, other), as_flag(self.sides[1], other, one)
                pairs.append([*flags])
            elif one is other:
                found.append(one)
            else:
                with no_grad():
                    found.append(self.flag if one else ~self.flag)
        return found, pairs

    def _shaped(self, like: Tensor, tensor: Tensor) -> Tensor:
        """Return the other side's tensor, its sizes written as those of `like`, the first side's
        tensor."""
        one, other = self.sides
        shape = one.traced(like).shape
        if known_same_shape(shape, other.traced(tensor).shape):
            return tensor
        with speculate(other):
            return tensor.reshape(shape)

    def _result(self, number: int, tensor: Tensor) -> Any:
        if number not in self.numbers:
            return tensor
        return number_result(self.parent, tensor, *self.numbers[number])

    def _gradient(self, rest: list[tuple[Tensor, Tensor]], from_one_side: list[int | None],
                  keys: list[Value]) -> Any:
        """Return what puts the node's gradient on the tape; None where no gradient flows."""
        tracked = [k for k, (a, b) in enumerate(rest)
                   if (a._requires_grad or b._requires_grad) and a._dtype.category >= FLOATING]
        outer = [tensor for region in self.sides for tensor in region.outer_tensors()]
        wrt = list({id(t): t for t in outer}.values())
        if tracked and not is_grad_enabled():
            raise RegionRefused(
                "under no_grad(), a result may be an outer tensor that requires grad")
        if not tracked or not wrt:
            return None
        sides = [(region, [rest[k][side] for k in tracked])
                 for side, region in enumerate(self.sides)]
        return region_gradients().of_cond(self.parent, self.flag, keys, sides, wrt, tracked,
                                          [from_one_side[k] for k in tracked],
                                          [[pair[side] for pair in rest] for side in (0, 1)])

    def built(self, given: JoinedValue) -> Any:
        """Return a value as it is after the branch, made of the node's results."""
        return self.built_anew(given)[0]

    def built_anew(self, given: JoinedValue) -> tuple[Any, list[Any]]:
        """Do as `built`; return also the containers made for the value."""
        spec, numbers = given
        own: list[Any] = []
        value = tree_unflatten(spec, iter([self.results[k] for k in numbers]), own)
        self.parent.owned(own)
        return value, own


class JoinedExit:
    """Exit of a branch, joined from the exits of its sides before the node is made."""

    def __init__(self, join: BranchJoin, one: ControlExit, other: ControlExit):
        self.join, self.signals = join, (one, other)
        self.same = one is other or {one, other} <= {None, CONTINUE}
        if not self.same and CONTINUE_THROUGH in self.signals:
            raise RegionRefused("a `continue` leaves a `with` or `try` in one case only")
        self.returns = is_a(one, Return) and is_a(other, Return)
        if not self.same:
            self.broke = self._flag("broke")
            self.returned = self._flag("returned")
            self.value = self._value()

    def _flag(self, name: str) -> Any:
        """Return the flag `name` of both exits as the number of a pair, a tensor, or False where
        neither exit can have it."""
        found = [_decided(signal, name) for signal in self.signals]
        if self.returns or all(x is False for x in found):
            return False
        if found[0] is not found[1] and all(type(x) is bool for x in found):
            return self.join.flag if found[0] else ~self.join.flag
        one, other = [self._tensor(side, x) for side, x in enumerate(found)]
        return self.join.pair(one, other, name)

    def _tensor(self, side: int, flag: Any) -> Tensor:
        if is_a(flag, Tensor):
            return flag
        with speculate(self.join.sides[side]):
            return full_of(None, (), flag, bool_)

    def _value(self) -> Any:
        values = [signal.value for signal in self.signals
                  if _decided(signal, "returned") is not False]
        if len(values) == 2:
            return self.join.of(values[0], values[1], "the returned value")
        if not values:
            return None
        side = 1 if _decided(self.signals[0], "returned") is False else 0
        return self.join.only(side, values[0], "the returned value")

    @property
    def values(self) -> list[JoinedValue]:
        """Values that the branch may return."""
        return [] if self.same or self.value is None else [self.value]

    def signal(self) -> ControlExit:
        """Return the exit; the node is made by now."""
        if self.same:
            return self.signals[0]
        built = (None, []) if self.value is None else self.join.built_anew(self.value)
        if self.returns:
            return Return(built[0])
        flags = [self.join.results[x] if type(x) is int else x
                 for x in (self.broke, self.returned)]
        return TracedExit(*flags, *built)


def _decided(signal: ControlExit, name: str) -> Any:
    """Return the flag `name` of an exit, "broke" or "returned": a bool, or a tensor."""
    if is_a(signal, TracedExit):
        return getattr(signal, name)
    return is_a(signal, Return) if name == "returned" else signal is BREAK
