"""Functions and programs in the processes of a job; PyTorch's `elastic_launch`.

In: a configuration, and a function or a command. Out: each rank's result. Called by packages that
start jobs from notebooks.

Rank 0 serves the job, not the caller's process: forked children would keep its connections.
"""

from __future__ import annotations

import os
import pickle
import socket
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracejit.distributed import run
from tracejit.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from tracejit.distributed.launch_processes import threads_for
from tracejit.multiprocessing.spawn import ProcessException, start_processes

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """Number of processes of a job, and the place where they meet.

    min_nodes, max_nodes  number of hosts: the same, for it is fixed
    nproc_per_node        processes on this host
    rdzv_endpoint         "address:port" of host 0; one host finds a free port without
    rdzv_configs          "rank" is the number of this host
    max_restarts          start all again so often
    start_method          "spawn", "fork" or "forkserver"

    The other fields are taken, and without effect.

    >>> LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, max_restarts=0).start_method
    'spawn'
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "static"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"


class elastic_launch:
    """Calls a function, or starts a command, in the processes of a job.

    config      a `LaunchConfig`
    entrypoint  a function that `pickle` takes by name, or a program's name

    An object takes the arguments of the function or command, and returns {rank: result} of this
    host's processes; a command has no results. Raises ChildFailedError if a process fails.

    >>> elastic_launch(LaunchConfig(1, 1, 1), divmod)(7, 2)
    {0: (3, 1)}
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any]
) -> dict[int, Any]:
    """Return the result of each rank of this host; a command has none.

    config      a `LaunchConfig`
    entrypoint  a function that `pickle` takes by name, or a program's name
    args        list of its arguments

    Raises ValueError for a range of numbers of hosts, ChildFailedError if a process fails.

    >>> launch_agent(LaunchConfig(1, 1, 1), divmod, [7, 2])
    {0: (3, 1)}
    """
    if config.min_nodes != config.max_nodes:
        raise ValueError("LaunchConfig: the number of hosts is fixed; give one number")
    if entrypoint is None:
        raise ValueError("elastic_launch: there is no function or command")
    address, _, port = config.rdzv_endpoint.rpartition(":")
    address = address or "127.0.0.1"
    node, count = int(config.rdzv_configs.get("rank", 0)), config.nproc_per_node
    for left in range(config.max_restarts, -1, -1):
        shared = {
            "WORLD_SIZE": config.min_nodes * count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": node,
            "GROUP_WORLD_SIZE": config.min_nodes, "ROLE_WORLD_SIZE": config.min_nodes * count,
            "ROLE_NAME": config.role, "MASTER_ADDR": address,
            "MASTER_PORT": port or _free_port(address),
            "TORCHELASTIC_RESTART_COUNT": config.max_restarts - left,
            "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
            "TORCHELASTIC_RUN_ID": config.run_id or uuid.uuid4().hex, **threads_for(count),
        }  # fmt: skip
        shared = {name: str(value) for name, value in shared.items()}
        try:
            if isinstance(entrypoint, str):
                return _command(config, [entrypoint, *map(str, args)], shared)
            return _function(config, entrypoint, tuple(args), node, shared)
        except ChildFailedError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _free_port(address: str) -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def _command(
    config: LaunchConfig, command: list[str], shared: dict[str, str]
) -> dict[int, Any]:
    """Start a command as `tracejitrun` does."""
    status = run.main([
        "--nnodes", str(config.min_nodes), "--nproc-per-node", str(config.nproc_per_node),
        "--node-rank", shared["GROUP_RANK"], "--master-addr", shared["MASTER_ADDR"],
        "--master-port", shared["MASTER_PORT"], "--no-python", *command,
    ])  # fmt: skip
    if status:
        raise ChildFailedError(command[0], {0: ProcessFailure(0, -1, status, "")})
    return dict.fromkeys(range(config.nproc_per_node))


def _function(
    config: LaunchConfig, function: Callable[..., Any], arguments: tuple, node: int,
    shared: dict[str, str],
) -> dict[int, Any]:  # fmt: skip
    first = node * config.nproc_per_node
    with tempfile.TemporaryDirectory(prefix="tracejit-results-") as folder:
        try:
            start_processes(
                _call, (function, arguments, first, shared, folder), config.nproc_per_node,
                start_method=config.start_method,
            )  # fmt: skip
        except ProcessException as error:
            code = getattr(error, "exit_code", 1)
            failure = ProcessFailure(error.error_index, error.error_pid, code, "", str(error))
            name = getattr(function, "__name__", str(function))
            raise ChildFailedError(name, {first + error.error_index: failure}) from error
        return {
            first + k: pickle.loads((Path(folder) / str(k)).read_bytes())
            for k in range(config.nproc_per_node)
        }


def _call(
    index: int, function: Callable[..., Any], arguments: tuple, first: int, shared: dict[str, str],
    folder: str,
) -> None:  # fmt: skip
    """Call the function as a rank, and leave its result in the folder."""
    rank = str(first + index)
    os.environ.update(shared, RANK=rank, LOCAL_RANK=str(index), ROLE_RANK=rank)
    (Path(folder) / str(index)).write_bytes(pickle.dumps(function(*arguments)))
