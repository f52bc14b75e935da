"""Record of what is freed of a call's history, when its tape was laid again. A backward of the call
and one through a laid tape free the same parts.

In: the parts of the history that are freed by themselves, the nodes of the call's stages, nodes of
laid tapes.
Out: stages and laid nodes learn what the others freed. Used by `rebuilt_tape.py` and
`jit/runtime/later_backward.py`.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Collection, Sequence
from typing import Any

from tracejit.core.eager.nodes import Node
from tracejit.core.eager.recording import active

WHOLE = -1
Part = tuple[int, int]  # number of a node of the tape, number of its part or WHOLE


class Freed:
    """Freed parts of one call's history.

    parts   for each stage, for each bit of its `freed`: the parts that this bit stands for
    stages  weak references to the nodes of the stages; None: a stage without node
    over    the freed parts
    laid    nodes of laid tapes
    """

    def __init__(self, parts: Sequence[Sequence[Collection[Part]]],
                 stages: Sequence[weakref.ref | None]):
        self.parts, self.stages = parts, stages
        self.over: set[Part] = set()
        self.laid: weakref.WeakSet[Any] = weakref.WeakSet()
        for number, node in self._nodes():
            self.over |= self._of(number, node.freed)

    def add(self, node: Any, number: int) -> None:
        """Add node `number` of a tape that was laid, and free what is freed of it already."""
        node.number, node.call_freed = number, self
        self.laid.add(node)
        node.lose(self.over)

    def by_stage(self, number: int, bits: int) -> None:
        """Free what a backward of the call has freed: these bits of a stage."""
        self.free(self._of(number, bits))

    def free(self, gone: set[Part]) -> None:
        """Free these parts in all stages and laid nodes, once the running backward is over. That
        backward may run through a stage and a tape laid for it as well, where the plain function's
        runs once."""
        if active.freeing is None:
            self._free(gone)
        else:
            active.freeing.append(lambda: self._free(gone))

    def _free(self, gone: set[Part]) -> None:
        self.over |= gone
        for node in list(self.laid):
            node.lose(gone)
        for number, node in self._nodes():
            node.free(sum([1 << k for k, known in enumerate(self.parts[number])
                           if not gone.isdisjoint(known)]))

    def _of(self, stage: int, bits: int) -> set[Part]:
        return {part for k, parts in enumerate(self.parts[stage]) if bits >> k & 1
                for part in parts}

    def _nodes(self) -> list[tuple[int, Any]]:
        found = [(k, None if at is None else at()) for k, at in enumerate(self.stages)]
        return [(k, node) for k, node in found if node is not None]


class _LaidNode:
    """Node of a laid tape. It tells `Freed` what a backward frees of it, and learns what others
    freed."""

    __slots__ = ()
    number: int
    call_freed: Freed

    def release(self) -> None:
        super().release()  # type: ignore[misc]
        me: Any = self
        # Only nodes of branches and loops (`freeing`) are freed in parts.
        parts = {WHOLE} if getattr(self, "freeing", None) is None else me.over
        self.call_freed.free({(self.number, k) for k in parts})

    def lose(self, parts: Collection[Part]) -> None:
        """Free those of these parts that are the node's own."""
        own = {k for number, k in parts if number == self.number}
        if WHOLE in own:
            super().release()  # type: ignore[misc]
        elif own:
            super().free(frozenset(own))  # type: ignore[misc]


@functools.cache
def laid_class(kind: type[Node]) -> Any:
    """Return the subclass of a node class for laid tapes. It has the same name, which users see."""
    return type(kind.__name__, (_LaidNode, kind), {"__slots__": ("number", "call_freed")})
