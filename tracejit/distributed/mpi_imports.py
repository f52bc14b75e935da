"""Keeps packages from starting MPI before the processes of a job know each other.

In: an import of `mpi4py.MPI`, which starts MPI for one process. Out: ImportError, unless a launcher
of MPI started the process, or MPI stays unstarted. Called by `python -m tracejit run`: packages
import the module to see if a launcher was there, and MPI starts once for a process.
"""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any

from tracejit.distributed import environment


class MPIFinder(importlib.abc.MetaPathFinder):
    """Refuses to import `mpi4py.MPI` where that would start MPI for this process alone."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname == "mpi4py.MPI":
            settings = getattr(sys.modules.get("mpi4py"), "rc", None)
            place = environment.read()
            if getattr(settings, "initialize", True) and not (place is not None and place.by_mpi):
                raise ImportError(
                    "mpi4py.MPI would start MPI for this process alone: import it below mpiexec, "
                    "or after torch.distributed.init_process_group, or set "
                    "mpi4py.rc.initialize = False before", name=fullname)
        return None
