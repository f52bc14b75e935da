"""Exit of a loop that a value may leave: by `break`, by `return`, or at its end.

In: a recorded body whose signal may be a `TracedExit`; the exit of the iteration before the loop,
if the program decides that too. Out: further variables and carried flags of the loop's node. When
the node is made, the signal for what follows the loop. Called by `loops.py`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of, zeros_of
from tracejit.core.ops.types import TensorType, bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.exits import ControlExit, TracedExit
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.loop_body import LoopBodyTrace
from tracejit.jit.capture.loop_numbers import DTYPES, GraphSymNumber, made_in, number_in
from tracejit.jit.capture.loop_variables import CarriedVar
from tracejit.jit.capture.subgraph import speculate
from tracejit.jit.capture.tree import (
    TreeSpec,
    difference,
    number_kind,
    plain_constants,
    tree_flatten,
    tree_unflatten,
)
from tracejit.jit.ir.graph import Value

RETURNED = "returned"  # name of carried values that are no variable of the user's
NAMES = ("broke", RETURNED)


class LoopExits:
    """Values that the body of a loop with exits carries besides its variables.

    flags  value before the loop (a Tensor), value in the body, value at an iteration's end
    parts  of the returned value: a variable of the loop, or what is the same whenever it returns
    """

    def __init__(self, body: LoopBodyTrace, before: TracedExit | None):
        self.body, self.before = body, TracedExit(False) if before is None else before
        signal = body.signal
        self.signal = signal if is_a(signal, TracedExit) else TracedExit(False)
        self.names = [name for name in NAMES if self._may(name)]
        self.flags = [(self._init(name), self._input(name), self._end(name))
                      for name in self.names]
        self.parts: list[Any] = []
        self.spec: TreeSpec | None = None
        if RETURNED in self.names:
            self._value()

    def _may(self, name: str) -> bool:
        return any(getattr(s, name) is not False for s in (self.signal, self.before))

    def _init(self, name: str) -> Tensor:
        flag = getattr(self.before, name)
        return flag if is_a(flag, Tensor) else full_of(None, (), False, bool_)

    def _input(self, name: str) -> Value:
        return self.body.region.graph.input(TensorType(bool_, ()), source=name)

    def _end(self, name: str) -> Value:
        flag, region = getattr(self.signal, name), self.body.region
        if not is_a(flag, Tensor):
            with speculate(region):
                flag = full_of(None, (), False, bool_)
        return region.traced(flag).read()

    # -- the returned value ----------------------------------------------------------------------
    def _value(self) -> None:
        within, without = self.signal.returned is not False, self.before.returned is not False
        if not within:
            self._kept()
            return
        spec, leaves = self._taken(False)
        firsts: list[Any] = [None] * len(leaves)
        if without:
            found, firsts = _taken_before(self.before.value, False)
            if difference(spec, found):
                spec, leaves = self._taken(True)
                found, firsts = _taken_before(self.before.value, True)
            if difference(spec, found):
                raise RegionRefused(f"the returned value is {difference(spec, found)}")
        if not plain_constants(spec):
            raise RegionRefused("it returns an object in one case only")
        self.spec = spec
        self._check_apart(leaves)
        self.parts = [self._part(leaf, first) if is_a(leaf, Tensor)
                      else self._number(leaf, first) for leaf, first in zip(leaves, firsts)]

    def _kept(self) -> None:
        """Take the returned value of the iteration before the loop: the body returns none."""
        self.spec, self.parts = _taken_before(self.before.value, False)

    def _taken(self, all_numbers: bool) -> tuple[TreeSpec, list[Any]]:
        leaves: list[Any] = []
        region = self.body.region
        spec = tree_flatten(
            self.signal.value, leaves, region.claim_created(),
            lambda x: all_numbers and number_kind(x) is not None or made_in(x, region.graph))
        return spec, leaves

    def _check_apart(self, leaves: list[Any]) -> None:
        memories = {id(x): self.body.region.traced(x).memory for x in leaves
                    if is_a(x, Tensor) and self._inside(x)}
        if len(set(memories.values())) < len(memories):
            raise RegionRefused("two parts of the returned value share memory")

    def _inside(self, tensor: Tensor) -> bool:
        return tensor._traced is not None and tensor._traced.tracer is self.body.region

    def _part(self, leaf: Tensor, first: Tensor | None) -> Any:
        """Return a tensor of the returned value as it is after the loop: a variable, or the tensor
        itself. `first`: the same part where the iteration before the loop returned."""
        if not self._inside(leaf):
            return self._the_same(leaf, first)
        for var in self.body.carried_vars:
            if leaf is var.end and leaf is var.start:
                return self._the_same(var.outer, first)
            if leaf is var.end:
                return self._of_variable(var, first)
        start = next((s for s in self.body.carried_vars if leaf is s.start), None)
        self._check_fresh(leaf, start)
        outer = first
        if outer is None:
            outer = zeros_of(None, self.body.region.traced(leaf).read().type)
        elif first._requires_grad is not leaf._requires_grad:  # type: ignore[union-attr]
            raise RegionRefused("a returned tensor requires grad in one case only")
        var = self.body.tensor_var(RETURNED, outer, leaf._requires_grad)
        var.end, var.filled, var.first_of = leaf, first is None, start
        self.body.agree_strides(var, leaf)
        return var

    def _the_same(self, tensor: Tensor, first: Tensor | None) -> Tensor:
        if first is not None and first is not tensor:
            raise RegionRefused("the returned value is one of several outer tensors")
        return tensor

    def _of_variable(self, var: CarriedVar, first: Any) -> CarriedVar:
        if first is not None and first is not var.outer:
            raise RegionRefused("the returned value is a variable in one case only")
        return var

    def _check_fresh(self, leaf: Tensor, start: CarriedVar | None) -> None:
        """Refuse a returned tensor unless the iteration made it, or it is a variable as the
        iteration found it."""
        body, region = self.body, self.body.region
        memory = region.traced(leaf).memory
        starts = {region.traced(s.start).memory for s in body.carried_vars if s.is_tensor}
        if start is not None and body.parent.traced(start.outer).views:
            raise RegionRefused("the returned value is a view")
        items = {region.traced(x.item).memory for x in body.scans} | region.gathered_views.keys()
        shared = region.remains(lambda: bool(region.sharing.memories.of(memory)))
        if memory in region.copies or memory in items or shared:
            raise RegionRefused("the returned value may be an outer tensor")
        if start is None and memory in starts:
            raise RegionRefused("the returned value is a view of a variable")

    def _number(self, leaf: Any, first: Any) -> CarriedVar:
        for var in self.body.carried_vars:
            if is_a(leaf, GraphSymNumber) and leaf is var.end:
                return self._of_variable(var, first)
        kind: Any = number_kind(leaf)
        value = self.body.region.graph.input(TensorType(DTYPES[kind], ()), source=RETURNED)
        start = number_in(value, kind)
        var = CarriedVar(RETURNED, kind() if first is None else first, start, value, None, leaf)
        self.body.carried_vars.append(var)
        return var

    # -- after the loop --------------------------------------------------------------------------
    def ended(self, flags: list[Tensor], values: dict[int, Any]) -> ControlExit:
        """Return the loop's exit, given what the node made of flags and (by id) of variables."""
        if not self.names:
            return None
        found = dict(zip(self.names, flags))
        value, own = None, []  # type: ignore[var-annotated]
        if self.spec is not None:
            parts = [values[id(p)] if is_a(p, CarriedVar) else p for p in self.parts]
            value = tree_unflatten(self.spec, iter(parts), own)
            self.body.parent.owned(own)
        return TracedExit(found.get("broke", False), found.get("returned", False), value, own)


def _taken_before(value: Any, all_numbers: bool) -> tuple[TreeSpec, list[Any]]:
    """Flatten what the iteration before the loop returns; its containers may be made anew."""
    leaves: list[Any] = []
    spec = tree_flatten(
        value, leaves, lambda container: True,
        lambda x: number_kind(x) is not None if all_numbers else is_a(x, GraphSymNumber))
    return spec, leaves
