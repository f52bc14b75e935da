"""Warns where a process that has started MPI forks.

In: a fork by the program, such as `multiprocessing.Process` with the start method "fork". Out: one
RuntimeWarning. Called by `distributed.mpi`, once MPI runs, and by the loader for `runs_mpi`.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings

TEXT = (
    "this process has started MPI (init_process_group), and forks: the child shares MPI's "
    "connections and memory, and must not use tracejit.distributed; start processes by "
    "multiprocessing.get_context('spawn') or 'forkserver'"
)
_told: set[int] = set()


def runs_mpi() -> bool:
    """Return True if MPI runs in this process, whoever started it."""
    module = sys.modules.get("mpi4py.MPI")
    if module is None:
        return False
    return bool(module.Is_initialized() and not module.Is_finalized())


@functools.cache
def install() -> None:
    """Warn from now on, once a process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn)


def _warn() -> None:
    if os.getpid() in _told or not runs_mpi():
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        frame, level = frame.f_back, level + 1
        name = frame.f_globals.get("__name__", "")
        if name == "subprocess":  # the child becomes another program at once
            return
        if not name.startswith("multiprocessing"):
            break
    _told.add(os.getpid())
    warnings.warn(TEXT, RuntimeWarning, stacklevel=level)
