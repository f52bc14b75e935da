"""Reads from `init_process_group`'s arguments a process's rank and where it finds the others.

In: its arguments and the variables. Out: a `JoinPlan`. Called by `rendezvous`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tracejit.distributed import agent_store, environment
from tracejit.distributed.store import FileStore, Store

_ENV = "env:// rendezvous: "


@dataclass(frozen=True)
class JoinPlan:
    """The rank that a process is to be, and the place of the others."""

    rank: int
    size: int
    address: str = ""  # of the job's server; "" if `store` tells it, or MPI's launcher
    port: int = 0
    store: Store | None = None
    served: bool = False  # the launcher's agent serves
    agent: bool = False  # it does, but is PyTorch's torchrun, whose store speaks another protocol


def plan_of(
    init_method: str | None, rank: int, size: int, store: Store | None,
    launched: environment.Place | None,
) -> JoinPlan:  # fmt: skip
    """Return the plan that arguments, variables and MPI's launcher tell.

    launched  the place that MPI's own launcher gave the process

    Raises ValueError if something misses, with PyTorch's texts.

    >>> plan_of("tcp://127.0.0.1:29500", 1, 2, None, None).port
    29500
    """
    if launched is not None:
        rank = launched.rank if rank < 0 else rank
        size = launched.world_size if size < 0 else size
        if store is not None or init_method is None:
            return JoinPlan(rank, size, store=store)
    if store is not None:
        if size <= 0:
            raise ValueError("world_size must be positive if using store")
        if rank < 0:
            raise ValueError("rank must be non-negative if using store")
        return JoinPlan(rank, size, store=store)
    url = "env://" if init_method is None else init_method
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlsplit(url)
    query = dict(one.split("=", 1) for one in parts.query.split("&") if "=" in one)
    if "rank" in query or "world_size" in query:
        if launched is None and (rank != -1 or size != -1):
            raise AssertionError(
                f"The url: {url} has node-specific arguments(rank, world_size) already."
            )
        rank, size = int(query.get("rank", rank)), int(query.get("world_size", size))
    if parts.scheme not in _HANDLERS:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    plan = _HANDLERS[parts.scheme](parts, rank, size, launched is not None)
    if not 0 <= plan.rank < plan.size:
        raise ValueError(f"rank {plan.rank} is outside a world of {plan.size}")
    return plan


def _error(text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {text}")


def _of_env(parts: Any, rank: int, size: int, launched: bool) -> JoinPlan:
    place = environment.read()

    def variable(name: str) -> str:
        value = os.environ.get(name, "")
        if not value and place is not None and name.startswith("MASTER"):  # as Slurm's tell it
            value = str(place.master_addr if name == "MASTER_ADDR" else place.master_port or "")
        if not value:
            raise _error(f"{_ENV}environment variable {name} expected, but not set")
        return value

    if launched or (rank == 0 and size == 1 and not os.environ.get("MASTER_ADDR")):
        return JoinPlan(rank, size)
    if rank < 0:
        rank = int(variable("RANK")) if place is None else place.rank
    if size < 0:
        size = int(variable("WORLD_SIZE")) if place is None else place.world_size
    return _at(variable("MASTER_ADDR"), int(variable("MASTER_PORT")), rank, size)


def _of_tcp(parts: Any, rank: int, size: int, launched: bool) -> JoinPlan:
    if parts.port is None or parts.hostname is None:
        raise _error("tcp:// rendezvous: port number missing")
    _need("tcp", rank, size)
    return _at(parts.hostname, parts.port, rank, size)


def _of_file(parts: Any, rank: int, size: int, launched: bool) -> JoinPlan:
    if not parts.path:
        raise _error("file:// rendezvous: path missing")
    _need("file", rank, size)
    return JoinPlan(rank, size, store=FileStore(parts.path, size))


def _need(scheme: str, rank: int, size: int) -> None:
    if rank < 0:
        raise _error(f"{scheme}:// rendezvous: rank parameter missing")
    if size < 0:
        raise _error(f"{scheme}:// rendezvous: world size parameter missing")


_HANDLERS = {"env": _of_env, "tcp": _of_tcp, "file": _of_file}


def _at(address: str, port: int, rank: int, size: int) -> JoinPlan:
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    agent = agent_store.serves(os.environ)
    served = not agent and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return JoinPlan(rank, size, address, port, served=served, agent=agent)
