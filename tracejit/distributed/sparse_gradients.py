"""The mean of sparse gradients: each process sends the rows that it has.

In: a sparse gradient of each process, or none. Out: their mean, with every row once. Called by
`reducer` for the weights of `Embedding(sparse=True)`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.construction import tensor
from tracejit.core.ops.creation import empty, zeros
from tracejit.core.ops.joining import cat
from tracejit.core.ops.types import int64
from tracejit.distributed.exchanges import all_gather_single
from tracejit.distributed.groups import ProcessGroup
from tracejit.sparse import sparse_coo_tensor


class SparseMean:
    """Mean of gradients, begun: the processes tell each other how many rows they have.

    grad     of one sparse dimension; None where this process has no gradient
    like     the parameter
    divisor  by which the sum is divided
    """

    def __init__(self, grad: Any, like: Any, divisor: int, group: ProcessGroup) -> None:
        self.like, self.divisor, self.group = like, divisor, group
        if grad is None:
            self.rows = empty(0, dtype=int64)
            self.values = empty((0, *like.shape[1:]), dtype=like.dtype)
        else:
            whole = grad.coalesce()
            self.rows, self.values = whole.indices()[0], whole.values()
        self._counts = empty(group.size(), dtype=int64)
        own = tensor([self.rows.numel()], dtype=int64)
        self._told = all_gather_single(self._counts, own, group, async_op=True)

    def wait(self) -> Any:
        """Send the rows, and return the mean. All processes call it in the same order."""
        if self._told is not None:
            self._told.wait()
        counts = [int(count) for count in self._counts.tolist()]
        if not max(counts):
            rows, values = self.rows, self.values
        else:
            rows = self._gathered(self.rows, counts)
            values = self._gathered(self.values, counts) / self.divisor
        return sparse_coo_tensor(rows.unsqueeze(0), values, self.like.shape).coalesce()

    def _gathered(self, own: Any, counts: list[int]) -> Any:
        """Return the rows of all processes, one behind the other."""
        most = max(counts)
        padded = zeros((most, *own.shape[1:]), dtype=own.dtype)
        padded[: own.shape[0]] = own
        every = empty((len(counts), *padded.shape), dtype=own.dtype)
        all_gather_single(every, padded, self.group)
        return cat([part[:count] for part, count in zip(every, counts)])
