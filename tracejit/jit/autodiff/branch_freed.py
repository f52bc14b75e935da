"""Record of the parts of a branch or a loop that a backward frees, for each way of the program. A
second backward raises if it leads through a freed part. It passes if the program took the way
without that part.

In: for each of two ways the parts of the history within it, each as the results that lead through
it. A part that depends on a value within its way counts as there.
Out: the parts that a backward frees, and whether a backward leads through freed ones. Where the
flag decides that, its value is read. `cond_vjp.py` and `loop_vjp.py` make the record for their
nodes; `backward_maker.py` saves the flags of the call's own parts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor

Results = frozenset[int]  # that lead through a part


class BranchFreed:
    """Parts of one way, or of two ways of which the program takes the first where `first` is true.
    Parts are numbered in order. `count`: number of results."""

    holds_tensors = True

    def __init__(self, branches: Sequence[Collection[Results]], count: int,
                 first: Tensor | None = None):
        self.branches, self.count, self.first = branches, count, first
        self.parts = [(number, results) for number, branch in enumerate(branches)
                      for results in branch]

    def through(self, results: Collection[int]) -> frozenset[int]:
        """Return the parts that these results lead through."""
        return frozenset([k for k, (_, own) in enumerate(self.parts)
                          if not own.isdisjoint(results)])

    def depends(self, parts: Collection[int]) -> bool:
        """Return True if the flag decides whether any of these parts was there."""
        return bool(parts) and len({self.parts[k][0] for k in parts}) < len(self.branches)

    def needs(self, parts: Collection[int]) -> bool:
        """Return True if any of these freed parts lies on the way that the program took. A deferred
        flag breaks the graph first, or refuses the region."""
        if not self.depends(parts):
            return bool(parts)
        assert self.first is not None
        if self.first._storage is None:
            tracer: Any = active.tracer
            tracer.undecided()
        return any(self.parts[k][0] == (0 if bool(self.first) else 1) for k in parts)

    def all_over(self, parts: Collection[int]) -> bool:
        """Return True if on either way each result leads through one of these freed parts."""
        freed = [[self.parts[k][1] for k in parts if self.parts[k][0] == branch]
                 for branch in range(len(self.branches))]
        return all(any(number in results for results in own)
                   for own in freed for number in range(self.count))

    def flag(self, part: int) -> tuple[Tensor, bool] | None:
        """Return the flag that decides whether a part was there, and the value it must have. None
        if there is one way only, or if both have the same parts."""
        if self.first is None or set(self.branches[0]) == set(self.branches[1]):
            return None
        return self.first, self.parts[part][0] == 0
