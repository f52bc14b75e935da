"""Placements of tensors on processes, plain data; PyTorch's
`torch.distributed.tensor.placement_types`.

In: a dimension, or a reduction. Out: objects to compare. Plans of packages hold them from import
on; nothing here follows such a plan.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Where the parts of a tensor are.

    >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate()
    (True, False, True)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Return True if each process has a part, along this dimension if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return True if each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return True if it is the combination of what processes have."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dimension.

    >>> Shard(1) == Shard(dim=1)
    True
    """

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Each process has several parts along a dimension."""

    _: KW_ONLY
    split_factor: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it.

    >>> Replicate() == Replicate()
    True
    """


@dataclass(frozen=True)
class Partial(Placement):
    """It is the combination of what processes have.

    >>> Partial()
    Partial(sum)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"
