"""Record of what is freed of a call's history, where its tape was laid again. The call's own
backwards and those through the tape free the same.

In: the parts of the history that are freed by themselves, the nodes of the call's stages, nodes of
tapes that were laid.
Out: both are told what the other freed. Used by `rebuilt_tape.py` and
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
Part = tuple[int, int]  # the number of a node of the tape, which of its parts, or WHOLE


class Freed:
    """Parts of one call's history that are freed.

    parts   for each stage, for each bit of what it frees: the parts
    stages  the nodes that stand for the stages, as long as somebody holds them
    """

    def __init__(self, parts: Sequence[Sequence[Collection[Part]]],
                 stages: Sequence[weakref.ref | None]):
        self.parts, self.stages = parts, stages
        self.over: set[Part] = set()
        self.laid: weakref.WeakSet[Any] = weakref.WeakSet()
        for number, node in self._nodes():
            self.over |= self._of(number, node.freed)

    def add(self, node: Any, number: int) -> None:
        """Add a node of a tape that is laid."""
        node.number, node.call_freed = number, self
        self.laid.add(node)
        node.lose(self.over)

    def by_stage(self, number: int, bits: int) -> None:
        """Free what a backward of the call has freed: these bits of a stage."""
        self.free(self._of(number, bits))

    def free(self, gone: set[Part]) -> None:
        """Free all that stands for these parts with them, once the backward is over. It may run
        through a stage and what was laid of it as well, where the plain one runs once."""
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
    """Node that tells what a backward frees of it, and is told."""

    __slots__ = ()
    number: int
    call_freed: Freed

    def release(self) -> None:
        super().release()  # type: ignore[misc]
        me: Any = self
        parts = {WHOLE} if getattr(self, "freeing", None) is None else me.over
        self.call_freed.free({(self.number, k) for k in parts})

    def lose(self, parts: Collection[Part]) -> None:
        """Take note that these are freed, some of them perhaps its own."""
        own = {k for number, k in parts if number == self.number}
        if WHOLE in own:
            super().release()  # type: ignore[misc]
        elif own:
            super().free(frozenset(own))  # type: ignore[misc]


@functools.cache
def laid_class(kind: type[Node]) -> Any:
    """Make the class of such nodes of a kind; it bears the same name."""
    return type(kind.__name__, (_LaidNode, kind), {"__slots__": ("number", "call_freed")})
