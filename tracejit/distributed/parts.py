"""Lists of tensors as one piece of memory, which MPI reads or writes: a part for each process.

In: tensors of one dtype. Out: the memory that begins with the first of them where they lie one
behind the other, as chunks of one tensor do; else memory of its own, and a function that copies
results back. Called by `exchanges` and `all_to_all_exchanges`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops.creation import empty
from tracejit.core.ops.types import dtype
from tracejit.distributed.buffers import Target, consecutive, source, target, together


def sent_parts(tensors: Sequence[Any], name: str, kind: dtype | None = None) -> Any:
    """Return the tensors' elements in a dtype, one tensor behind the other."""
    first = tensors[0]
    if consecutive(tensors) and kind in (None, first.dtype):
        return source(first, name)
    counts = [one.numel() for one in tensors]
    whole = empty((sum(counts),), dtype=kind or first.dtype, device=first.device)
    for part, one in zip(whole.split(counts), tensors):
        part.copy_(one.detach().reshape(-1))
    return whole


def received_parts(tensors: Sequence[Any], name: str) -> Target:
    """Return memory for the elements of the tensors, one tensor behind the other."""
    if consecutive(tensors):
        return target(tensors[0], name)
    counts = [one.numel() for one in tensors]
    whole = empty((sum(counts),), dtype=tensors[0].dtype, device=tensors[0].device)
    to = target(whole, name)

    def spread() -> None:
        for one, part in zip(tensors, whole.split(counts)):
            one.detach().copy_(part.view(one.shape))

    return Target(to.tensor, together(to.finish, spread))
