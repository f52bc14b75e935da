"""Messages from one process to another: `send`, `recv`, and their forms that return at once.

In: tensors of any dtype and layout. Out: the tensor of the receiver is written. Called by programs,
and by `objects` for pickled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.distributed.buffers import check_tensor, source, target
from tracejit.distributed.device_groups import DeviceGroup, carrier, on_cpu
from tracejit.distributed.group_ranks import get_rank
from tracejit.distributed.groups import ProcessGroup, member, world
from tracejit.distributed.work import Work


def _peer(group: ProcessGroup, rank: int | None, of_group: int | None, what: str) -> int:
    """Return a peer's rank in the group, with PyTorch's errors."""
    if rank is not None and of_group is not None:
        raise ValueError(f"Can't specify both group_{what} and {what}")
    if of_group is not None:
        found = of_group
    elif rank is None:
        raise ValueError(f"Must specify {what} or group_{what}")
    elif rank not in group.ranks:
        raise ValueError(f"Global rank {rank} is not part of group {group}")
    else:
        found = group.ranks.index(rank)
    if not 0 <= found < group.size():
        raise ValueError(f"Group rank {found} is not part of group {group}")
    kind = "destination" if what == "dst" else "source"
    if found == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of "
                         "the current process.")
    return found


def _start(function: str, tensor: Any, peer: int | None, tag: int, group: ProcessGroup, wakes: bool,
           name: str) -> Work:  # fmt: skip
    group = carrier(group, tensor)
    if function == "Isend":
        moved, finish = source(tensor, name), None
    else:
        moved, finish = target(tensor, name)
    count, library = moved.numel(), group.library
    asked, peer = peer, library.any_source if peer is None else peer
    arguments = (
        moved.data_ptr(), count, library.word(moved.dtype.itemsize), peer, tag, group.handle, None
    )  # fmt: skip
    address = library.counting(function, count)
    ring = group.messages(asked) if isinstance(group, DeviceGroup) else group.ring
    operation = ring.post(name, address, arguments, moved, finish, wakes)
    return Work([operation], [tensor], group.seconds, find_source=library.source_of)


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Start to send a tensor to a process; it must not change before the `wait()`.

    tensor  of any shape and dtype; the receiver's has the same ones
    dst     global rank of the receiver; `group_dst` is its rank in the group, in place of it
    group   a `ProcessGroup`; the default one if None
    tag     an integer from 0 to 32767; the receiver must ask for the same

    Returns a `Work`; None outside the group. Raises ValueError for a rank that is this process's
    own or not in the group, and for both or none of `dst` and `group_dst`.

    Rank 0 sends to all others here; a process alone has nobody to send to.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> x = tracejit.ones(2) if rank == 0 else tracejit.zeros(2)
    >>> if rank == 0:
    ...     works = [dist.isend(x, other) for other in range(1, size)]
    ... else:
    ...     works = [dist.irecv(x, 0)]
    >>> all(work.wait() for work in works), x
    (True, tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "isend")
    if found is None:
        return None
    return _start("Isend", tensor, _peer(found, dst, group_dst, "dst"), tag, found, True, "isend")


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Start to receive a tensor from a process; it is there after the `wait()`.

    tensor  is written; of the same shape and dtype as the sender's
    src     global rank of the sender; any if neither it nor `group_src` is named
    group   a `ProcessGroup`; the default one if None
    tag     an integer from 0 to 32767, the sender's

    Returns a `Work`, whose `source_rank()` is the sender's rank in the group; None outside the
    group. Raises ValueError for a rank that is this process's own or not in the group.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> x = tracejit.tensor([7.0 if rank == 0 else 0.0])
    >>> if rank == 0:
    ...     for other in range(1, size):
    ...         dist.send(x, other)
    ... else:
    ...     done = dist.irecv(x, src=0).wait()
    >>> x
    tensor([7.])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "irecv")
    if found is None:
        return None
    anybody = src is None and group_src is None
    peer = None if anybody else _peer(found, src, group_src, "src")
    return _start("Irecv", tensor, peer, tag, found, True, "irecv")


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Send a tensor to a process, and wait until it may change again.

    tensor  of any shape and dtype; the receiver's has the same ones
    dst     global rank of the receiver; `group_dst` is its rank in the group, in place of it
    group   a `ProcessGroup`; the default one if None
    tag     an integer from 0 to 32767; the receiver must ask for the same

    Raises ValueError for a rank that is this process's own or not in the group, RuntimeError if
    that process died or does not receive in time.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> x = tracejit.tensor([1, 2]) if rank == 0 else tracejit.tensor([0, 0])
    >>> if rank == 0:
    ...     for other in range(1, size):
    ...         dist.send(x, dst=other)
    ... else:
    ...     sender = dist.recv(x, src=0)
    >>> x
    tensor([1, 2])
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "send")
    if found is not None:
        peer = _peer(found, dst, group_dst, "dst")
        _start("Isend", tensor, peer, tag, found, False, "send").wait()


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """Receive a tensor of the same shape and dtype as was sent; return the sender's global rank.

    tensor  is written
    src     global rank of the sender; any if neither it nor `group_src` is named
    group   a `ProcessGroup`; the default one if None
    tag     an integer from 0 to 32767, the sender's

    Returns -1 outside the group. Raises ValueError for a rank that is this process's own or not in
    the group, RuntimeError if that process died or does not send in time.

    Rank 0 hears of all others here, in the order in which they come.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> x, senders = tracejit.tensor([rank]), set()
    >>> if rank > 0:
    ...     dist.send(x, 0)
    ... else:
    ...     senders = {dist.recv(x) for _ in range(1, size)}
    >>> rank > 0 or senders == set(range(1, size))
    True
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group, "recv")
    if found is None:
        return -1
    anybody = src is None and group_src is None
    peer = None if anybody else _peer(found, src, group_src, "src")
    work = _start("Irecv", tensor, peer, tag, found, False, "recv")
    work.wait()
    return found.ranks[work.source_rank() if anybody else peer]


class P2POp:
    """One message of a batch: `isend` or `irecv`, its tensor and its peer.

    op      `isend` or `irecv`
    tensor  that is sent or written
    peer    global rank of the other process; `group_peer` is its rank in the group, in place of it
    group   a `ProcessGroup`; the default one if None
    tag     an integer from 0 to 32767, the same in both processes

    Raises ValueError for any other function, TypeError for what is no tensor.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> message = dist.P2POp(dist.isend, tracejit.ones(2), peer=1)
    >>> message.op is dist.isend, message.peer, message.tag
    (True, 1, 0)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: Any = None,
        tag: int = 0, group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type "
                             "``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer, self.group_peer = peer, group_peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__}, rank {get_rank()}, peer {self.peer})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages; return a `Work` of each.

    p2p_op_list  list of `P2POp`, all of one group

    Raises ValueError for an empty list, and for messages of several groups or of another type.

    Every process sends its rank to the next one here, and has that of the one before after it.
    A process alone has no neighbours, so that its list is empty.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> rank, size = dist.get_rank(), dist.get_world_size()
    >>> own, found = tracejit.tensor([rank]), tracejit.tensor([rank])
    >>> batch = [dist.P2POp(dist.isend, own, (rank + 1) % size)]
    >>> batch += [dist.P2POp(dist.irecv, found, (rank - 1) % size)]
    >>> for work in dist.batch_isend_irecv(batch) if size > 1 else []:
    ...     done = work.wait()
    >>> found.item() == (rank - 1) % size
    True
    >>> dist.destroy_process_group()
    """
    _check_batch(p2p_op_list)
    group = p2p_op_list[0].group
    found = world() if group is None else group
    if isinstance(found, ProcessGroup) and not on_cpu(one.tensor for one in p2p_op_list):
        with carrier(found, *(one.tensor for one in p2p_op_list)).ring.together():
            return _started(p2p_op_list)
    return _started(p2p_op_list)


def _started(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    works = []
    for one in p2p_op_list:
        named = {"group_dst" if one.op is isend else "group_src": one.group_peer}
        work = one.op(one.tensor, one.peer, group=one.group, tag=one.tag, **named)
        if work is not None:
            works.append(work)
    return works


def _check_batch(batch: Sequence[Any]) -> None:
    if not isinstance(batch, (list, tuple)) or not all(isinstance(o, P2POp) for o in batch):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to "
                         "to be of type ``torch.distributed.P2POp``.")  # fmt: skip
    if not batch:
        raise ValueError("p2p_op_list must not be empty")
    if any(one.group is not batch[0].group for one in batch):
        raise ValueError("All ops need to use the same group.")
