"""Buckets: gradients of several parameters in one piece of memory, which travels at once.

In: parameters in the order in which their gradients become ready. Out: buckets of about so many
bytes, each of one dtype. Called by `reducer`; hooks of users get a bucket as a `GradBucket`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

from tracejit.core.ops.creation import zeros


class Bucket:
    """Memory for some gradients, and how far they are.

    flat     one tensor over all of it, in the order of `parameters`
    views    the part of each parameter, in its shape
    missing  gradients that are not there yet
    owner    rank in the group that gets the means; None if all do
    sparse   the gradient of the one parameter has few rows; it travels as it is

    The memory of a bucket with an owner is there while it is in use. It becomes the gradients of
    the owner.
    """

    def __init__(
        self, indices: Sequence[int], parameters: Sequence[Any], owner: int | None = None,
        sparse: bool = False,
    ) -> None:  # fmt: skip
        self.indices = list(indices)
        self.parameters = [parameters[k] for k in indices]
        self.owner, self.sparse = owner, sparse
        self.sizes = [one.numel() for one in self.parameters]
        self.missing = len(self.indices)
        self.future: Any = None
        self.flat: Any = None
        self.views: list[Any] = []
        if owner is None and not sparse:
            self.open()

    def open(self) -> None:
        """Make the memory, if it is not there."""
        if self.flat is None and not self.sparse:
            self.flat = zeros(sum(self.sizes), dtype=self.parameters[0].dtype,
                              device=self.parameters[0].device)
            self.views = self.parts(self.flat)

    def parts(self, flat: Any) -> list[Any]:
        """Return the part of each parameter in a tensor like `flat`, in its shape."""
        return [part.view(p.shape) for part, p in zip(flat.split(self.sizes), self.parameters)]

    def close(self) -> list[Any]:
        """Forget the memory; return the parts."""
        found, self.views, self.flat = self.views, [], None
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the gradients."""
        return sum(one.nbytes for one in self.parameters)


def make_buckets(
    order: Sequence[int], parameters: Sequence[Any], first: int, most: int,
    owners: Mapping[int, int] | None = None, sparse: Collection[int] = (),
) -> list[Bucket]:  # fmt: skip
    """Return buckets of parameters in this order, of at most so many bytes if several fit.

    first, most  bytes of the first bucket, which is small so that it starts early, and of others
    owners       ranks that alone get the means, by parameter
    sparse       parameters whose gradients are sparse: each has a bucket of its own
    """
    open_ones: dict[Any, tuple[list[int], int]] = {}
    limits: dict[Any, int] = {}
    closed: list[tuple[list[int], int | None]] = []
    for index in order:
        one, owner = parameters[index], (owners or {}).get(index)
        if index in sparse:
            closed.append(([index], None))
            continue
        kind = one.dtype, owner
        indices, size = open_ones.get(kind, ([], 0))
        indices, size = [*indices, index], size + one.nbytes
        if size >= limits.get(kind, first):
            closed.append((indices, owner))
            open_ones.pop(kind, None)
            limits[kind] = most
        else:
            open_ones[kind] = indices, size
    closed += [(indices, owner) for (_, owner), (indices, _) in open_ones.items()]
    return [
        Bucket(indices, parameters, owner, indices[0] in sparse) for indices, owner in closed
    ]


class BuiltinCommHookType(Enum):
    """Hook that a name stands for: the mean as it is, or through float16.

    >>> [one.name for one in BuiltinCommHookType]
    ['ALLREDUCE', 'FP16_COMPRESS']
    """

    ALLREDUCE, FP16_COMPRESS = 1, 2


class GradBucket:
    """Gradients of some parameters in one tensor, as a communication hook sees them.

    `buffer()` has one dimension. The hook returns a future of the tensor that takes its place, of
    the same shape and dtype.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> model = tracejit.nn.parallel.DistributedDataParallel(tracejit.nn.Linear(2, 1))
    >>> def twice(state, bucket):
    ...     print(bucket.index(), bucket.buffer().shape, bucket.is_last())
    ...     future = tracejit.futures.Future()
    ...     future.set_result(2 * bucket.buffer())
    ...     return future
    >>> model.register_comm_hook(None, twice)
    >>> model(tracejit.ones(1, 2)).sum().backward()
    0 tracejit.Size([3]) True
    >>> model.module.weight.grad
    tensor([[2., 2.]])
    >>> dist.destroy_process_group()
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
        return self._bucket.parts(self._buffer)

    def parameters(self) -> list[Any]:
        """Return the parameters whose gradients these are."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Return True for the bucket that is sent last."""
        return self._last
