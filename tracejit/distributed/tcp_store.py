"""A store that one process serves to the others.

In: an address and a port. Out: a `TCPStore`. Called by programs, and by `rendezvous` in every rank.
"""

from __future__ import annotations

import os
import time
import weakref
from datetime import timedelta

from tracejit.distributed import environment
from tracejit.distributed.errors import DistStoreError
from tracejit.distributed.job_server import JobServer, listening_error
from tracejit.distributed.store_base import Store, default_store_timeout
from tracejit.distributed.store_client import Connection


class TCPStore(Store):
    """A store that one process serves to the others over a socket.

    host_name, port    of the process that serves; port 0 takes a free one there
    world_size         number of processes, None if it may change
    is_master          this process serves
    wait_for_workers   the server's process waits until `world_size` processes are here
    multi_tenant       share the server of another such store of this process

    `python -m tracejit.distributed.run` gives its processes a random key in TRACEJIT_JOB_KEY, and
    the server then refuses whoever does not know it. Raises DistNetworkError if the server cannot
    listen or does not answer in time.

    >>> store = TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("a", "1")
    >>> TCPStore(store.host, store.port).get("a")
    b'1'
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = default_store_timeout, wait_for_workers: bool = True,
        multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        self._limit = timeout
        key = os.environ.get("TRACEJIT_JOB_KEY", "")
        self._server: JobServer | None = None
        if is_master:
            self._server = _serve(host_name, port, key, multi_tenant)
            weakref.finalize(self, _leave_server, self._server)
            port = self._server.port
        self._connection = Connection(host_name, port, key, timeout=timeout.total_seconds())
        if wait_for_workers and world_size is not None:
            joined = self.add("init/", 1)
            if is_master:
                self._await_workers(joined, world_size)

    @property
    def host(self) -> str:
        """Name of the serving process's host."""
        return self._connection.address

    @property
    def port(self) -> int:
        """Port of the server."""
        return self._connection.port

    def own_address(self) -> str:
        """Return the address by which the server's host knows this one, in numbers."""
        return self._connection.own_address()

    def _await_workers(self, joined: int, size: int) -> None:
        deadline = time.monotonic() + self._limit.total_seconds()
        while joined < size:
            if time.monotonic() > deadline:
                raise DistStoreError(
                    f"Timed out after {self._limit.total_seconds():g} seconds waiting for clients. "
                    f"{joined}/{size} clients joined."
                )
            time.sleep(0.01)
            joined = self.add("init/", 0)

    def _ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        return self._connection.ask(request, seconds)

    def clone(self) -> Store:
        """Return a store over the same server with a connection of its own."""
        return TCPStore(self.host, self.port, timeout=self._limit)

    def __repr__(self) -> str:
        return f"TCPStore({self.host!r}, {self.port}, is_master={self._server is not None})"


class JobStore(TCPStore):
    """A rank's client of the server of its job, which learns the rank and its host from it."""

    def __init__(
        self, address: str, port: int, key: str, rank: int, world_size: int, timeout: timedelta
    ) -> None:
        self._limit, self._server = timeout, None
        self._key = key
        self._connection = Connection(
            address, port, key, rank, world_size, environment.host(), timeout.total_seconds()
        )

    def pmi(self) -> int:
        """Open the connection by which the rank's MPI library asks for the other ranks.

        Returns its descriptor, which belongs to the caller.
        """
        return self._connection.pmi()

    def clone(self) -> Store:
        """Return a store over the same server with a connection of its own."""
        return JobStore(self.host, self.port, self._key, -1, -1, self._limit)


_shared: dict[int, JobServer] = {}
_users: dict[JobServer, int] = {}


def _serve(address: str, port: int, key: str, multi_tenant: bool) -> JobServer:
    """Return a server at a port, which several stores share if all of them want to."""
    server = _shared.get(port) if multi_tenant else None
    if server is None:
        try:
            server = JobServer(address, port, 0, key)
        except OSError as error:
            raise listening_error(error, address, port) from error
        if multi_tenant:
            _shared[server.port] = server
    _users[server] = _users.get(server, 0) + 1
    return server


def _leave_server(server: JobServer) -> None:
    """Close a server with its last store."""
    _users[server] -= 1
    if not _users[server]:
        del _users[server]
        _shared.pop(server.port, None)
        server.close()
