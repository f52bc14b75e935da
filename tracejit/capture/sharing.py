"""Memory that is shared if a value says so: after `if c: y = x * 2 else: y = x`, y may be x.

In: pairs of memory and the flag under which they are one, from `branches.py`; writes to either.
Out: a write to one reaches the other where the flag holds. Results that may be the caller's own
tensors are found here when a segment ends. Called by the recorder.
"""

from __future__ import annotations

import weakref
from typing import Any

from tracejit.capture.aliasing import Memory
from tracejit.eager.modes import no_grad
from tracejit.eager.tensor import Tensor
from tracejit.ops.pointwise import where


class Sharing:
    """Which memory of a recording may be the same as other memory."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.pairs: dict[Memory, list[tuple[Memory, Tensor]]] = {}
        self.identities: list[tuple[weakref.ref[Tensor], weakref.ref[Tensor], Tensor]] = []

    def add(self, memory: Memory, other: Memory, flag: Tensor) -> None:
        """`memory` is `other` if `flag` holds."""
        self.pairs.setdefault(memory, []).append((other, flag))
        self.pairs.setdefault(other, []).append((memory, flag))

    def written(self, memory: Memory) -> None:
        """`memory` was written: so was what may be the same."""
        if memory in self.pairs:
            with no_grad():
                self._spread(memory, memory, None, {memory})

    def _spread(self, written: Memory, memory: Memory, when: Tensor | None,
                path: set[Memory]) -> None:
        """`memory` is `written` if `when` holds; so is what is `memory` under its own flag."""
        recorder = self.recorder
        for other, flag in self.pairs.get(memory, ()):
            if other in path:
                continue
            both = flag if when is None else flag & when
            new, old = recorder.holding(written.value), recorder.holding(other.value)
            other.write(recorder.traced(where(both, new, old)).read(), counted=False)
            self._spread(written, other, both, {*path, other})

    def flags(self) -> list[Tensor]:
        """All flags in use."""
        return [flag for pairs in self.pairs.values() for _, flag in pairs]

    def unite(self, roots: dict[Memory, Tensor]) -> None:
        """The program has run, `roots` are the tensors it made: memory that was the same is."""
        for _ in self.pairs:
            for memory, pairs in self.pairs.items():
                for other, flag in pairs:
                    if memory.owner is None and _holds(flag, roots):
                        self._join(memory, other, roots)

    @staticmethod
    def _join(memory: Memory, other: Memory, roots: dict[Memory, Tensor]) -> None:
        if other.owner is not None:
            memory.owner = other.owner
        elif memory in roots and other in roots:
            roots[memory] = roots[other] = min(roots[memory], roots[other], key=id)

    def identify(self, result: Tensor, other: Tensor, flag: Tensor) -> None:
        """`result` is the very tensor `other` if `flag` holds."""
        self.identities.append((weakref.ref(result), weakref.ref(other), flag))

    def of_results(self, results: list[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """(result, tensor made outside or other result that it may be, flag)."""
        wanted = {id(t) for t in results}
        found = []
        for result, other, flag in self.identities:
            one, same = result(), other()
            if one is None or same is None or id(one) not in wanted:
                continue
            if same._traced is None or id(same) in wanted:
                found.append((one, same, flag))
        return found

    def only_in_part(self, results: list[Tensor]) -> bool:
        """Whether a result may share the caller's memory without being the caller's tensor."""
        known = {id(r()) for r, _, _ in self.identities}
        return any(
            other.owner is not None
            for t in results if t._traced is not None and t._traced.memory.owner is None
            if id(t) not in known or t._traced.views
            for other, _ in self.pairs.get(t._traced.memory, ()))


def _holds(flag: Tensor, roots: dict[Memory, Tensor]) -> bool:
    if flag._traced is None:
        return bool(flag.array)
    root = roots.get(flag._traced.memory)
    return root is not None and bool(root.array)


def become_view(tensor: Tensor, of: Tensor) -> None:
    """A concrete tensor that turned out to be another one shares its history from now on."""
    if tensor._requires_grad or of._requires_grad:
        shown = of.view(of.shape)
        tensor._node, tensor._output_nr = shown._node, shown._output_nr
        tensor._requires_grad, tensor._view = shown._requires_grad, shown._view
