"""Several groups at once, over parts of the default group.

In: a size, or lists of ranks. Out: the group of this process, and all groups. Called by programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tracejit.distributed.groups import new_group, world


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Cut the default group into groups of `group_size` neighbours, those of one host if None.

    group_size  number of processes of each group
    timeout, backend, group_desc  as for `new_group`

    Returns this process's group and the list of all. Raises ValueError if the size does not divide
    the number of processes.

    Four processes and a size of 2 give the groups [0, 1] and [2, 3].

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own, every = dist.new_subgroups(1)
    >>> own.ranks, len(every)
    ([0], 1)
    >>> dist.destroy_process_group()
    """
    base = world()
    size = base.library.local_size if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if base.size() < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size "
                         f"({base.size()})")
    if base.size() % size:
        raise ValueError(f"The world size ({base.size()}) must be divisible by 'group_size={size}'")
    parts = [list(range(k, k + size)) for k in range(0, base.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of global ranks; no rank may be in two.

    ranks_per_subgroup_list  lists of global ranks
    timeout, backend, group_desc  as for `new_group`

    Returns this process's group, or None, and the list of all. Raises ValueError for an empty list
    and for a rank in two.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own, every = dist.new_subgroups_by_enumeration([[0]])
    >>> own.ranks, own is every[0]
    ([0], True)
    >>> dist.destroy_process_group()
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError("a rank is in two of the subgroups")
    own, made = None, []
    for ranks in ranks_per_subgroup_list:
        one = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(one)
        if world().rank() in ranks:
            own = one
    return own, made
