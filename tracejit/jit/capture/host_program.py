"""Host side of a replay after its program ran: pending numbers, texts and output.

In: the pending values that specs and recorded output use. Out: `HostProgram`, the steps of a replay
in order, and its effects. `settle` puts plain values where a recorded call left pending ones.
Called by `epilogue.py` when an entry is made, and by `session.py` when a recorded call ends.
"""

from __future__ import annotations

import functools
import gc
from collections import deque
from collections.abc import Callable, Iterable
from types import CellType, FrameType
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.memory.referrers import referrers
from tracejit.jit.capture.concretize import refill
from tracejit.jit.capture.contents import elements
from tracejit.jit.capture.host_reads import (
    AFTER_SYMS,
    UNKNOWN,
    AfterSym,
    computed,
    in_order,
    is_computed,
)
from tracejit.jit.capture.looking import has_in_class, instance_dict, is_a, is_exactly

Step = Callable[[Any], Any]  # of a ReplayFrame


class HostProgram:
    """Steps that compute the pending values of a replay, operands first."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.positions: dict[int, int] = {}
        self.kept: list[AfterSym] = []  # `positions` has their ids

    def output_spec(self, pending: AfterSym, builder: Any) -> Step:
        """Return the function by which a replay gets a pending value; add the steps for it."""
        known = pending.known  # `pending` itself is replaced after the call
        if known is not UNKNOWN:
            return lambda frame: known
        for x in in_order(pending, set(self.positions)):
            self.positions[id(x)] = len(self.steps)
            self.kept.append(x)
            self.steps.append(self._step(x, builder))
        position = self.positions[id(pending)]
        return lambda frame: frame.host[position]

    def _step(self, pending: AfterSym, builder: Any) -> Step:
        parts = [builder.of(x) for x in pending.operands]
        shape = _Shape(pending)
        return lambda frame: computed(shape, [part(frame) for part in parts])  # type: ignore[arg-type]

    def effects(self, output: list[Any], builder: Any) -> list[Step]:
        """Return a replay's first effects: compute the values, then print and log in program order.
        `output_spec` may not be called after this."""
        shown = [effect.output_spec(builder) for effect in output]
        self.positions.clear()
        self.kept.clear()
        return [self.run, *shown] if self.steps or shown else []

    def run(self, frame: Any) -> None:
        """Compute the values into `frame.host`. Nothing that the caller can see has changed yet."""
        frame.host = values = []
        for step in self.steps:
            values.append(step(frame))


class _Shape:
    """Parts of a pending value that `computed` reads; a step so keeps no operand alive."""

    __slots__ = ("op", "reads_number")

    def __init__(self, pending: AfterSym):
        self.op, self.reads_number = pending.op, pending.reads_number


def settle(pending: Iterable[Any]) -> None:
    """Put plain values wherever a call, its segments run, left pending ones (weak references)."""
    # Only garbage holds what was not computed: without an entry all of it was.
    alive = [x for x in (r() for r in pending) if x is not None and is_computed(x)]
    if alive:
        _replace({id(x): x.concretize() for x in alive}, alive)


def settle_numbers(numbers: Iterable[Any]) -> None:
    """Put plain values wherever a call left numbers of loops and branches (weak references)."""
    alive = [x for x in (r() for r in numbers) if x is not None and x.tensor._traced is None]
    if alive:
        _replace({id(x): x.concretize() for x in alive}, alive)


def concretize_for_callee(tracer: Any, frame: FrameType) -> None:
    """Make pending arguments of a library's function plain before it runs; this ends the
    segment."""
    recording = tracer is active.tracer
    if recording and any(map(_holds_pending, frame.f_locals.values())):
        tracer.add_break_later(
            f"the function calls item() and passes the number to {frame.f_code.co_qualname}")
        give_up(tracer)


def give_up(tracer: Any) -> None:
    """Run the segment and make pending values plain, for code that the tracer cannot see."""
    recording = tracer is active.tracer
    if recording and not tracer.speculation_depth:
        tracer.flush()
        settle(tracer.pending)
        tracer.pending = [r for r in tracer.pending if r() is not None]


def _holds_pending(x: Any, depth: int = 3) -> bool:
    if is_exactly(x, AFTER_SYMS) or not depth:
        return is_exactly(x, AFTER_SYMS)
    if is_exactly(x, (list, tuple)):
        return any(_holds_pending(y, depth - 1) for y in x)
    return type(x) is dict and any(_holds_pending(y, depth - 1) for y in x.values())


def _replace(values: dict[int, Any], objects: list[Any]) -> None:
    """Put `values[id(x)]` wherever an x of `objects` is held; rebuild tuples that hold one."""
    ours = {id(values), id(objects)}
    tuples = []
    for holder in referrers(objects):
        if type(holder) is tuple:
            tuples.append(holder)
        elif id(holder) not in ours:
            _replace_in(holder, values)
    fresh = [t for t in tuples if gc.is_tracked(t)]
    if fresh:
        made = {id(t): _rebuilt(t, values) for t in fresh}
        _replace(made, fresh)


def _rebuilt(old: Any, values: dict[int, Any]) -> tuple:
    parts = [values.get(id(x), x) for x in elements(old)]
    return type(old)._make(parts) if has_in_class(old, "_make") else tuple(parts)


def _replace_in(holder: Any, values: dict[int, Any]) -> None:
    if is_exactly(holder, (list, deque)):
        for k, x in enumerate(holder):
            if id(x) in values:
                holder[k] = values[id(x)]
    elif is_a(holder, dict):
        for k, x in list(holder.items()):
            if id(x) in values:
                dict.__setitem__(holder, k, values[id(x)])
    elif type(holder) is set:
        for x in [x for x in holder if id(x) in values]:
            holder.discard(x)
            holder.add(values[id(x)])
    elif type(holder) is CellType:
        holder.cell_contents = values[id(holder.cell_contents)]
    elif type(holder) is functools.partial:
        refill(holder, args=values.get(id(holder.args), holder.args))
    elif not is_exactly(holder, AFTER_SYMS) and type(instance_dict(holder)) is dict:
        _replace_in(instance_dict(holder), values)
