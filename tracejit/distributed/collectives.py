"""Collectives that combine or spread one tensor: sums, broadcasts, barriers.

In: tensors of any dtype and layout. Out: results in the same tensors, or a `Work` with
`async_op=True`. Called by programs, by DistributedDataParallel and by optimizers. Every process of
a group calls the same ones in the same order; `exchanges` has those with several tensors.

MPI gets the addresses of tensors that lie in one piece. Halves are combined in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from tracejit.distributed import agreement, recorded
from tracejit.distributed.buffers import (
    check_same_dtype,
    check_tensor,
    check_tensors,
    reduced_in,
    source,
    target,
    together,
)
from tracejit.distributed.debug_level import DebugLevel, get_debug_level
from tracejit.distributed.device_groups import carrier
from tracejit.distributed.groups import ProcessGroup, member
from tracejit.distributed.operation import Operation
from tracejit.distributed.reduce_op import ReduceOp, mpi_operation
from tracejit.distributed.work import Work

Finish = Callable[[], None] | None


def post(
    group: ProcessGroup, name: str, function: str, count: int, arguments: Sequence[int | None],
    keep: Any, wakes: bool, finish: Finish = None,
) -> Operation:  # fmt: skip
    """Post one of MPI's nonblocking functions; it may count 64-bit numbers of elements."""
    address = group.library.counting(function, count)
    if get_debug_level() is DebugLevel.DETAIL and isinstance(group, ProcessGroup):
        agreement.check(group, name, function, count, arguments, keep)
    made = group.ring.post(name, address, arguments, keep, finish, wakes)
    made.count = count
    group.posted.count += 1
    if group.posted.known and group.ring.watch is not None:
        made.look = partial(group.ring.watch.look_for_missing, group, group.posted.count, name)
    return made


def ended(group: ProcessGroup, operations: Sequence[Operation], results: Sequence[Any],
          async_op: bool) -> Work | None:  # fmt: skip
    """Return a handle, or wait and return None, as PyTorch does."""
    work = Work(operations, results, group.seconds)
    if async_op:
        return work
    work.wait()
    return None


def handle(work: Work, async_op: bool) -> Work | None:
    """Return a recorded collective's handle where one was asked for."""
    return work if async_op else None


def all_reduce(
    tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes, in place: all have the same result then.

    tensor    of the same shape and dtype in all processes; real, complex, integer or bool
    op        `ReduceOp.SUM` (default), AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR
    group     a `ProcessGroup`; the default one if None
    async_op  True: returns a `Work` at once; the result is there after its `wait()`

    Returns None without `async_op`, and in processes outside the group, with a warning. Raises
    TypeError for what is no tensor, RuntimeError for operations that the dtype has not, and for a
    process that died or came too late. Halves are combined in float32.

    Two processes with [1., 2.] and [3., 4.] both have [4., 6.] after it.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.tensor([1.0, 2.0])
    >>> dist.all_reduce(x, dist.ReduceOp.SUM)
    >>> x
    tensor([1., 2.])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "all_reduce")
    if found is None:
        return None
    if recorded.records_for(tensor):
        return handle(recorded.all_reduce(tensor, op, found), async_op)
    operation = start_all_reduce(tensor, op, carrier(found, tensor), "all_reduce", async_op)
    return ended(found, [operation], [tensor], async_op)


def start_all_reduce(
    tensor: Any, op: Any, group: ProcessGroup, name: str, wakes: bool
) -> Operation:
    """Post the sum of a tensor over the group. `wakes`: nobody waits for it at once."""
    asked = mpi_operation(name, op, tensor.dtype)
    kind = reduced_in(tensor.dtype)
    to = target(tensor, name, kind)
    library = group.library
    arguments = (
        library.in_place, to.tensor.data_ptr(), to.tensor.numel(), library.element(kind.name),
        library.operation(asked), group.handle, None,
    )  # fmt: skip
    finish = together(averaging(op, to.tensor, group), to.finish)
    return post(group, name, "Iallreduce", to.tensor.numel(), arguments, to.tensor, wakes, finish)


def averaging(op: Any, tensor: Any, group: ProcessGroup) -> Finish:
    """Return what divides a sum by the number of processes, if a mean was asked for."""
    if op is not ReduceOp.AVG:
        return None
    return lambda: tensor.div_(group.size())


def all_reduce_coalesced(
    tensors: Sequence[Any], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine each of several tensors over all processes, in place, as `all_reduce` does.

    tensors   a list of tensors of any shapes and one dtype, alike in all processes
    op        `ReduceOp.SUM` (default), or another one
    group     a `ProcessGroup`; the default one if None
    async_op  True: returns one `Work` for all of them

    Raises TypeError for what is no list of tensors, ValueError for several dtypes.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> pair = [tracejit.ones(2), tracejit.zeros(1)]
    >>> dist.all_reduce_coalesced(pair)
    >>> pair
    [tensor([1., 1.]), tensor([0.])]
    >>> dist.destroy_process_group()
    """
    check_tensors(tensors, "tensor")
    check_same_dtype(tensors)
    found = member(group, "all_reduce_coalesced")
    if found is None:
        return None
    if recorded.records_for(*tensors):
        for tensor in tensors:
            recorded.all_reduce(tensor, op, found, "all_reduce_coalesced")
        return handle(recorded.done(tensors), async_op)
    operations = [
        start_all_reduce(tensor, op, carrier(found, tensor), "all_reduce_coalesced", True)
        for tensor in tensors
    ]
    return ended(found, operations, tensors, async_op)


def root_of(
    group: ProcessGroup, rank: int | None, of_group: int | None, what: str, default: int | None = 0
) -> int:
    """Return the rank in the group of a root that the caller names globally, or in the group."""
    if rank is not None and of_group is not None:
        raise ValueError(f"Can't specify both group_{what} and {what}")
    if of_group is not None:
        if not 0 <= of_group < group.size():
            raise RuntimeError(f"invalid root rank: {of_group}")
        return of_group
    if rank is None:
        if default is None:
            raise ValueError(f"Must specify {what} or group_{what}")
        return default
    if rank not in group.ranks:
        if group.ranks == list(range(group.size())):
            raise RuntimeError(f"invalid root rank: {rank}")
        raise ValueError(f"Global rank {rank} is not part of group {group}")
    return group.ranks.index(rank)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give the tensor of one process to all others, in place.

    tensor     of the same shape and dtype in all processes; read in `src`, written elsewhere
    src        global rank of the giver; `group_src` is its rank in the group, in place of it
    group      a `ProcessGroup`; the default one if None
    async_op   True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for both or none of `src` and `group_src`, and for a rank outside the group.

    In two processes, rank 1 has [3., 4.] after this too, whatever its tensor held before.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.tensor([3.0, 4.0]) if dist.get_rank() == 0 else tracejit.zeros(2)
    >>> dist.broadcast(x, src=0)
    >>> x
    tensor([3., 4.])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "broadcast")
    if found is None:
        return None
    root = root_of(found, src, group_src, "src", None if src is None else 0)
    if recorded.records_for(tensor):
        return handle(recorded.broadcast(tensor, root, found), async_op)
    operation = start_broadcast(tensor, root, carrier(found, tensor), "broadcast", async_op)
    return ended(found, [operation], [tensor], async_op)


def start_broadcast(
    tensor: Any, root: int, group: ProcessGroup, name: str, wakes: bool
) -> Operation:
    """Post a broadcast from a rank of the group."""
    finish: Finish = None
    if root == group.rank():
        moved = source(tensor, name)
    else:
        moved, finish = target(tensor, name)
    count = moved.numel()
    word = group.library.word(moved.dtype.itemsize)
    arguments = (moved.data_ptr(), count, word, root, group.handle, None)
    return post(group, name, "Ibcast", count, arguments, moved, wakes, finish)


def reduce(
    tensor: Any, dst: int | None = None, op: ReduceOp = ReduceOp.SUM, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Combine the tensors of all processes in that of `dst`; the others keep theirs.

    tensor    of the same shape and dtype in all processes; written in `dst` only
    dst       global rank of the receiver; `group_dst` is its rank in the group, in place of it
    op        `ReduceOp.SUM` (default), AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR
    group     a `ProcessGroup`; the default one if None
    async_op  True: returns a `Work` at once; the result is there after its `wait()`

    Raises ValueError for both or none of `dst` and `group_dst`, and RuntimeError for operations
    that the dtype has not.

    Two processes with 1 and 2: rank 0 has 3 after this, rank 1 still 2.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> x = tracejit.tensor(dist.get_rank() + 1)
    >>> dist.reduce(x, dst=0)
    >>> x
    tensor(1)
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "reduce")
    if found is None:
        return None
    root = root_of(found, dst, group_dst, "dst", None)
    if recorded.records_for(tensor):
        return handle(recorded.reduce(tensor, root, op, found), async_op)
    found = carrier(found, tensor)
    asked = mpi_operation("reduce", op, tensor.dtype)
    kind = reduced_in(tensor.dtype)
    library, finish = found.library, None
    if found.rank() == root:
        moved, finish = target(tensor, "reduce", kind)
        finish = together(averaging(op, moved, found), finish)
        first, second = library.in_place, moved.data_ptr()
    else:
        moved = source(tensor, "reduce", kind)
        first, second = moved.data_ptr(), 0
    arguments = (
        first, second, moved.numel(), library.element(kind.name), library.operation(asked), root,
        found.handle, None,
    )  # fmt: skip
    operation = post(
        found, "reduce", "Ireduce", moved.numel(), arguments, moved, async_op, finish
    )
    return ended(found, [operation], [tensor], async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:  # fmt: skip
    """Wait until all processes of the group are here.

    group       a `ProcessGroup`; the default one if None
    async_op    True: returns a `Work` at once, whose `wait()` waits
    device_ids  taken, and without effect on the CPU
    timeout     a `timedelta`; that of the group if None

    Raises RuntimeError if a process died, or if one does not come in time.

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.barrier()
    >>> dist.destroy_process_group()
    """
    found = member(group, "barrier")
    if found is None:
        return None
    if recorded.records_for():
        return handle(recorded.barrier(found), async_op)
    operation = post(found, "barrier", "Ibarrier", 0, (found.handle, None), None, async_op)
    seconds = found.seconds if timeout is None else timeout.total_seconds()
    work = Work([operation], [], seconds)
    if async_op:
        return work
    work.wait()
    return None

