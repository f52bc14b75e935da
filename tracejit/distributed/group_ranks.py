"""Ranks, sizes and backends of groups of processes.

In: a `ProcessGroup`, or None for the default one. Out: numbers and names. Called by programs.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed import environment
from tracejit.distributed.groups import Backend, GroupMember, ProcessGroup, note_use, world


def get_rank(group: Any = None) -> int:
    """Return the rank of this process in a group, the default one if None; -1 outside it.

    group  a `ProcessGroup`, `GroupMember.NON_GROUP_MEMBER` or None

    Ranks count from 0 to `get_world_size() - 1`. Raises ValueError if there is no default group.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_rank(), dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER)
    (0, -1)
    >>> dist.destroy_process_group()
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return (world() if group is None else group).rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of processes in a group, the default one if None; -1 outside it.

    group  a `ProcessGroup`, `GroupMember.NON_GROUP_MEMBER` or None

    Raises ValueError if there is no default group.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return (world() if group is None else group).size()


def get_backend(group: Any = None) -> Backend:
    """Return the backend's name, as it was asked for.

    group  a `ProcessGroup`; the default one if None

    Raises ValueError if there is no default group.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group("mpi", rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_backend()
    'mpi'
    >>> dist.destroy_process_group()
    """
    found = world() if group is None else group
    note_use(found)
    return found.backend


def get_backend_config(group: Any = None) -> str:
    """Return the backends by kind of device, such as "cpu:mpi,cuda:mpi".

    group  a `ProcessGroup`; the default one if None

    Raises ValueError if there is no default group.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group("mpi", rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_backend_config()
    'cpu:mpi,cuda:mpi'
    >>> dist.destroy_process_group()
    """
    name = str(get_backend(group))
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the global ranks of a group, in its order.

    group  a `ProcessGroup`; the default one if None

    In two processes the default group gives [0, 1].

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_process_group_ranks(None)
    [0]
    >>> dist.destroy_process_group()
    """
    found = world() if group is None else group
    note_use(found)
    return list(found.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the global rank of a rank in a group; ValueError if there is none.

    group       a `ProcessGroup`
    group_rank  from 0 to the group's size - 1

    In a group of the ranks [2, 3] the rank 0 is the global rank 2.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_global_rank(dist.new_group([0]), 0)
    0
    >>> dist.destroy_process_group()
    """
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a global rank; ValueError if it is not in it.

    group        a `ProcessGroup`
    global_rank  rank in the default group

    In a group of the ranks [2, 3] the global rank 2 is the rank 0.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.get_group_rank(dist.new_group([0]), 0)
    0
    >>> dist.destroy_process_group()
    """
    note_use(group)
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank of this process among those of its host.

    fallback_rank  is returned if no launcher said it

    Raises RuntimeError if no launcher said it and there is no `fallback_rank`.

    >>> get_node_local_rank(fallback_rank=0)
    0
    """
    found = environment.read()
    if found is not None and found.local_rank >= 0:
        return found.local_rank
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to "
                       "allow `get_node_local_rank` to work, assuming you are not running in a "
                       "multi-device context and want the code to run locally instead.")
