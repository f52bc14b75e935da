"""Processes that run one function, each with its number; PyTorch's `torch.multiprocessing.spawn`.

In: a function of a module and its arguments. Out: processes that are joined, or a context to join
them later. Called by scripts that start their own ranks.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path
from typing import Any

_GRACE = 30.0  # seconds between SIGTERM and SIGKILL


class ProcessException(Exception):
    """Error: one of the processes ended badly. `error_index`, `error_pid` name it."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """Error: the function raised in a process. The text shows its traceback."""


class ProcessExitedException(ProcessException):
    """Error: a process ended by a signal or with an exit code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (
            self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name
        )  # fmt: skip


def _run(function: Callable[..., Any], index: int, arguments: tuple, file: str) -> None:
    """Call the function in a child; its traceback goes to the file."""
    try:
        function(index, *arguments)
    except KeyboardInterrupt:
        _give_up()  # the parent was interrupted too
    except Exception:
        Path(file).write_bytes(pickle.dumps(traceback.format_exc()))
        _give_up()
        sys.exit(1)


def _give_up() -> None:
    """Let a rank that failed not wait for the others at its end."""
    module = sys.modules.get("tracejit.distributed.mpi")
    library = module.started() if module is not None else None
    if library is not None:
        library.failed = True


class ProcessContext:
    """Processes that were started, for `join`."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: k for k, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the processes' numbers."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one ends; return True if all have ended well.

        timeout       seconds to wait at most
        grace_period  seconds that others get to end by themselves after one failed

        Raises ProcessRaisedException or ProcessExitedException if one ended badly, once the others
        were ended.
        """
        if not self.sentinels:
            return True
        ended = connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ended:
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._error(failed)

    def _end_others(self, grace_period: float | None) -> None:
        def alive() -> list[Any]:
            return [process for process in self.processes if process.is_alive()]

        def wait(seconds: float) -> None:
            deadline = time.monotonic() + seconds
            while alive() and time.monotonic() < deadline:
                time.sleep(0.02)

        if grace_period is not None:
            wait(grace_period)
        for process in alive():
            process.terminate()
        wait(_GRACE)
        for process in alive():
            process.kill()
        for process in self.processes:
            process.join()

    def _error(self, index: int) -> ProcessException:
        process, file = self.processes[index], Path(self.error_files[index])
        pid, code = int(process.pid), int(process.exitcode)
        if file.exists() and file.stat().st_size:
            text = pickle.loads(file.read_bytes())
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}", index, pid
            )
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, pid, code, name
            )
        return ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, pid, code
        )

    def __del__(self) -> None:
        for file in self.error_files:
            Path(file).unlink(missing_ok=True)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any], args: tuple = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Start `nprocs` processes that call `fn(index, *args)`, and wait for them.

    join          False: return a context at once
    start_method  "spawn", "forkserver" or "fork"

    Raises ProcessRaisedException or ProcessExitedException if one ends badly; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for index in range(nprocs):
        handle, file = tempfile.mkstemp(prefix="tracejit-error-", suffix=".pickle")
        os.close(handle)
        files.append(file)
        process = context.Process(target=_run, args=(fn, index, args, file), daemon=daemon)
        process.start()
        processes.append(process)
    found = ProcessContext(processes, files)
    if not join:
        return found
    while not found.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Start `nprocs` new interpreters that call `fn(index, *args)`, and wait for them.

    fn    a function at the top of a module, which the new interpreters import
    join  False: return a context at once

    Raises ProcessRaisedException or ProcessExitedException if one ends badly; the others are ended.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
