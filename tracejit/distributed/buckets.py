"""Buckets: gradients of several parameters in one piece of memory, which travels at once.

In: parameters in the order in which their gradients become ready. Out: buckets of about so many
bytes, each of one dtype. Called by `reducer`; hooks of users get a bucket as a `GradBucket`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tracejit.core.ops.creation import zeros


class Bucket:
    """Memory for some gradients, and how far they are.

    flat     one tensor over all of it
    views    the part of each parameter, in its shape
    missing  gradients that are not there yet
    """

    def __init__(self, indices: Sequence[int], parameters: Sequence[Any]) -> None:
        self.indices = list(indices)
        self.parameters = [parameters[k] for k in indices]
        sizes = [one.numel() for one in self.parameters]
        self.flat = zeros(sum(sizes), dtype=self.parameters[0].dtype)
        self.views = [
            part.view(one.shape) for part, one in zip(self.flat.split(sizes), self.parameters)
        ]
        self.missing = len(self.indices)
        self.future: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return int(self.flat.nbytes)


def make_buckets(
    order: Sequence[int], parameters: Sequence[Any], first: int, most: int
) -> list[Bucket]:
    """Return buckets of parameters in this order, of at most so many bytes if several fit.

    first, most  bytes of the first bucket, which is small so that it starts early, and of others
    """
    open_ones: dict[Any, tuple[list[int], int]] = {}
    limits: dict[Any, int] = {}
    closed: list[list[int]] = []
    for index in order:
        one = parameters[index]
        indices, size = open_ones.get(one.dtype, ([], 0))
        indices, size = [*indices, index], size + one.nbytes
        if size >= limits.get(one.dtype, first):
            closed.append(indices)
            open_ones.pop(one.dtype, None)
            limits[one.dtype] = most
        else:
            open_ones[one.dtype] = indices, size
    closed += [indices for indices, _ in open_ones.values()]
    return [Bucket(indices, parameters) for indices in closed]


class BuiltinCommHookType(Enum):
    """Hook that a name stands for: the mean as it is, or through float16."""

    ALLREDUCE, FP16_COMPRESS = 1, 2


class GradBucket:
    """A bucket as a communication hook sees it.

    The hook returns a future of the tensor that takes the place of `buffer()`.
    """

    def __init__(self, bucket: Bucket, index: int, last: bool, buffer: Any = None) -> None:
        self._bucket, self._index, self._last = bucket, index, last
        self._buffer = bucket.flat if buffer is None else buffer

    def index(self) -> int:
        """Return the bucket's place in the order in which buckets are sent."""
        return self._index

    def buffer(self) -> Any:
        """Return the gradients, one behind the other, as a tensor of one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Put another tensor in the place of the buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Any]:
        """Return the gradient of each parameter, views of the buffer."""
        sizes = [one.numel() for one in self._bucket.parameters]
        parts = self._buffer.split(sizes)
        return [part.view(one.shape) for part, one in zip(parts, self._bucket.parameters)]

    def parameters(self) -> list[Any]:
        """Return the parameters whose gradients these are."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Return True for the bucket that is sent last."""
        return self._last
