"""Places in a job of Open MPI for processes that its launcher did not start.

In: the hosts of a job's ranks, and its store. Out: variables with which MPI_Init of each rank finds
the others. Called by `rendezvous`.

Open MPI asks a server of PMIx, which only its own launcher has. So `prterun` starts a *stand-in*
for each rank: it hands its variables over, and sleeps until the job ends. On other hosts its daemon
does so. The first rank of each starts it, with the command that the launcher would give to ssh.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracejit.core.memory import forks
from tracejit.distributed.store import JobStore

LAUNCHERS = ("prterun", "orterun")  # of Open MPI 5, and of 4
DAEMONS = {"prterun": "prted", "orterun": "orted"}
_PATIENCE = 60.0  # seconds for the stand-ins to come
_HANDED = ("OMPI_", "PMIX_", "PRTE_", "ORTE_", "OPAL_")
# Schedulers whose hosts Open MPI's launcher would use.
_ALLOCATIONS = ("SLURM_", "PBS_", "LSB_", "LSF_", "JOB_ID", "PE_HOSTFILE")
# The first rank of a host holds a pipe, which breaks when it ends. Then the stand-ins end, and the
# launcher with them; processes that still are in MPI_Finalize get some seconds.
_STAND_IN = """
import contextlib, os, sys, time
size, _, folder = os.environ["TRACEJIT_STAND_INS"].partition(" ")
file = os.path.join(folder, os.environ["PMIX_RANK"])
with open(file + ".part", "w") as opened:
    opened.write("\\0".join(name + "=" + value for name, value in os.environ.items()))
os.replace(file + ".part", file)
with open(os.path.join(folder, "pipe"), "rb") as pipe:
    pipe.read()
with contextlib.suppress(OSError):
    deadline = time.monotonic() + 3
    while sum(name.endswith(".over") for name in os.listdir(folder)) < int(size):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)
sys.exit(1)
"""
# What the launcher takes for ssh: it leaves the command to rank 0, and stays as long as the job.
_NO_SSH = """#!/bin/sh
folder=${TRACEJIT_STAND_INS#* } host=$1
shift
printf %s "$*" > "$folder/part.$host" && mv "$folder/part.$host" "$folder/daemon.$host"
exec cat "$folder/pipe" > /dev/null
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


def daemon(command: str, found: str) -> list[str]:
    """Return a daemon's command line on this host, from the one for ssh and the launcher here.

    >>> daemon("export A=/x;/x/bin/prted --uri 'a;b'", "/v/bin/prterun")
    ['/v/bin/prted', '--uri', 'a;b']
    """
    name = DAEMONS[Path(found).name]
    # it may lie elsewhere here than there
    return [str(Path(found).with_name(name)), *shlex.split(command.partition(f"{name} ")[2])]


class StandIns:
    """Stand-ins of this host's ranks, until `close`. Made by the first of them.

    ranks  of this host

    Raises RuntimeError if Open MPI's launcher is not there.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        found = launcher()
        if found is None:
            raise RuntimeError(
                "Open MPI's launcher (prterun) is neither beside Python nor on PATH, and without "
                "it processes that were not started by mpiexec cannot find each other: start them "
                "by mpiexec, or use MPICH (pip install mpich)"
            )
        self._launcher, self._ranks = found, ranks
        self._folder = Path(tempfile.mkdtemp(prefix="tracejit-openmpi-"))
        self._output = (self._folder / "output").open("w+")
        os.mkfifo(self._folder / "pipe", 0o600)
        self._pipe: int | None = os.open(self._folder / "pipe", os.O_RDWR)
        self._process: subprocess.Popen[bytes] | None = None
        forks.in_child(self._let_go)

    def launch(self, hosts: Mapping[str, int]) -> None:
        """Start the launcher, on rank 0.

        hosts  number of ranks by address, this host first
        """
        options = ["--map-by", ":oversubscribe", "--bind-to", "none"]
        if len(hosts) > 1:
            agent = self._folder / "no_ssh"
            agent.write_text(_NO_SSH)
            agent.chmod(0o700)
            parameters = "--prtemca" if self._launcher.endswith("prterun") else "--mca"
            options += [parameters, "plm_ssh_agent" if parameters == "--prtemca" else
                        "plm_rsh_agent", str(agent)]  # fmt: skip
            options += ["--host", ",".join(f"{host}:{count}" for host, count in hosts.items())]
        self._start([
            self._launcher, *options, "-n", str(sum(hosts.values())), sys.executable, "-S", "-E",
            "-c", _STAND_IN,
        ])  # fmt: skip

    def command_for(self, host: str) -> str:
        """Return the command that the launcher gives to ssh for another host."""
        return self._await(f"daemon.{host}").read_text()

    def follow(self, command: str) -> None:
        """Start the launcher's daemon, on another host."""
        self._start(daemon(command, self._launcher))

    def _start(self, command: list[str]) -> None:
        told = {"TRACEJIT_STAND_INS": f"{len(self._ranks)} {self._folder}"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
            env=_environment() | told,
            start_new_session=True,  # it ends by itself, and removes its files, with this process
        )  # fmt: skip

    def variables(self) -> dict[int, dict[str, str]]:
        """Return the variables of this host's ranks. RuntimeError if they do not come."""
        found = {}
        for rank in self._ranks:
            file = self._await(str(rank))
            told = dict(part.split("=", 1) for part in file.read_text().split("\0") if "=" in part)
            found[rank] = {name: value for name, value in told.items() if name.startswith(_HANDED)}
            found[rank]["TRACEJIT_STAND_IN"] = str(file)
        return found

    def _await(self, name: str) -> Path:
        file, deadline = self._folder / name, time.monotonic() + _PATIENCE
        while not file.exists():
            over = self._process is None or self._process.poll() is not None
            if over or time.monotonic() > deadline:
                self._output.seek(0)
                raise RuntimeError("Open MPI's launcher cannot start its part of the job: "
                                   + (self._output.read().strip() or "it does not answer"))
            time.sleep(0.005)
        return file

    def _let_go(self) -> None:
        """Close the pipe. A forked child closes its copy: else it would keep the stand-ins."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def close(self, patience: float = 5.0) -> None:
        """Let the stand-ins end, once this host's ranks have left MPI, and remove their folder.

        patience  seconds to wait for that
        """
        self._let_go()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # it goes on to its end
                self._process.wait(patience)
        self._output.close()

    def abandon(self) -> None:
        """End the launcher at once, where the job did not start."""
        self._let_go()
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        self._output.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def take(
    rank: int, hosts: Sequence[str], store: JobStore
) -> tuple[StandIns | None, dict[str, str]]:
    """Return a rank's variables, and what its host's first rank must hold until the end.

    hosts  of all ranks

    Raises RuntimeError in all ranks if Open MPI's launcher is missing or fails.
    """
    ranks = [k for k, host in enumerate(hosts) if host == hosts[rank]]
    stand_ins = None
    if rank == ranks[0]:
        found: Mapping[int, dict[str, str]] = {}
        error = ""
        try:
            stand_ins = _lead(ranks, hosts, store)
            found = stand_ins.variables()
        except Exception as why:  # the others raise it too
            error = str(why)
        for each in ranks if rank else range(len(hosts)):
            if error or each in found:
                store.set(f"openmpi/{each}", json.dumps([found.get(each), error]))
    try:
        variables, error = json.loads(store.get(f"openmpi/{rank}"))
        if error:
            raise RuntimeError(error)
    except BaseException:
        if stand_ins is not None:
            stand_ins.abandon()
        raise
    return stand_ins, dict(variables)


def _lead(ranks: Sequence[int], hosts: Sequence[str], store: JobStore) -> StandIns:
    """Start the launcher, or its daemon where rank 0 is on another host."""
    first = ranks[0]
    made = StandIns(ranks)
    try:
        firsts = [k for k, host in enumerate(hosts) if hosts.index(host) == k]
        if first:
            store.set(f"openmpi/address/{first}", store.own_address())
            made.follow(_told(store, f"openmpi/daemon/{first}"))
            return made
        try:
            _check(hosts)
            named = {"localhost": hosts.count(hosts[0])}
            for one in firsts[1:]:
                named[store.get(f"openmpi/address/{one}").decode()] = hosts.count(hosts[one])
            made.launch(named)
            for one, host in zip(firsts[1:], list(named)[1:], strict=True):
                store.set(f"openmpi/daemon/{one}", json.dumps([made.command_for(host), ""]))
        except Exception as error:
            for one in firsts[1:]:
                store.set(f"openmpi/daemon/{one}", json.dumps(["", str(error)]))
            raise
    except BaseException:
        made.abandon()
        raise
    return made


def _told(store: JobStore, key: str) -> str:
    text, error = json.loads(store.get(key))
    if error:
        raise RuntimeError(error)
    return str(text)


def _check(hosts: Sequence[str]) -> None:
    runs = 1 + sum(a != b for a, b in zip(hosts, hosts[1:]))
    if runs > len(set(hosts)):
        raise RuntimeError(
            "Open MPI needs the ranks of a host in one row, such as 0 to 3 on the first and 4 to 7 "
            "on the second: number them so, start them by mpiexec, or use MPICH (pip install mpich)"
        )


def leave(variables: Mapping[str, str]) -> None:
    """Tell the stand-ins of this host that this process has left MPI."""
    file = variables.get("TRACEJIT_STAND_IN")
    if file:
        with contextlib.suppress(OSError):  # the folder is gone, with the host's first rank
            Path(file + ".over").touch()


def _environment() -> dict[str, str]:
    """Return the environment of the launcher: it must take hosts from no scheduler."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ALLOCATIONS)}
    if os.geteuid() == 0:
        # this process is root's already, and the stand-ins do nothing
        for name in ("PRTE_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT"):
            kept |= {name: "1", f"{name}_CONFIRM": "1"}
    return kept
