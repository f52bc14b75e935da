"""Rows that a sparse gradient has, each once, for optimizers that read and write few rows.

In: a sparse gradient. Out: `Rows`: sums of what belongs to one row, the rows of dense tensors
there, writes of these. Within a captured call the number of rows is not known. There are as many as
the gradient has elements, and the first of each row counts. Called by: `optim`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.ops.creation import ones, zeros
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise import where
from tracejit.core.ops.types import bool_, int64
from tracejit.sparse.tensor import SparseTensor


class Rows:
    """Sums of a gradient by row.

    values  (n, ...), in order of the rows; within a captured call, of the gradient's elements
    """

    def __init__(self, grad: SparseTensor):
        # A captured graph has fixed sizes, and the number of different rows depends on values.
        if active.tracer is None or grad.coalesced:
            self.grad, self.first = grad.coalesce(), None
        else:
            self.grad, self.first = _summed(grad)
        self.values = self.grad.elements

    def of(self, dense: Any) -> Any:
        """Return these rows of a dense tensor (n, ...)."""
        return dense[tuple(self.grad.positions)]

    def add_to(self, dense: Any, change: Any) -> None:
        """Add to these rows of a dense tensor, in place."""
        if self.first is not None:
            counts = self.first.view((-1,) + (1,) * (change.dim() - 1))
            # Only the first element of each row adds, so that a row is not changed twice.
            change = where(counts, change, zeros((), dtype=change.dtype, device=change.device))
        self.grad._with(change).add_into(dense)


def _summed(grad: SparseTensor) -> tuple[SparseTensor, Any]:
    """Return for each element the sum of those at its position, and True for the first of these."""
    place = grad.flat_positions()
    order = place.argsort(stable=True)
    sorted_places = place[order]
    starts = cat([ones(1, dtype=bool_, device=place.device)[:place.shape[0]],
                  sorted_places[1:] != sorted_places[:-1]])
    number = zeros(place.shape, dtype=int64, device=place.device)
    # Back from sorted order: the number of the row that each element belongs to.
    number = number.scatter(0, order, starts.cumsum(0) - 1)
    first = zeros(place.shape, dtype=bool_, device=place.device).scatter(0, order, starts)
    sums = zeros(grad.elements.shape, dtype=grad.dtype, device=place.device)
    return grad._with(sums.index_add(0, number, grad.elements)[number]), first
