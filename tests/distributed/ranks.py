"""Processes that stay between tests, so that a test of collectives costs milliseconds.

In: a function of a test file, which every rank calls. Out: the list of their results, by rank. A
rank that raises, dies or hangs is an error of the test, and the next test gets new processes.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0  # seconds


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def rank_loop(pipe: Any, rank: int, size: int, port: int, with_torch: bool) -> None:
    """Join the others, and call what comes through the pipe until it closes."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    import tracejit.distributed as dist

    dist.init_process_group("mpi")
    if with_torch:
        import torch.distributed

        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{port + 1}", rank=rank, world_size=size
        )
    pipe.send((True, None))
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((True, function(*arguments)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    dist.destroy_process_group()


class Ranks:
    """So many processes in one group."""

    def __init__(self, size: int, with_torch: bool = False) -> None:
        self.size, self.with_torch = size, with_torch
        self._processes: list[Any] = []
        self._pipes: list[Any] = []

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        port = free_port()
        for rank in range(self.size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=rank_loop, args=(theirs, rank, self.size, port, self.with_torch), daemon=True
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        self._collect()

    def _collect(self) -> list[Any]:
        results, errors = [], []
        for rank, pipe in enumerate(self._pipes):
            if not pipe.poll(PATIENCE):
                errors.append(f"rank {rank} does not answer")
                break
            try:
                fine, value = pipe.recv()
            except EOFError:
                errors.append(f"rank {rank} died")
                break
            results.append(value)
            if not fine:
                errors.append(f"rank {rank}: {value}")
        if errors:
            self.stop()
            raise AssertionError("\n".join(errors))
        return results

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what each rank's call of the function gives."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send((function, arguments))
        return self._collect()

    def stop(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
        self._processes, self._pipes = [], []
