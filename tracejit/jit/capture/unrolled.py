"""Long loops that the graph holds iteration by iteration, for `report().unrolled`.

In: a loop of rewritten code that is no node, the reason. Out: an `UnrolledLoop` of its line and
length, once it ran. Called by `control.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.hints import hint_for
from tracejit.jit.capture.location import user_location
from tracejit.jit.capture.looking import is_a, is_exactly, name_of_class
from tracejit.jit.capture.loop_items import Iterated
from tracejit.jit.ir.graph import Location

LONG = 16  # iterations from which a loop is reported
OF_NUMBERS = "a number of Python's decides when it ends"
UNDER_VMAP = "it runs under vmap, which records each iteration"
_BATCH = "give the loop whole batches, with a dimension for the samples, in place of `vmap`"
_STACK = "loop over `tracejit.stack(items)`, which becomes one loop"
_TENSOR = "use `for k in range(n)`, or test a tensor"


@dataclass(frozen=True)
class UnrolledLoop:
    """Loop whose iterations are in the graph one by one: its line, its length and the reason.

    It is no break. The graph and its kernels are as long as the loop.
    """

    location: Location | None
    length: int
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.location}  {self.location.text}" if self.location else "(unknown line)"
        hint = f"\n    hint: {self.hint}" if self.hint else ""
        return f"{where}\n    {self.length} iterations one by one: {self.reason}{hint}"


class Counting:
    """Count of a loop's iterations while they are recorded one by one."""

    def __init__(self, reason: str, hint: str | None):
        self.reason, self.hint, self.count = reason, hint, 0
        tracer: Any = active.tracer
        self.tracer, self.graph = tracer, tracer.graph
        self.nodes = len(tracer.graph.nodes)

    def done(self) -> None:
        """Note the loop if it is long, and each iteration recorded an op."""
        tracer: Any = active.tracer
        recorded = tracer is self.tracer and (
            tracer.graph is not self.graph or len(tracer.graph.nodes) - self.nodes >= self.count)
        if self.count < LONG or not recorded:
            return
        location = user_location(3)
        hint = hint_for(self.reason) if self.hint is None else self.hint
        note_loop(tracer.root.unrolled, UnrolledLoop(location, self.count, self.reason, hint))


def note_loop(loops: dict[Any, UnrolledLoop], loop: UnrolledLoop) -> None:
    """Keep a loop by its line; of several runs the longest."""
    known = loops.get(loop.location)
    if known is None or known.length < loop.length:
        loops[loop.location] = loop


def _records() -> bool:
    """Return True if a graph is recorded, also of what `vmap` runs."""
    tracer: Any = active.tracer
    while tracer is not None and tracer.mapped:
        tracer = tracer.below
    return tracer is not None


def counting(reason: str, hint: str | None = "") -> Counting | None:
    """Return a count for a loop that begins; None if nothing is recorded.

    `hint`: None for that of the reason, which is looked up once the loop proves long.
    """
    return Counting(reason, hint) if _records() else None


def counting_while() -> Counting | None:
    """Return a count for a `while` whose test is no tensor."""
    return counting(OF_NUMBERS, _TENSOR)


def counting_items(iterable: Any) -> Counting | None:
    """Return a count for a `for` over what becomes no loop of the graph."""
    if not _records():
        return None
    if active.tracer.mapped:  # type: ignore[union-attr]
        return counting(UNDER_VMAP, _BATCH)
    inner = (iterable,)
    if type(iterable) is Iterated and iterable.function in (enumerate, zip):
        inner = iterable.arguments
    # Sequences of the user's are not asked: their methods would run.
    tensors = any(is_exactly(x, (list, tuple)) and x and is_a(x[0], Tensor) for x in inner)
    kind = name_of_class(type(next((x for x in inner if not is_a(x, Tensor)), iterable)))
    return counting(f"it goes over a {kind.removeprefix('builtins.')}", _STACK if tensors else "")
