"""Conditions of writes to memory by a branch or a loop that may leave it alone.

In: what a region did to memory of the graph around it. Out: True, False, or a flag that the program
computes. By the flag, versions count only the writes that happened, as in eager mode. Called by
`join.py` and `loops.py`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.types import bool_
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.storage import FunctionalStorage
from tracejit.jit.capture.subgraph import SubgraphTracer, speculate

Happened = bool | Tensor


def write_condition(
    region: SubgraphTracer, memory: FunctionalStorage | None, before: int
) -> Happened:
    """Return True if a region wrote memory whose version was `before`, else False. Return a flag of
    the region where values decide."""
    if memory is None or memory.version == before:
        return False
    if memory.version - before > len(memory.conditional_writes):
        return True
    with speculate(region), no_grad():
        return reduce(or_, [flag for _, flag in memory.conditional_writes])


def as_flag(region: SubgraphTracer, happened: Happened, like: Happened = True) -> Tensor:
    """Return a condition as a bool tensor of the region, on the device of the flag `like`."""
    if is_a(happened, Tensor):
        return happened
    with speculate(region):
        return full_of(None, (), happened, bool_, like.device if is_a(like, Tensor) else None)
