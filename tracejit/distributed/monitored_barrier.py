"""A barrier that names the processes that do not come.

In: a timeout. Out: nothing, or an error with the missing ranks. Called by programs that hang.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from tracejit.core.ops.creation import empty, zeros
from tracejit.core.ops.types import uint8
from tracejit.distributed.groups import ProcessGroup, member
from tracejit.distributed.point_to_point import irecv, isend
from tracejit.distributed.work import Work

_TAG = 32_000  # no program's own message has it, we hope: MPI allows tags up to 32,767


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes of the group are here; rank 0 names those that are not.

    group           a `ProcessGroup`; the default one if None
    timeout         a `timedelta`; that of the group if None
    wait_all_ranks  True: names all missing ranks; else the first

    Raises RuntimeError in all processes that came, if one does not come in time.

    If rank 1 of two stays away, rank 0 says "Ranks 1 failed to pass monitoredBarrier in 5000 ms".

    >>> import tracejit.distributed as dist
    >>> from datetime import timedelta
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.monitored_barrier(timeout=timedelta(seconds=5))
    >>> dist.destroy_process_group()
    """
    found = member(group, "monitored_barrier")
    if found is None or found.size() == 1:
        return
    limit = found.timeout if timeout is None else timeout
    if found.rank() == 0:
        _collect(found, limit, wait_all_ranks)
        return
    # rank 0 answers when all have come, so it may take as long as the slowest one
    isend(zeros(1, dtype=uint8), group=found, tag=_TAG, group_dst=0)
    answer = irecv(empty(1, dtype=uint8), group=found, tag=_TAG, group_src=0)
    try:
        _wait(answer, limit.total_seconds())
    except RuntimeError as error:
        raise RuntimeError(f"Rank {found.rank()} successfully reached monitoredBarrier, but "
                           "received errors while waiting for send/recv from rank 0. Please check "
                           f"rank 0 logs for faulty rank. ({error})") from None


def _wait(work: Work | None, seconds: float) -> None:
    if work is not None:
        work.wait(timedelta(seconds=max(seconds, 1e-3)))


def _collect(group: ProcessGroup, limit: timedelta, every: bool) -> None:
    deadline = time.monotonic() + limit.total_seconds()
    works = [
        irecv(empty(1, dtype=uint8), group=group, tag=_TAG, group_src=k)
        for k in range(1, group.size())
    ]
    missing = []
    for k, work in enumerate(works, 1):
        try:
            _wait(work, deadline - time.monotonic())
        except RuntimeError:
            missing.append(group.ranks[k])
            if not every:
                break
    if missing:
        milliseconds = round(limit.total_seconds() * 1000)
        ranks = ", ".join(str(rank) for rank in missing)
        raise RuntimeError(f"[Rank 0]: Ranks {ranks} failed to pass monitoredBarrier in "
                           f"{milliseconds} ms")
    for k in range(1, group.size()):
        isend(zeros(1, dtype=uint8), group=group, tag=_TAG, group_dst=k)
