"""A debugger in one process, and names for what is profiled.

In: a rank. Out: the other processes wait at a barrier. Called by people who debug.
"""

from __future__ import annotations

import pdb
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from tracejit.distributed import group_ranks, groups
from tracejit.distributed.collectives import barrier

_calls: dict[str, int] = {}


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Start pdb in one process; the others wait until it goes on.

    rank       global rank of the process with the debugger
    skip       the first so many calls from one place do nothing
    timeout_s  seconds that collectives may take from now on; None leaves them

    Raises ValueError if there is no default group.

    >>> import tracejit.distributed as dist
    >>> for step in range(3):
    ...     dist.breakpoint(rank=0, skip=3)  # pdb would start in the fourth step
    """
    if skip > 0:
        place = "".join(traceback.format_stack())
        _calls[place] = _calls.get(place, 0) + 1
        if _calls[place] <= skip:
            return
    if timeout_s is not None:
        for group in groups.made():
            group.set_timeout(timedelta(seconds=timeout_s))
    if group_ranks.get_rank() == rank:
        print(f"Type 'up' to get to the frame that called breakpoint(rank={rank})", flush=True)
        with open("/dev/stdin") as terminal:  # launchers may have closed Python's own
            pdb.Pdb(stdin=terminal, stdout=sys.stdout).set_trace()
    barrier()


@contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Do nothing: profiles show collectives under their own names.

    name  of the `with` block

    >>> import tracejit.distributed as dist
    >>> with dist.record_comm("gradients"):
    ...     print(dist.is_initialized())
    False
    """
    yield
