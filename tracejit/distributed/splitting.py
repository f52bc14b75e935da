"""Groups that a group is cut into.

In: a group and lists of ranks in it. Out: the part in which this process is. Called by programs.
Only the group's own processes take part, not those of the whole job.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tracejit.distributed import groups
from tracejit.distributed.groups import Backend, ProcessGroup


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | Backend | None = None,
) -> ProcessGroup | None:
    """Return the part of a group in which this process is; None if it is in no part.

    parent_pg    the default group if None; all its processes must call this with the same ranks
    split_ranks  lists of ranks in the parent; no rank may be in two
    timeout      a `timedelta` for its collectives; that of the parent if None
    group_desc   a text that its attribute `group_desc` keeps
    backend      as for `init_process_group`; that of the parent if None

    Raises ValueError for lists that are empty, have a rank twice or one that the parent has not.

    Four processes and [[0, 1], [2, 3]] give two groups, each with the ranks 0 and 1.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> part = dist.split_group(split_ranks=[[0]])
    >>> part.ranks, part.rank()
    ([0], 0)
    >>> dist.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    groups.break_recording()
    parent = groups.world() if parent_pg is None else groups.member(parent_pg, "split_group")
    if parent is None:
        raise ValueError("split_group: this process is not part of the parent group")
    parts = [[int(rank) for rank in part] for part in split_ranks]
    every = [rank for part in parts for rank in part]
    if not all(parts):
        raise ValueError("the split group cannot be empty")
    if len(set(every)) != len(every):
        raise ValueError("the split group cannot have duplicate ranks")
    if any(not 0 <= rank < parent.size() for rank in every):
        raise ValueError(f"split_ranks: the parent group has {parent.size()} ranks")
    found = [k for k, part in enumerate(parts) if parent.rank() in part]
    color = found[0] if found else parent.library.mpi.UNDEFINED
    with parent.ring:
        communicator = parent.communicator.Split(color, parent.rank())
    if not found:
        return None
    number = found[0]
    return groups.adopt(
        parent, communicator, [parent.ranks[rank] for rank in sorted(parts[number])], timeout,
        parent.backend if backend is None else Backend(str(backend)),
        group_desc or f"{parent.group_desc}:split:{number}",
    )  # fmt: skip
