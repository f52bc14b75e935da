"""Record of what a backward frees of a branch or a loop, by the way that the program took. A second
backward is refused where that is gone, and goes through where there was nothing.

In: for each of two ways the parts of the history within that are freed by themselves: the results
that lead through them. What a value decides within a way counts as there.
Out: which parts a backward frees, and whether one needs what another has freed. Where the flag
decides that, its value is needed. `cond_vjp.py` and `loop_vjp.py` make it for their nodes;
`backward_maker.py` notes the flags of the call's own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor

Results = frozenset[int]  # that lead through a part


class BranchFreed:
    """Parts of two ways, of which the first one is taken where `first` holds, or of one way. They
    are numbered in order. `count`: of the results."""

    holds_tensors = True

    def __init__(self, branches: Sequence[Collection[Results]], count: int,
                 first: Tensor | None = None):
        self.branches, self.count, self.first = branches, count, first
        self.parts = [(number, results) for number, branch in enumerate(branches)
                      for results in branch]

    def through(self, results: Collection[int]) -> frozenset[int]:
        """Find the parts that these results lead through."""
        return frozenset([k for k, (_, own) in enumerate(self.parts)
                          if not own.isdisjoint(results)])

    def depends(self, parts: Collection[int]) -> bool:
        """Return True if the flag decides whether one of these parts was there."""
        return bool(parts) and len({self.parts[k][0] for k in parts}) < len(self.branches)

    def needs(self, parts: Collection[int]) -> bool:
        """Return True if one of these parts, which are freed if they were there, was."""
        if not self.depends(parts):
            return bool(parts)
        assert self.first is not None
        if self.first._storage is None:
            tracer: Any = active.tracer
            tracer.undecided()
        return any(self.parts[k][0] == (0 if bool(self.first) else 1) for k in parts)

    def all_over(self, parts: Collection[int]) -> bool:
        """Return True if nothing is left where these parts are freed, on either way."""
        freed = [[self.parts[k][1] for k in parts if self.parts[k][0] == branch]
                 for branch in range(len(self.branches))]
        return all(any(number in results for results in own)
                   for own in freed for number in range(self.count))

    def flag(self, part: int) -> tuple[Tensor, bool] | None:
        """Return the flag that decides whether a part was there, and what it must be; None: it
        was."""
        if self.first is None or set(self.branches[0]) == set(self.branches[1]):
            return None
        return self.first, self.parts[part][0] == 0
