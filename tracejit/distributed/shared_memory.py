"""Files of MPICH's shared memory, which lose their names so that a killed job leaves none.

In: what this process has mapped, or the name of a job. Out: no file. Called by `mpi` once all ranks
of the host have the memory, and by `job_server` for jobs that were killed before that.

Other libraries take their names away themselves: UCX at once, Open MPI's launcher at the end.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

FOLDER = Path("/dev/shm")
_OWN = re.compile(rf"{FOLDER}/(mpich_(?:shm|vci)_[0-9a-f]+_\d+)$", re.MULTILINE)


def unlink_mapped(maps: Path = Path("/proc/self/maps")) -> None:
    """Take the names of this process's memory away: whoever has it goes on to see it."""
    try:
        text = maps.read_text()
    except OSError:  # a system without it
        return
    for name in set(_OWN.findall(text)):
        with contextlib.suppress(OSError):
            (FOLDER / name).unlink()


def unlink_of_job(name: str) -> None:
    """Remove what a job of this name (PMI's kvsname) left when its ranks were killed."""
    for file in FOLDER.glob(f"mpich_*_{_hash(name):x}_*"):
        with contextlib.suppress(OSError):
            file.unlink()


def _hash(name: str) -> int:
    """Return the number by which MPICH names a job's files: FNV-1a of 32 bits.

    >>> hex(_hash("tracejit_927faa091339264b"))
    '0xbfd2c8b'
    """
    found = 2166136261
    for byte in name.encode():
        found = (found ^ byte) * 16777619 & 0xFFFFFFFF
    return found
