"""A smaller default group, after processes have died or are left out; PyTorch's `shrink_group`.

In: the ranks that go. Out: the default group of those that stay, with ranks of their own. Called by
programs that go on without a process that died.

Going on after a death needs MPI's fault tolerance (ULFM): Open MPI below `mpiexec --with-ft ulfm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.distributed import groups, recorded
from tracejit.distributed.groups import ProcessGroup

SHRINK_DEFAULT, SHRINK_ABORT = 0, 1
_HEARS = 2.0  # seconds in which the death of a process is heard of


def shrink_group(
    ranks_to_exclude: Sequence[int], group: Any = None, shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> ProcessGroup:  # fmt: skip
    """Go on without some processes: return the new default group of those that stay.

    All that stay call it, and ranks are counted anew. Other groups are gone; make them, and
    DistributedDataParallel, again.

    ranks_to_exclude  those that died, or that leave
    group             the default one only
    shrink_flags      without effect: what waits in the old group always ends with an error

    Raises ValueError for wrong ranks, TypeError if the MPI library cannot go on after a death,
    RuntimeError if other processes died than those named.

    In two processes `shrink_group([1])` in rank 0 leaves a group of one. It cannot leave nobody:

    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> dist.shrink_group([0])
    Traceback (most recent call last):
    ValueError: ranks_to_exclude [0] must be some, not all, of the 1 ranks, each once
    >>> dist.destroy_process_group()
    """
    groups.break_recording()
    found = groups.world()
    if group is not None and group is not found:
        raise TypeError("shrink_group: tracejit shrinks the default group only")
    staying = _staying(ranks_to_exclude, found)
    watch = found.ring.watch
    died = watch is not None and watch.hears_of_failure(_HEARS)
    with found.ring:
        smaller = _after_a_death(found) if died else _of_the_living(found, staying)
        kept = smaller.Get_group()
        ranks = found.library.mpi.Group.Translate_ranks(kept, None, found.communicator.Get_group())
    if list(ranks) != staying:
        raise RuntimeError(f"ranks {list(ranks)} are left, expected {staying}: call shrink_group "
                           "with the ranks of all that died")  # fmt: skip
    if died:
        _leave_the_dead(found, smaller)
    made = ProcessGroup(
        smaller, range(len(staying)), found.backend, found.timeout,
        f"{found.group_name}:{groups.made_since_start()}", None, "default_pg",
    )  # fmt: skip
    made.posted.known = False  # the watch counts ranks as they were
    for one in groups.made():
        recorded.forget(one)
    groups.start_again(made)
    return made


def _staying(excluded: Sequence[int], group: ProcessGroup) -> list[int]:
    gone = set(excluded)
    if not gone or len(gone) != len(excluded) or not gone < set(range(group.size())):
        raise ValueError(f"ranks_to_exclude {list(excluded)} must be some, not all, of the "
                         f"{group.size()} ranks, each once")  # fmt: skip
    if group.rank() in gone:
        raise ValueError(f"rank {group.rank()} is among the excluded ones and must not call "
                         "shrink_group")  # fmt: skip
    return [rank for rank in range(group.size()) if rank not in gone]


def _after_a_death(group: ProcessGroup) -> Any:
    try:
        group.communicator.Revoke()  # ends what others wait for
        return group.communicator.Shrink()
    except (NotImplementedError, group.library.mpi.Exception) as error:
        raise TypeError(
            "this MPI library cannot go on after a process died: Open MPI can, below "
            f"mpiexec --with-ft ulfm ({error or type(error).__name__})"
        ) from error


def _of_the_living(group: ProcessGroup, staying: list[int]) -> Any:
    return group.communicator.Create_group(group.communicator.Get_group().Incl(staying))


def _leave_the_dead(group: ProcessGroup, smaller: Any) -> None:
    """Make the smaller communicator the world of this process."""
    library, ring = group.library, group.ring
    with ring:
        library.world = smaller.Dup()
        library.world.Set_errhandler(library.mpi.ERRORS_RETURN)
    library.rank, library.size, library.shrunk = smaller.Get_rank(), smaller.Get_size(), True
    ring.watch = None  # MPI itself tells of further deaths
