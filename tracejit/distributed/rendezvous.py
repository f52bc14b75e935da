"""Joins the processes of a job: finds the others, starts MPI, and watches over them.

In: `init_process_group`'s arguments and the variables of launchers. Out: `Joined`, the library and
a store. Called by `groups`.

Where MPI's own launcher started the process, MPI_Init makes the world. Else rank 0, or the
launcher's agent, serves the job at one address, and MPI_Init asks there.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing.process
import multiprocessing.util
import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tracejit.distributed import environment, mpi, mpi_settings, openmpi_places
from tracejit.distributed.agent_store import AgentStore
from tracejit.distributed.errors import DistNetworkError, DistStoreError
from tracejit.distributed.init_method import JoinPlan, plan_of
from tracejit.distributed.job_server import JobServer, listening_error
from tracejit.distributed.store import FileStore, HashStore, JobStore, PrefixStore, Store, TCPStore
from tracejit.distributed.watch import Watch

KEY = "TRACEJIT_JOB_KEY"
_PATIENCE = 5.0  # seconds that the server waits for MPI_Finalize of the other ranks


@dataclass(frozen=True)
class Joined:
    """The library and the store of a process that joined the others."""

    library: mpi.Library
    store: Store


@dataclass
class _Job:
    """The job that this process joined, until the process ends."""

    library: mpi.Library
    server: JobServer | None
    store: Store
    watch: Watch | None
    stand_ins: openmpi_places.StandIns | None = None
    told: Mapping[str, str] = field(default_factory=dict)  # by which Open MPI found the others
    given: Store | None = None  # by the program, or by file://
    joins: int = 0
    over: bool = False
    pid: int = field(default_factory=os.getpid)


_job: _Job | None = None


def join(init_method: str | None, rank: int, world_size: int, store: Store | None,
         timeout: timedelta) -> Joined:  # fmt: skip
    """Join the other processes; all call it, and it returns once all are here.

    Raises ValueError for arguments and variables that miss or contradict something, RuntimeError if
    MPI sees another world, DistStoreError or DistNetworkError if the others do not come in time.
    """
    global _job
    if getattr(multiprocessing.process.current_process(), "_inheriting", False):
        raise RuntimeError(
            "init_process_group was called while a child process imports the script anew: put the "
            "script's own code below `if __name__ == '__main__':`, as children that are not forked "
            "(of DataLoader, multiprocessing) need it"
        )
    place = environment.read()
    by_mpi = place is not None and place.by_mpi
    plan = plan_of(init_method, rank, world_size, store, place if by_mpi else None)
    if _job is None:
        _leave_at_the_end(os.getpid())
        if by_mpi:
            _job = _started_by_mpi(plan, timeout)
        else:
            _job = _started_alone(plan, timeout)
    elif plan.rank >= 0 and (plan.rank, plan.size) != (_job.library.rank, _job.library.size):
        raise RuntimeError(
            f"this process is rank {_job.library.rank} of {_job.library.size} and cannot become "
            f"rank {plan.rank} of {plan.size}: MPI starts once for a process"
        )
    else:
        _await_all(
            _job.store, _job.watch, _job.joins, _job.library.rank, _job.library.size, timeout
        )
    _job.joins += 1
    _job.given = found = plan.store or _job.store
    return Joined(_job.library, PrefixStore(f"default_pg/{_job.joins}", found))


@functools.cache
def _leave_at_the_end(pid: int) -> None:
    """Call `_leave` at the end of this process, once."""
    atexit.register(_leave)
    # processes of multiprocessing that were forked end without atexit, but not without this
    multiprocessing.util.Finalize(None, _leave, exitpriority=100)


def _started_alone(plan: JoinPlan, timeout: timedelta) -> _Job:
    """Join without a launcher of MPI: the job's server tells MPI_Init of the others."""
    if plan.size == 1 and not plan.address:
        return _Job(_start_mpi(plan), None, plan.store or HashStore(), None)
    key = os.environ.get(KEY, "")
    server: JobServer | None = None
    stand_ins: openmpi_places.StandIns | None = None
    told: dict[str, str] | None = None
    try:
        if plan.store is not None or plan.agent:
            between = plan.store or _agent(plan, timeout)
            server, address, port, key = _meet(plan, between, timeout)
        else:
            address, port = plan.address, plan.port
            if plan.rank == 0 and not plan.served:
                server = _serve(address, port, plan.size, key)
                port = server.port
        store, watch = _connect(address, port, key, plan.rank, plan.size, timeout)
        try:
            _await_all(store, watch, 0, plan.rank, plan.size, timeout)
            hosts = store.multi_get([f"join/0/{rank}" for rank in range(plan.size)])
            mpi_settings.apply(hosts.count(environment.host().encode()))
            server_connection = -1
            if mpi.library_name() == "Open MPI" and plan.size > 1:
                names = [host.decode() for host in hosts]
                stand_ins, told = openmpi_places.take(plan.rank, names, store)
            elif plan.size > 1:
                server_connection = store.pmi()
            library = _start_mpi(plan, server_connection, told)
            library.ring.watch = watch
        except BaseException as error:
            watch.say(f"{type(error).__name__}: {error}")
            raise
    except BaseException:
        if stand_ins is not None:
            stand_ins.abandon()
        if server is not None:
            server.close()
        raise
    return _Job(library, server, store, watch, stand_ins, told or {})


def _agent(plan: JoinPlan, timeout: timedelta) -> Store:
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return AgentStore(plan.address, plan.port, timeout.total_seconds(), attempt)


def _serve(address: str, port: int, size: int, key: str) -> JobServer:
    try:
        return JobServer(address, port, size, key, rank=0)
    except OSError as error:
        raise listening_error(error, address, port) from error


def _connect(address: str, port: int, key: str, rank: int, size: int,
             timeout: timedelta) -> tuple[JobStore, Watch]:  # fmt: skip
    store = JobStore(address, port, key, rank, size, timeout)
    return store, Watch(address, port, key, rank, size, timeout.total_seconds())


def _start_mpi(
    plan: JoinPlan, server: int = -1, told: Mapping[str, str] | None = None
) -> mpi.Library:
    """Start MPI while no variable of another launcher is there, below which this process runs."""
    kept = environment.without_launcher(os.environ)
    hidden = {name: value for name, value in os.environ.items() if name not in kept}
    for name in hidden:
        del os.environ[name]
    try:
        return mpi.start(plan.rank, plan.size, server, told)
    finally:
        os.environ.update(hidden)


def _meet(
    plan: JoinPlan, store: Store, timeout: timedelta
) -> tuple[JobServer | None, str, int, str]:
    """Find or make the job's server by a store that the program gave; return where it is."""
    hosts = [f"tracejit/host/{rank}" for rank in range(plan.size)]
    store.set(hosts[plan.rank], environment.host())
    store.wait(hosts, timeout)
    if plan.rank == 0:
        here = {host.decode() for host in store.multi_get(hosts)} == {environment.host()}
        address = "127.0.0.1" if here else _outward(store)
        server = _serve(address, 0, plan.size, secrets.token_hex(16))
        store.set("tracejit/job", f"{server.address} {server.port} {server.key}")
        return server, server.address, server.port, server.key
    store.wait(["tracejit/job"], timeout)
    address, port, key = store.get("tracejit/job").decode().split(" ")
    return None, address, int(port), key


def _outward(store: Store | None) -> str:
    """Return an address by which other hosts reach this one."""
    inner = store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store
    names = [inner.own_address()] if isinstance(inner, TCPStore) else []
    names.append(socket.gethostname())
    for name in names:
        try:
            found = socket.gethostbyname(name)
        except OSError:
            continue
        if not found.startswith("127."):
            return found
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))  # nothing is sent; the system chooses the way
        return str(one.getsockname()[0])


def _started_by_mpi(plan: JoinPlan, timeout: timedelta) -> _Job:
    """Join below MPI's launcher; rank 0 then serves the store and the watch."""
    library = mpi.start(plan.rank, plan.size)
    if library.size == 1:
        return _Job(library, None, plan.store or HashStore(), None)
    with library.ring:
        hosts = library.world.allgather(environment.host())
    server, told = None, ("", 0, "")
    try:
        if library.rank == 0:
            address = "127.0.0.1" if len(set(hosts)) == 1 else _outward(None)
            server = _serve(address, 0, library.size, secrets.token_hex(16))
            told = (server.address, server.port, server.key)
    finally:
        with library.ring:  # the others wait for it, even where the server failed
            address, port, key = library.world.bcast(told)
    if not port:
        raise DistNetworkError("rank 0 cannot listen")
    store, watch = _connect(address, port, key, library.rank, library.size, timeout)
    library.ring.watch = watch
    return _Job(library, server, store, watch)


def _await_all(store: Store, watch: Watch | None, number: int, rank: int, size: int,
               timeout: timedelta) -> None:  # fmt: skip
    """Wait until all ranks are here; name those that did not come."""
    start = f"join/{number}"
    store.set(f"{start}/{rank}", environment.host())
    if store.add(f"{start}/count", 1) >= size:
        store.set(f"{start}/all", "")
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        left = deadline - time.monotonic()
        try:
            store.wait([f"{start}/all"], timedelta(seconds=min(max(left, 0.0), 0.5)))
            return
        except (DistStoreError, DistNetworkError) as error:
            gone = isinstance(error, DistNetworkError)
            if watch is not None and watch.hears_of_failure(1.0 if gone else 0.0):
                raise RuntimeError(f"init_process_group cannot end: {watch.failed}") from None
            if gone:
                raise
            if left > 0:
                continue
        missing = [str(r) for r in range(size) if not store.check([f"{start}/{r}"])]
        raise DistStoreError(
            f"Timed out after {timeout.total_seconds():g} seconds waiting for clients. "
            f"{size - len(missing)}/{size} clients joined; missing: rank {', '.join(missing)}"
        )


def _leave() -> None:
    """End MPI, and say good-bye, or why this process ends early. Called once, at its end."""
    job = _job
    if job is None or job.over or job.pid != os.getpid():
        return
    job.over = True
    why = _reason()
    if why:
        job.library.failed = True
        if job.watch is not None:
            job.watch.say(why)  # ahead of all else: the others wait for this process
    mpi.finish()
    openmpi_places.leave(job.told)
    if job.watch is not None:
        if job.library.failed:
            job.watch.say("a collective failed")
        job.watch.close()
    if job.stand_ins is not None:
        job.stand_ins.close(0.0 if job.library.failed else _PATIENCE)
    if job.server is not None:
        job.server.close(0.0 if job.library.failed else _PATIENCE)
    if isinstance(job.given, FileStore):
        job.given.close()


def _reason() -> str:
    """Return why this process ends early, "" if it does not."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    if isinstance(error, SystemExit):
        return "" if error.code in (None, 0) else f"it ends with exit code {error.code}"
    return "" if error is None else f"{type(error).__name__}: {error}"
