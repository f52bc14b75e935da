"""Collectives of Python objects, which travel pickled in tensors of bytes.

In: picklable objects. Out: their copies in other processes. Called by programs, and by
checkpoints for their plans.

An object is unpickled only if a process of the group sent it. Unpickling runs code of the sender's
choice: all processes of a job trust each other.
"""

from __future__ import annotations

import pickle
from typing import Any

from tracejit.core.eager.construction import tensor
from tracejit.core.eager.existing_memory import frombuffer
from tracejit.core.ops.creation import empty
from tracejit.core.ops.types import int64, uint8
from tracejit.distributed.collectives import broadcast
from tracejit.distributed.exchanges import all_gather_single, gather, scatter
from tracejit.distributed.group_ranks import get_group_rank
from tracejit.distributed.groups import ProcessGroup, member
from tracejit.distributed.point_to_point import recv, send


def _packed(value: Any) -> Any:
    return frombuffer(bytearray(pickle.dumps(value)), dtype=uint8)


def _unpacked(packed: Any, size: int) -> Any:
    return pickle.loads(packed.numpy()[:size].tobytes())


def _sizes(group: ProcessGroup, own: int) -> list[int]:
    """Return the number of bytes that each process of the group has."""
    sizes = empty((group.size(),), dtype=int64)
    all_gather_single(sizes, tensor([own], dtype=int64), group)
    return [int(n) for n in sizes.tolist()]


def _padded(packed: Any, size: int) -> Any:
    padded = empty((size,), dtype=uint8)
    padded[: packed.numel()] = packed
    return padded


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give every process the objects of all, in the order of ranks.

    object_list  as many elements as processes, which are replaced
    obj          any object that `pickle` takes; sizes may differ between processes
    group        a `ProcessGroup`; the default one if None

    Unpickling runs code of the sender's choice: use it only among processes that trust each other.

    Two processes both have [{'loss': 0.5, 'rank': 0}, {'loss': 0.5, 'rank': 1}] after this.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> every = [None] * dist.get_world_size()
    >>> dist.all_gather_object(every, {"loss": 0.5, "rank": dist.get_rank()})
    >>> every
    [{'loss': 0.5, 'rank': 0}]
    >>> dist.destroy_process_group()
    """
    found = member(group, "all_gather_object")
    if found is None:
        return
    packed = _packed(obj)
    sizes = _sizes(found, packed.numel())
    most = max(sizes)
    every = empty((found.size(), most), dtype=uint8)
    all_gather_single(every, _padded(packed, most), found)
    for k, (row, size) in enumerate(zip(every, sizes)):
        object_list[k] = _unpacked(row, size)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
    group: Any = None, group_dst: int | None = None,
) -> None:  # fmt: skip
    """Collect the objects of all processes in `dst`, rank 0 if it is not named.

    obj    any object that `pickle` takes
    object_gather_list  in `dst` as many elements as processes, which are replaced; None elsewhere
    dst    global rank of the receiver; `group_dst` is its rank in the group, in place of it
    group  a `ProcessGroup`; the default one if None

    Raises ValueError for a list that is missing in `dst` or is there elsewhere.

    In two processes, rank 0 has ['from 0', 'from 1'] after this.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> every = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    >>> dist.gather_object(f"from {dist.get_rank()}", every)
    >>> every
    ['from 0']
    >>> dist.destroy_process_group()
    """
    found = member(group, "gather_object")
    if found is None:
        return
    root = _root(found, dst, group_dst, "dst")
    here = found.rank() == root
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    packed = _packed(obj)
    sizes = _sizes(found, packed.numel())
    most = max(sizes)
    rows = list(empty((found.size(), most), dtype=uint8)) if here else None
    gather(_padded(packed, most), rows, group=found, group_dst=root)
    if here and object_gather_list and rows:
        object_gather_list[: found.size()] = [
            _unpacked(row, size) for row, size in zip(rows, sizes)
        ]


def _root(group: ProcessGroup, rank: int | None, of_group: int | None, what: str) -> int:
    if rank is not None and of_group is not None:
        raise ValueError(f"Can't specify both group_{what} and {what}")
    if of_group is not None:
        return of_group
    return 0 if rank is None else get_group_rank(group, rank)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Give the objects of a list in `src`, rank 0 if it is not named, to all processes.

    object_list  of the same length everywhere; its elements are replaced outside `src`
    src          global rank of the giver; `group_src` is its rank in the group, in place of it
    group        a `ProcessGroup`; the default one if None
    device       taken, and without effect

    All other processes have the objects of rank 0 after this.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> options = ["adam", {"lr": 0.1}] if dist.get_rank() == 0 else [None, None]
    >>> dist.broadcast_object_list(options)
    >>> options
    ['adam', {'lr': 0.1}]
    >>> dist.destroy_process_group()
    """
    found = member(group, "broadcast_object_list")
    if found is None:
        return
    root = _root(found, src, group_src, "src")
    if found.rank() == root:
        packed = [_packed(value) for value in object_list]
        sizes = tensor([one.numel() for one in packed], dtype=int64)
    else:
        packed, sizes = [], empty((len(object_list),), dtype=int64)
    broadcast(sizes, group=found, group_src=root)
    for k, size in enumerate(sizes.tolist()):
        moved = packed[k] if packed else empty((int(size),), dtype=uint8)
        broadcast(moved, group=found, group_src=root)
        if not packed:
            object_list[k] = _unpacked(moved, int(size))


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Give each process one object of a list in `src`, rank 0 if it is not named.

    scatter_object_output_list  its first element is replaced
    scatter_object_input_list   in `src` as many objects as processes; not read elsewhere
    src    global rank of the giver; `group_src` is its rank in the group, in place of it
    group  a `ProcessGroup`; the default one if None

    Raises ValueError for an output list without an element, and for an input list of another
    length.

    In two processes, rank 1 has ['part 1'] after this.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> own = [None]
    >>> dist.scatter_object_list(own, [f"part {k}" for k in range(dist.get_world_size())])
    >>> own
    ['part 0']
    >>> dist.destroy_process_group()
    """
    found = member(group, "scatter_object_list")
    if found is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at "
                         "least 1.")
    root = _root(found, src, group_src, "src")
    here = found.rank() == root
    packed = [_packed(value) for value in scatter_object_input_list or ()] if here else []
    if here and len(packed) != found.size():
        raise ValueError("scatter_object_input_list must have an object for each process")
    most = tensor([max([one.numel() for one in packed], default=0)], dtype=int64)
    broadcast(most, group=found, group_src=root)
    own = empty((1,), dtype=int64)
    sizes = [tensor([one.numel()], dtype=int64) for one in packed]
    scatter(own, sizes or None, group=found, group_src=root)
    received = empty((int(most.item()),), dtype=uint8)
    rows = [_padded(one, int(most.item())) for one in packed]
    scatter(received, rows or None, group=found, group_src=root)
    scatter_object_output_list[0] = _unpacked(received, int(own.item()))


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects of a list to a process, which calls `recv_object_list`.

    object_list  objects that `pickle` takes
    dst          global rank of the receiver; `group_dst` is its rank in the group, in place of it
    group        a `ProcessGroup`; the default one if None
    device, use_batch  taken, and without effect

    Raises ValueError for a rank that is this process's own or not in the group.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> found = ["adam", 0.1] if rank == 0 else [None, None]
    >>> if rank == 0:
    ...     for other in range(1, size):
    ...         dist.send_object_list(found, other)
    ... else:
    ...     sender = dist.recv_object_list(found, 0)
    >>> found
    ['adam', 0.1]
    >>> dist.destroy_process_group()
    """
    found = member(group, "send_object_list")
    if found is None:
        return
    packed = [_packed(value) for value in object_list]
    send(tensor([one.numel() for one in packed], dtype=int64), dst, found, group_dst=group_dst)
    for one in packed:
        send(one, dst, found, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Receive the objects of a list of the same length; return the sender's rank, as it was named.

    object_list  as many elements as were sent, which are replaced
    src          global rank of the sender; any if neither it nor `group_src` is named
    group        a `ProcessGroup`; the default one if None
    device, use_batch  taken, and without effect

    Returns -1 outside the group. Unpickling runs code of the sender's choice: use it only among
    processes that trust each other.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> found = [(1, 2)] if rank == 0 else [None]
    >>> if rank == 0:
    ...     for other in range(1, size):
    ...         dist.send_object_list(found, other)
    ... else:
    ...     sender = dist.recv_object_list(found, src=0)
    >>> found
    [(1, 2)]
    >>> dist.destroy_process_group()
    """
    found = member(group, "recv_object_list")
    if found is None:
        return -1
    sizes = empty((len(object_list),), dtype=int64)
    sender = recv(sizes, src, found, group_src=group_src)
    for k, size in enumerate(sizes.tolist()):
        moved = empty((int(size),), dtype=uint8)
        recv(moved, sender, found)
        object_list[k] = _unpacked(moved, int(size))
    return sender

