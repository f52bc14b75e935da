"""Memory that is shared if a value says so: after `if c: y = x * 2 else: y = x`, y may be x.

In: pairs of memory and the flag under which they are one, from `branches.py`; writes to either.
Out: a write to one reaches the other where the flag holds. Results that may be the caller's own
tensors are found here when a segment ends. Called by the recorder.
"""

from __future__ import annotations

from typing import Any

from tracejit.capture.aliasing import Memory
from tracejit.capture.breaks import CaptureError
from tracejit.eager.modes import is_grad_enabled, no_grad
from tracejit.eager.tensor import Tensor
from tracejit.ops.pointwise import where


class Sharing:
    """Which memory of a recording may be the same as other memory."""

    def __init__(self, recorder: Any):
        self.recorder = recorder
        self.pairs: dict[Memory, list[tuple[Memory, Tensor]]] = {}

    def add(self, memory: Memory, other: Memory, flag: Tensor) -> None:
        """`memory` is `other` if `flag` holds."""
        self.pairs.setdefault(memory, []).append((other, flag))
        self.pairs.setdefault(other, []).append((memory, flag))

    def written(self, memory: Memory, tensor: Tensor, value: Tensor) -> None:
        """`tensor`, which looks at `memory`, was written: so was what may be the same."""
        if memory not in self.pairs:
            return
        if is_grad_enabled() and (tensor._requires_grad or value._requires_grad):
            raise CaptureError(
                "a tensor that may or may not be another one, depending on a value, is written in "
                "place while gradients are recorded; clone it first"
            )
        self._spread(memory, {memory})

    def _spread(self, memory: Memory, done: set[Memory]) -> None:
        for other, flag in self.pairs.get(memory, ()):
            if other in done:
                continue
            done.add(other)
            recorder = self.recorder
            with no_grad():
                held = [recorder.holding(m.value) for m in (memory, other)]
                merged = where(flag, held[0], held[1])
            other.write(recorder.traced(merged).read())
            self._spread(other, done)

    def flags(self) -> list[Tensor]:
        """All flags in use."""
        return [flag for pairs in self.pairs.values() for _, flag in pairs]

    def of_results(self, results: list[Tensor]) -> list[tuple[Tensor, Tensor, Tensor]]:
        """(result, tensor of the caller that it may be, flag)."""
        found = []
        for tensor in results:
            traced = tensor._traced
            for other, flag in () if traced.views else self.pairs.get(traced.memory, ()):
                if other.owner is not None and traced.memory.owner is None:
                    found.append((tensor, other.owner, flag))
        return found
