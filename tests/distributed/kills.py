"""A training job whose ranks are killed at random moments, and what must hold after it.

In: the number of ranks and the phase of each kill. Out: what the ranks and the launcher wrote.
Called by `test_kills`.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.distributed.launchers import MPIEXEC, OPEN_MPI
from tests.distributed.ranks import free_port

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 20.0  # of every collective
AFTER = 2  # steps of a start ahead of the one with the kill

# A child that was forked before MPI started kills its parent: Python's own threads would have to
# wait for the interpreter's lock, and so would never kill in the middle of anything.
SCRIPT = """
import os, random, re, signal, sys, time
from pathlib import Path

folder, steps, plan, seed = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(), sys.argv[4]
attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
names = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
rank = next(int(os.environ[name]) for name in names if name in os.environ)
names = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
size = next(int(os.environ[name]) for name in names if name in os.environ)
chance = random.Random(f"{seed} {attempt}")
victim, phase = chance.randrange(size), plan[attempt] if attempt < len(plan) else ""
pid, (commands, command) = os.getpid(), os.pipe()
killer = os.fork()
if killer == 0:
    os.close(command)
    delay = os.read(commands, 100)
    if delay:
        time.sleep(float(delay))
        os.kill(pid, signal.SIGKILL)
        (folder / f"killed.{attempt}").write_text(str(time.time()))
    os._exit(0)
(folder / f"pids.{attempt}.{rank}").write_text(f"{pid} {killer}")

from datetime import timedelta
import tracejit
import tracejit.distributed as dist
from tracejit.distributed import checkpoint

spent = {}

class during:
    def __init__(self, name, step, start):
        self.name = name
        self.armed = rank == victim and name == phase and step == start + AFTER

    def __enter__(self):
        self.begun = time.perf_counter()
        if self.armed:
            os.write(command, str(chance.uniform(0, spent[self.name])).encode())

    def __exit__(self, *error):
        spent[self.name] = time.perf_counter() - self.begun
        if self.armed and not any(error):
            time.sleep(0.001 * chance.randrange(3))  # some reach what follows

def train():
    dist.init_process_group(timeout=timedelta(seconds=TIMEOUT))
    names = re.findall("/dev/shm/((?:mpich|ucx)_[^ \\\\n]+)", Path("/proc/self/maps").read_text())
    (folder / f"memory.{attempt}.{rank}").write_text(" ".join(names))
    tracejit.manual_seed(0)
    layers = [tracejit.nn.Linear(256, 256) for _ in range(3)]
    inner = tracejit.nn.Sequential(layers[0], tracejit.nn.Tanh(), *layers[1:])
    model = tracejit.nn.parallel.DistributedDataParallel(inner, bucket_cap_mb=0.3)
    optimizer = tracejit.optim.Adam(model.parameters(), lr=1e-3)
    state = {"model": inner, "optimizer": optimizer, "step": 0}
    if (folder / "saved" / "index.json").exists():
        checkpoint.load(state, checkpoint_id=folder / "saved")
    start = state["step"]
    for step in range(start, steps):
        tracejit.manual_seed(1000 + step)
        x = tracejit.randn(64, 256)[64 // size * rank : 64 // size * (rank + 1)]
        optimizer.zero_grad()
        with during("forward", step, start):
            loss = (model(x) - x.flip(1)).square().mean()
        with during("backward", step, start):
            loss.backward()
        optimizer.step()
        with during("collective", step, start):
            mean = loss.detach() + tracejit.zeros(100_000)
            dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:  # ahead of the save: a step that was saved is not done again
            with open(folder / "losses", "a") as file:
                file.write(f"{step} {mean[0].item().hex()}\\n")
        state["step"] = step + 1
        with during("save", step, start):
            checkpoint.save(state, checkpoint_id=folder / "saved")
        if step == start:
            (folder / f"resumed.{attempt}.{rank}").write_text(str(time.time()))
    dist.barrier()

try:
    train()
except BaseException as error:
    (folder / f"error.{attempt}.{rank}").write_text(f"{type(error).__name__}: {error}")
    raise
""".replace("TIMEOUT", str(TIMEOUT)).replace("AFTER", str(AFTER))


def is_running(pid: str) -> bool:
    """Return True for a process that is there, and no zombie that its new parent has to see."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


SPAWNS = """
import os, runpy, sys
import tracejit

def work(rank, size, port, arguments):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="script")

if __name__ == "__main__":
    size, port, *arguments = sys.argv[1:]
    tracejit.multiprocessing.spawn(work, (int(size), port, arguments), nprocs=int(size))
"""


def _launch(way: str, folder: Path, size: int, restarts: int) -> list[Any]:
    if way == "mpiexec":
        return [*MPIEXEC, "-n", str(size), sys.executable]
    if way == "spawn":
        (folder / "spawns.py").write_text(SPAWNS)
        return [sys.executable, folder / "spawns.py", str(size), str(free_port())]
    return [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node",
            str(size), "--max-restarts", str(restarts)]  # fmt: skip


class Killed:
    """A job that ran: `plan` has the phase of the kill of each start."""

    def __init__(self, folder: Path, size: int, plan: Sequence[str], seed: int = 0,
                 steps: int = 0, way: str = "launcher") -> None:  # fmt: skip
        self.folder, self.size, self.plan, self.seed = folder, size, plan, seed
        (folder / "script.py").write_text(SCRIPT)
        (folder / "tmp").mkdir()
        self.steps = steps or (AFTER + 1) * (len(plan) + 1)
        begun = time.monotonic()
        self.done = subprocess.run(
            [*_launch(way, folder, size, len(plan)), folder / "script.py", folder, str(self.steps),
             " ".join(plan), str(seed)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")},
            capture_output=True, text=True, timeout=60 + 30 * (len(plan) + 1),
        )  # fmt: skip
        self.seconds = time.monotonic() - begun

    def victim(self, attempt: int) -> int:
        """Return the rank that was killed."""
        return random.Random(f"{self.seed} {attempt}").randrange(self.size)

    def read(self, name: str) -> str:
        """Return what a rank wrote, "" if it did not."""
        file = self.folder / name
        return file.read_text() if file.exists() else ""

    def losses(self) -> dict[int, set[str]]:
        """Return the losses of each step, of all that did it."""
        found: dict[int, set[str]] = {}
        for line in self.read("losses").splitlines():
            step, loss = line.split()
            found.setdefault(int(step), set()).add(loss)
        return found

    def restarts(self) -> list[float]:
        """Return the seconds from each kill to the end of the first step after it."""
        return [
            max(float(self.read(f"resumed.{attempt + 1}.{rank}")) for rank in range(self.size))
            - float(self.read(f"killed.{attempt}"))
            for attempt in range(len(self.plan))
        ]

    def check(self) -> None:
        """Check errors and what was left behind."""
        assert self.done.returncode == 0, self.done.stderr
        place = r"(in|outside) \w.*"
        told = re.findall(
            rf"^  rank (\d) \(local \d, pid (\d+)\): ended by SIGKILL {place}$", self.done.stderr,
            re.MULTILINE,
        )  # fmt: skip
        assert len(told) == len(self.plan), self.done.stderr
        for attempt in range(len(self.plan)):
            victim = self.victim(attempt)
            pid = self.read(f"pids.{attempt}.{victim}").split()[0]
            assert told[attempt][:2] == (str(victim), pid)
            for rank in set(range(self.size)) - {victim}:
                error = self.read(f"error.{attempt}.{rank}")
                named = rf"RuntimeError: \w.* cannot end: rank {victim} died \(pid {pid}\) {place}"
                assert re.match(named, error), (attempt, rank, error)
        saved = sorted(file.name for file in (self.folder / "saved").iterdir())
        assert saved[0] == "index.json" and len(saved) == self.size + 1, saved
        self.check_what_is_left()

    def check_what_is_left(self) -> None:
        """Check that no process and no memory of the job is there."""
        for file in self.folder.glob("pids.*"):
            for number in file.read_text().split():
                assert not is_running(number), f"process {number} was left"
        memory = " ".join(file.read_text() for file in self.folder.glob("memory.*")).split()
        assert memory or OPEN_MPI
        assert not [name for name in memory if Path("/dev/shm", name).exists()]
        assert not list((self.folder / "tmp").glob("tracejit-board-*"))
