"""Variables of a rolled loop: those it carries, tensors it scans, rows it stores.

In: tensors and numbers, before the loop and in an iteration. Out: records that `loop_body.py` makes
while a body is recorded; `loops.py` and the gradient read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.looking import is_a
from tracejit.jit.ir.graph import Value


@dataclass(eq=False)
class CarriedVar:
    """Tensor, or number, of a variable: before the loop, at an iteration's start and end."""

    name: str
    outer: Any  # what it is before the loop: a Tensor, an int, a float
    start: Any  # the placeholder: a Tensor, a GraphSymNumber
    input: Value  # its value in the region's graph
    origin: Tensor | None  # where gradients of the placeholder arrive
    end: Any = None
    filled: bool = False  # `outer` is zeros that nobody reads
    strides: Any = None  # after the loop
    # another variable: after one iteration this is what that was before the loop
    first_of: CarriedVar | None = None

    @property
    def requires_grad(self) -> bool:
        """Flag: the placeholder required grad when the iteration started."""
        return self.origin is not None

    @property
    def rebased(self) -> bool:
        """Flag: a write in place gave the placeholder another history."""
        node = None if self.origin is None else self.origin._node
        return self.start._node is not node

    @property
    def is_tensor(self) -> bool:
        return is_a(self.outer, Tensor)


@dataclass(eq=False)
class ScannedInput:
    """Tensor of the parent of which each iteration sees one slice, `item`."""

    source: Tensor
    whole: Tensor  # what all iterations see of it, stacked along dimension 0
    item: Tensor
    input: Value
    origin: Tensor | None


@dataclass(eq=False)
class StackedStore:
    """Store `target[i] = row`: each iteration writes one slice of a tensor of the parent."""

    target: Tensor
    dim: int
    start: Any
    step: int
    rows: Tensor  # the row of this iteration

    def write(self, whole: Tensor, trip_count: Any) -> None:
        """Write the stacked rows of all iterations to the target, after the loop."""
        if self.step < 0:
            whole = whole.flip(0)
        first = self.start if self.step > 0 else self.start + self.step * (trip_count - 1)
        moved = self.target.movedim(self.dim, 0) if self.dim else self.target
        step = abs(self.step)
        whole_target = (type(first) is int and first == 0 and step == 1
                        and moved.shape[0] == trip_count)
        view = moved if whole_target else moved[first : first + step * (trip_count - 1) + 1 : step]
        view.copy_(whole)
