"""Check before a replay that memory a program writes overlaps no other input.

In: an entry's graph inputs of one call, and which of them the program writes. Out:
`NoAliasCheck.holds`. Called by `entry`.

The program was recorded with inputs that did not overlap. In a later call they may overlap, or be
read-only. Where a snapshot covers inputs, the check sorts their spans once. Each call compares only
the other inputs with those.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.storage import readonly
from tracejit.jit.capture.storage import byte_range, has_internal_overlap

Span = tuple[int, int, bool]  # first address, address after the last, written by the program


class NoAliasCheck:
    """Check of the inputs of one entry. `written`: the numbers of the inputs that the program
    writes."""

    def __init__(self, written: Sequence[int]):
        self.written = frozenset(written)
        self.known: tuple[Any, int, _Spans | None] = (None, 0, None)

    def holds(self, inputs: Sequence[Any], snapshot: Any) -> bool:
        """Return True if no written input overlaps another one, and each may be written."""
        if snapshot is None:
            return self._spans(inputs, range(len(inputs))) is not None
        vouched, count, fixed = self.known
        if vouched is not snapshot or count != readonly.count:
            uncovered = set(snapshot.uncovered)
            rest = [k for k in range(len(inputs)) if k not in uncovered]
            fixed = self._spans(inputs, rest)
            self.known = snapshot, readonly.count, fixed
        moving = self._spans(inputs, snapshot.uncovered)
        if fixed is None or moving is None:
            return False
        return not any(map(fixed.meets, moving.sorted))

    def _spans(self, inputs: Sequence[Any], numbers: Sequence[int]) -> _Spans | None:
        """Return the spans of these inputs; None where a written one overlaps another or is
        read-only."""
        tensors = [k for k in numbers if isinstance(inputs[k], Tensor)]
        written = [inputs[k] for k in tensors if k in self.written]
        if any(x._storage.readonly or has_internal_overlap(x) for x in written):
            return None
        spans = [(*byte_range(inputs[k]), k in self.written) for k in tensors]
        found = _Spans(sorted(span for span in spans if span[0] < span[1]))
        return None if found.overlap else found


class _Spans:
    """Spans in order of their starts.

    For each span there is the furthest end up to it, of all spans and of the written ones.
    """

    def __init__(self, spans: list[Span]):
        self.sorted = spans
        self.starts = [start for start, _, _ in spans]
        self.ends: list[int] = []
        self.written_ends: list[int] = []
        self.overlap = False
        end = written_end = 0
        for start, own_end, written in spans:
            self.overlap |= start < (end if written else written_end)
            end = max(end, own_end)
            written_end = max(written_end, own_end) if written else written_end
            self.ends.append(end)
            self.written_ends.append(written_end)

    def meets(self, span: Span) -> bool:
        """Return True if a span overlaps one of these, and one of the two is written."""
        start, end, written = span
        before = bisect.bisect_left(self.starts, end)
        return before > 0 and start < (self.ends if written else self.written_ends)[before - 1]
