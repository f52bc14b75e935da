"""Processes of a job on this host: started, watched, ended together.

In: commands and environments. Out: how they ended. Called by `run`.

A process that ends badly ends the others. Where the launcher itself is killed, the system ends the
processes (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

GRACE = 15.0  # seconds between SIGTERM and SIGKILL
LEAVE = 3.0  # seconds in which ranks may end by themselves, with an error that names the failed one
_PDEATHSIG = 1


class Outcome(NamedTuple):
    """End of a process: its rank on this host, its number, its exit code, its log if any.

    place  the collective that it was in, if that is known
    """

    local_rank: int
    pid: int
    code: int
    log: str
    place: str = ""

    def text(self, rank: int) -> str:
        """Return a line for people."""
        if self.code < 0:
            try:
                how = f"ended by {signal.Signals(-self.code).name}"
            except ValueError:
                how = f"ended by signal {-self.code}"
            how += f" {self.place}" if self.place else ""
        else:
            how = f"exit code {self.code}"
        where = f", its output is in {self.log}" if self.log else ""
        return f"rank {rank} (local {self.local_rank}, pid {self.pid}): {how}{where}"


class Process:
    """One process, and the threads that copy its output."""

    def __init__(
        self, local_rank: int, command: Sequence[str], environment: dict[str, str], to_file: int,
        to_both: int, folder: Path | None,
    ) -> None:  # fmt: skip
        self.local_rank, self.log = local_rank, ""
        self._files: list[IO[bytes]] = []
        self._copiers: list[threading.Thread] = []
        given: list[Any] = []
        for bit, name in ((1, "stdout"), (2, "stderr")):
            if (to_file | to_both) & bit and folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{name}.log"
                self.log = str(path)
                file = path.open("wb")
                self._files.append(file)
                given.append(subprocess.PIPE if to_both & bit else file)
            else:
                given.append(None)
        self._process = subprocess.Popen(
            command, env=environment, stdout=given[0], stderr=given[1],
            preexec_fn=_die_with_parent if sys.platform == "linux" else None, process_group=0,
        )  # fmt: skip
        self.pid = self._process.pid
        waiting = list(self._files)
        for pipe, wanted, terminal in (
            (self._process.stdout, given[0], sys.stdout),
            (self._process.stderr, given[1], sys.stderr),
        ):
            if wanted is None:
                continue
            file = waiting.pop(0)
            if pipe is not None:
                self._copy(pipe, file, terminal)

    def _copy(self, pipe: IO[bytes], file: IO[bytes], terminal: Any) -> None:
        mark = f"[rank {self.local_rank}]: "

        def run() -> None:
            for line in pipe:
                file.write(line)
                file.flush()
                terminal.write(mark + line.decode(errors="replace"))
                terminal.flush()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._copiers.append(thread)

    def ended(self) -> Outcome | None:
        """Return how it ended; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return Outcome(self.local_rank, self.pid, code, self.log)

    def send(self, number: int) -> None:
        """Send a signal to it and to what it has started, as far as they still run."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def close(self) -> None:
        """Wait for its output, once it has ended."""
        self._process.wait()
        for thread in self._copiers:
            thread.join(5)
        for file in self._files:
            file.close()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


class Crew:
    """All processes of this host."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = list(processes)

    def wait(self, interval: float) -> list[Outcome]:
        """Wait until all have ended well, or one badly; return those that ended badly first."""
        while True:
            found = [process.ended() for process in self.processes]
            bad = [one for one in found if one is not None and one.code]
            if bad or all(one is not None for one in found):
                return bad
            time.sleep(interval)

    def let_end(self, seconds: float = LEAVE) -> None:
        """Wait until all have ended, at most so long: those that wait for a rank that failed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(p.ended() is None for p in self.processes):
            time.sleep(0.02)

    def end(self, grace: float = GRACE) -> None:
        """End those that run: SIGTERM, and SIGKILL after some seconds."""
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, grace)):
            running = [process for process in self.processes if process.ended() is None]
            for process in running:
                process.send(number)
                process.send(signal.SIGCONT)  # one that was stopped would never see it
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and any(p.ended() is None for p in running):
                time.sleep(0.02)
        for process in self.processes:
            process.send(signal.SIGKILL)  # what a process left behind
        for process in self.processes:
            process.close()


def threads_for(count: int) -> dict[str, str]:
    """Return variables that give each of several processes one thread, if the user set none."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TRACEJIT_NUM_THREADS")
    if count < 2:
        return {}
    return {name: "1" for name in names if name not in os.environ}
