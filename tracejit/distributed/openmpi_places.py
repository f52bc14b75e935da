"""Places in a job of Open MPI for processes that its launcher did not start.

In: the number of processes of this host. Out: variables with which MPI_Init of each finds the
others. Called by `rendezvous` in rank 0.

Open MPI asks a server of PMIx, which only its own launcher has. So `prterun` starts a *stand-in*
for each rank: it hands its variables over, and sleeps until the job ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tracejit.core.memory import forks

LAUNCHERS = ("prterun", "orterun")  # of Open MPI 5, and of 4
_PATIENCE = 60.0  # seconds for the stand-ins to come
_HANDED = ("OMPI_", "PMIX_", "PRTE_", "ORTE_", "OPAL_")
# Schedulers whose hosts Open MPI's launcher would use.
_ALLOCATIONS = ("SLURM_", "PBS_", "LSB_", "LSF_", "JOB_ID", "PE_HOSTFILE")
# Rank 0 holds a pipe, which breaks when it ends. Then the stand-ins end, and the launcher with
# them; processes that still are in MPI_Finalize get some seconds.
_STAND_IN = """
import contextlib, os, sys, time
folder, size = sys.argv[1], int(sys.argv[2])
file = os.path.join(folder, os.environ["PMIX_RANK"])
with open(file + ".part", "w") as opened:
    opened.write("\\0".join(name + "=" + value for name, value in os.environ.items()))
os.replace(file + ".part", file)
with open(os.path.join(folder, "rank0"), "rb") as pipe:
    pipe.read()
with contextlib.suppress(OSError):
    deadline = time.monotonic() + 3
    while sum(name.endswith(".over") for name in os.listdir(folder)) < size:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
sys.exit(1)
"""


def launcher() -> str | None:
    """Return the path of Open MPI's launcher: beside Python, else on PATH; None if there is none.
    """
    for name in LAUNCHERS:
        beside = Path(sys.executable).with_name(name)
        found = str(beside) if beside.exists() else shutil.which(name)
        if found:
            return found
    return None


class StandIns:
    """Stand-ins of a job's ranks, all on this host, until `close`.

    variables  for each rank

    Raises RuntimeError if Open MPI's launcher is not there, or cannot start them.
    """

    def __init__(self, size: int) -> None:
        found = launcher()
        if found is None:
            raise RuntimeError(
                "Open MPI's launcher (prterun) is neither beside Python nor on PATH, and without "
                "it processes that were not started by mpiexec cannot find each other: start them "
                "by mpiexec, or use MPICH (pip install mpich)"
            )
        self._folder = Path(tempfile.mkdtemp(prefix="tracejit-openmpi-"))
        self._output = (self._folder / "output").open("w+")
        os.mkfifo(self._folder / "rank0", 0o600)
        self._pipe: int | None = os.open(self._folder / "rank0", os.O_RDWR)
        self._process = subprocess.Popen(
            [found, "--map-by", ":oversubscribe", "--bind-to", "none", "-n", str(size),
             sys.executable, "-S", "-E", "-c", _STAND_IN, str(self._folder), str(size)],
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output, env=_environment(),
            start_new_session=True,  # it ends by itself, and removes its files, when rank 0 is gone
        )  # fmt: skip
        forks.in_child(self._let_go)
        try:
            self.variables = [self._variables(rank) for rank in range(size)]
        except BaseException:
            self.close(0.0)
            raise

    def _variables(self, rank: int) -> dict[str, str]:
        file, deadline = self._folder / str(rank), time.monotonic() + _PATIENCE
        while not file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._output.seek(0)
                raise RuntimeError("Open MPI's launcher cannot start its part of the job: "
                                   + (self._output.read().strip() or "it does not answer"))
            time.sleep(0.005)
        told = dict(part.split("=", 1) for part in file.read_text().split("\0") if "=" in part)
        found = {name: value for name, value in told.items() if name.startswith(_HANDED)}
        return found | {"TRACEJIT_OPENMPI": str(file)}

    def _let_go(self) -> None:
        """Close the pipe. A forked child closes its copy: else it would keep the stand-ins."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def close(self, patience: float = 5.0) -> None:
        """End the stand-ins, once all ranks have left MPI.

        patience  seconds to wait for that
        """
        self._let_go()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        self._output.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def leave(variables: Mapping[str, str]) -> None:
    """Tell rank 0's stand-in that this process has left MPI."""
    file = variables.get("TRACEJIT_OPENMPI")
    if file:
        with contextlib.suppress(OSError):  # rank 0 is gone, and its folder
            Path(file + ".over").touch()


def packed(variables: Mapping[str, str] | None, error: str = "") -> bytes:
    """Return variables, or why there are none, for the job's store.

    >>> unpacked(packed({"PMIX_RANK": "0"}))
    {'PMIX_RANK': '0'}
    """
    return json.dumps({"variables": variables, "error": error}).encode()


def unpacked(data: bytes) -> dict[str, str]:
    """Return the variables; RuntimeError for the reason why there are none."""
    told = json.loads(data)
    if told["error"]:
        raise RuntimeError(told["error"])
    return dict(told["variables"])


def _environment() -> dict[str, str]:
    """Return the environment of the launcher: it must take hosts from no scheduler."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ALLOCATIONS)}
    if os.geteuid() == 0:
        # this process is root's already, and the stand-ins do nothing
        for name in ("PRTE_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"):
            kept |= {name: "1", f"{name}_CONFIRM": "1"}
    return kept
