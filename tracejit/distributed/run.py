"""`python -m tracejit.distributed.run`, or `tracejitrun`: starts the processes of a job.

In: torchrun's options, and a program. Out: the program in several processes, which know their ranks
by torchrun's variables. Called on each host of the job.

The launcher of host 0 serves the job: the MPI library of each process asks it for the others. So no
launcher of MPI is needed with MPICH; other libraries have their own, such as mpiexec.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from tracejit.distributed.job_server import JobServer
from tracejit.distributed.launch_options import checked, parse, parser, streams
from tracejit.distributed.launch_processes import Crew, Outcome, Process, threads_for


def main(arguments: list[str] | None = None) -> int:
    """Start the processes, and wait for them; return 0 if all end well, else 1."""
    return launch(parse(arguments))


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the options, for programs that pass them on to `run`."""
    made = parser()
    made.add_argument("training_script", help="script, module or command")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER, help="of the program")
    return made


def run(args: argparse.Namespace) -> None:
    """Start the processes that options of `get_args_parser` say.

    Raises ChildFailedError if one ends badly.
    """
    from tracejit.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    options = argparse.Namespace(**vars(args))
    options.program, options.arguments = args.training_script, args.training_script_args
    if launch(checked(parser(), options)):
        raise ChildFailedError(args.training_script, {0: ProcessFailure(0, -1, 1, "")})


def launch(options: argparse.Namespace) -> int:
    """Start the processes that the options say; return 0 if all end well, else 1."""
    signal.signal(signal.SIGTERM, _interrupt)
    folder = _log_folder(options)
    for restart in range(options.max_restarts + 1):
        failed = _run(options, restart, folder)
        if not failed:
            return 0
        left = options.max_restarts - restart
        _tell(options, failed, left)
    return 1


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _run(options: argparse.Namespace, restart: int, folder: Path | None) -> list[Outcome]:
    """Run all processes once; return those that ended badly."""
    count = options.nproc_per_node
    size = count * options.nnodes
    # several hosts have no channel yet by which a random key could travel
    told = os.environ.get("TRACEJIT_JOB_KEY", "")
    key = told or (secrets.token_hex(16) if options.nnodes == 1 else "")
    server, port = None, options.master_port
    if options.node_rank == 0:
        server = JobServer(options.master_addr, port, size, key)
        server.read_board()
        port = server.port
    shared = {
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": options.node_rank,
        "GROUP_WORLD_SIZE": options.nnodes, "ROLE_WORLD_SIZE": size, "ROLE_NAME": options.role,
        "MASTER_ADDR": options.master_addr, "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": restart, "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
        "TORCHELASTIC_RUN_ID": options.rdzv_id, "TORCHELASTIC_USE_AGENT_STORE": True,
        "TRACEJIT_AGENT": 1, "TRACEJIT_JOB_KEY": key, **threads_for(count),
    }  # fmt: skip
    crew = Crew([])
    try:
        for local_rank in range(count):
            crew.processes.append(_start(options, local_rank, shared, restart, folder))
        failed = crew.wait(options.monitor_interval)
        if failed:
            crew.let_end()
        if server is None:
            return failed
        first = options.node_rank * count
        return [one._replace(place=server.where(first + one.local_rank)) for one in failed]
    finally:
        crew.end()
        if server is not None:
            server.close()


def _start(
    options: argparse.Namespace, local_rank: int, shared: dict[str, Any], restart: int,
    folder: Path | None,
) -> Process:  # fmt: skip
    count = options.nproc_per_node
    rank = options.node_rank * count + local_rank
    own = {"RANK": rank, "LOCAL_RANK": local_rank, "ROLE_RANK": rank}
    environment = {**os.environ, **{name: str(value) for name, value in {**shared, **own}.items()}}
    where = None if folder is None else folder / f"attempt_{restart}" / str(local_rank)
    return Process(
        local_rank, command(options, local_rank), environment,
        streams(options.redirects, count)[local_rank], streams(options.tee, count)[local_rank],
        where,
    )  # fmt: skip


def command(options: argparse.Namespace, local_rank: int) -> list[str]:
    """Return the command line of a process."""
    # `launch` without --use-env tells the rank by an argument
    told = [] if getattr(options, "use_env", True) else [f"--local-rank={local_rank}"]
    after = [options.program, *told, *options.arguments]
    if options.no_python:
        return after
    return [sys.executable, "-u", *(["-m"] if options.module else []), *after]


def _log_folder(options: argparse.Namespace) -> Path | None:
    wanted = any(streams(text, options.nproc_per_node) != [0] * options.nproc_per_node
                 for text in (options.redirects, options.tee))  # fmt: skip
    if options.log_dir is not None:
        return Path(options.log_dir)
    return Path(tempfile.mkdtemp(prefix="tracejitrun-")) if wanted else None


def _tell(options: argparse.Namespace, failed: list[Outcome], left: int) -> None:
    """Print one summary of what failed."""
    first = options.node_rank * options.nproc_per_node
    lines = [one.text(first + one.local_rank) for one in failed]
    what = f"; starting again, {left} left" if left else ""
    print(f"tracejitrun: {options.program} failed{what}", *lines, sep="\n  ", file=sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
