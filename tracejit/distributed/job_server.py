"""The server of a job: its store, its watch, and PMI for MPI_Init, all on one port.

In: connections, whose first line names the protocol. Out: answers. Called by `rendezvous` in rank 0
and by the launcher's agent.

One thread serves all connections, and none may make it wait or hold more than a bound. All present
the job's key first. PMI has no room for one, so a rank opens that connection itself, and then hands
it to its MPI library.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import selectors
import socket
import threading
import time
import weakref

from tracejit.core.memory import forks
from tracejit.distributed import board, pmi_protocol, shared_memory, store_service, watch_protocol
from tracejit.distributed.errors import DistNetworkError
from tracejit.distributed.peer import MOST_HELLO, NO_KEY, VERSION, Peer, resolve
from tracejit.distributed.store_protocol import ProtocolError

PATIENCE = 5.0  # seconds for a first line
_servers: weakref.WeakSet[JobServer] = weakref.WeakSet()


class JobServer:
    """Serves a job until `close`. OSError if it cannot listen.

    address     that it listens on: a name or a number; loopback unless others must reach it
    port        0 for a free one
    world_size  number of ranks; 0 for a store alone
    key         that store and watch connections present; "" for none
    rank        of the process that serves, -1 if it is none of the ranks

    >>> server = JobServer("127.0.0.1", 0, 2, "")
    >>> server.port > 0
    True
    >>> server.close()
    """

    def __init__(self, address: str, port: int, world_size: int, key: str, rank: int = -1) -> None:
        family, where = resolve(address, port)
        self._listener = socket.create_server(where[:2], family=family, backlog=1024)
        self._listener.setblocking(False)
        self.address, self.port = str(where[0]), int(self._listener.getsockname()[1])
        self.world_size, self.key, self._rank = world_size, key, rank
        self._most = 64 + 4 * world_size
        self._hosts: dict[int, str] = {}
        self._board = secrets.token_hex(16)
        self._places: board.Board | None = None
        self.store = store_service.Service()
        self.world = pmi_protocol.World(world_size, self._hosts)
        self.watchers = watch_protocol.Watchers(world_size, self.world.fail)
        self._peers: set[Peer] = set()
        self._lost: set[Peer] = set()
        self._selector = selectors.DefaultSelector()
        self._waker, self._wakes = socket.socketpair()
        for one in (self._waker, self._wakes):
            one.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        self._closes_at: float | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="tracejit-job-server")
        _servers.add(self)
        self._thread.start()

    def read_board(self) -> None:
        """Keep the ranks' board, before they take its name away, for `where`."""
        with contextlib.suppress(OSError):  # no folder for temporary files
            self._places = board.Board(self._board, -1, self.world_size)

    def where(self, rank: int) -> str:
        """Return the collective that a rank of this host is or was in, "" if that is unknown."""
        return "" if self._places is None else self._places.where(rank)

    def close(self, patience: float = 0.0) -> None:
        """End all connections, once MPI_Finalize of the ranks needs no server any more.

        patience  seconds to wait for that
        """
        if self._closes_at is None:
            self._closes_at = time.monotonic() + patience
            with contextlib.suppress(OSError):
                self._waker.send(b".")
        if threading.current_thread() is not self._thread:
            self._thread.join(patience + 5)

    def _serve(self) -> None:
        try:
            while not self._is_over():
                for key, events in self._selector.select(self._pause()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj is self._wakes:
                        with contextlib.suppress(OSError):
                            self._wakes.recv(16)
                    elif key.data in self._peers:
                        if events & selectors.EVENT_WRITE:
                            key.data.send()
                        if events & selectors.EVENT_READ:
                            self._read(key.data)
                    self._drop_lost()
                self._expire()
                self._drop_lost()
        finally:
            self._end()

    def _is_over(self) -> bool:
        if self._closes_at is None:
            return False
        return self.world.is_empty() or time.monotonic() > self._closes_at

    def _pause(self) -> float | None:
        """Return the seconds until something must be done without a message."""
        times = [peer.since + PATIENCE for peer in self._peers if peer.service is None]
        deadline = self.store.next_deadline()
        times += [one for one in (deadline, self._closes_at) if one is not None]
        return max(min(times) - time.monotonic(), 0.0) + 0.001 if times else None

    def _expire(self) -> None:
        now = time.monotonic()
        self.store.expire(now)
        for peer in self._peers:
            if peer.service is None and now > peer.since + PATIENCE:
                self.lose(peer)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the peer went away, or the process has no more files
            time.sleep(0.001)
            return
        if len(self._peers) >= self._most:
            strangers = [peer for peer in self._peers if peer.service is None]
            if not strangers:
                connection.close()
                return
            self.lose(min(strangers, key=lambda peer: peer.since))
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(self, connection)
        self._peers.add(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def expect(self, peer: Peer) -> None:
        """Wait until the peer takes what is unsent, too."""
        if peer not in self._peers:
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.unsent else 0)
        if self._selector.get_key(peer.connection).events != events:
            self._selector.modify(peer.connection, events, peer)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.connection.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose(peer)
            return
        peer.received += data
        try:
            if peer.service is None:
                self._greet(peer)
            if peer.service is not None:
                peer.service.take(peer, peer.received)
        except ProtocolError as why:
            if peer.service is not self.store and peer.service is not self.world:
                peer.say(f"no {why}\n".encode())
            self.lose(peer)
        except Exception:  # such as JSON of a thousand levels: others are served on
            self.lose(peer)

    def _greet(self, peer: Peer) -> None:
        """Find the protocol of a connection by its first line; ProtocolError for what is none."""
        end = peer.received.find(b"\n", 0, MOST_HELLO)
        if end < 0:
            if len(peer.received) >= MOST_HELLO or not b"tracejit ".startswith(
                bytes(peer.received[:9])
            ):
                raise ProtocolError("this is no connection of tracejit")
            return
        fields = bytes(peer.received[:end]).decode("ascii", "replace").split(" ")
        del peer.received[: end + 1]
        if len(fields) < 5 or fields[0] != "tracejit":
            raise ProtocolError("this is no connection of tracejit")
        if fields[1] != VERSION:
            raise ProtocolError("the process has another version of tracejit")
        if not hmac.compare_digest(fields[3].encode(), (self.key or NO_KEY).encode()):
            raise ProtocolError("the key is wrong: another job has this address and port")
        self._admit(peer, fields[2], fields[4:])

    def _admit(self, peer: Peer, protocol: str, fields: list[str]) -> None:
        try:
            rank, size, pid = (int(text[:20]) for text in fields[:3])
            (host,) = fields[3:]
        except ValueError:
            raise ProtocolError("this is no connection of tracejit") from None
        if size > 0 and self.world_size > 0 and size != self.world_size:
            raise ProtocolError(f"this job has {self.world_size} processes, not {size}")
        service = {"store": self.store, "watch": self.watchers, "pmi": self.world}.get(protocol)
        if service is None or len(host) > 64:
            raise ProtocolError("this is no connection of tracejit")
        if not 0 <= rank < self.world_size and (rank != -1 or protocol != "store"):
            raise ProtocolError(f"rank {rank} is outside the job")
        if rank != -1 and any(p.rank == rank and p.service is service for p in self._peers):
            raise ProtocolError(f"rank {rank} is here already")
        peer.service, peer.rank = service, rank
        if rank != -1:
            self._hosts[rank] = host
        peer.say(f"ok {self._rank} {os.getpid()} {self._board}\n".encode())
        if service is self.world:
            self.world.admit(peer, rank)
        elif service is self.watchers:
            with contextlib.suppress(OSError):  # a host may vanish without a word
                peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in (("IDLE", 10), ("INTVL", 5), ("CNT", 3)):
                    name = getattr(socket, f"TCP_KEEP{option}")
                    peer.connection.setsockopt(socket.IPPROTO_TCP, name, value)
            self.watchers.admit(peer, rank, pid, host)

    def lose(self, peer: Peer) -> None:
        """End a connection, as soon as nobody is in the middle of it."""
        self._lost.add(peer)

    def _drop_lost(self) -> None:
        while self._lost:
            peer = self._lost.pop()
            if peer not in self._peers:
                continue
            self._peers.discard(peer)
            self._selector.unregister(peer.connection)
            peer.connection.close()
            if peer.service is not None:
                peer.service.forget(peer)

    def _end(self) -> None:
        self.watchers.over()
        board.unlink(self._board)
        shared_memory.unlink_of_job(self.world.name)
        deadline = time.monotonic() + 1
        for peer in list(self._peers):
            # what was said must arrive: others learn from it that nothing is wrong
            peer.connection.settimeout(max(deadline - time.monotonic(), 0.01))
            with contextlib.suppress(OSError):
                peer.connection.sendall(peer.unsent)
        self.close_files()
        _servers.discard(self)

    def close_files(self) -> None:
        """Close this process's handles, without a word to the peers."""
        for peer in list(self._peers):
            peer.connection.close()
        for one in (self._listener, self._wakes, self._waker, self._selector):
            one.close()


@forks.in_child
def _forget_servers() -> None:
    """Close a forked child's copies: else peers would not learn of the parent's death."""
    for server in list(_servers):
        server.close_files()
    _servers.clear()


def listening_error(error: OSError, address: str, port: int) -> DistNetworkError:
    """Return the error for a server that cannot listen."""
    name = "the address is not one of this host's: rank 0 must run there"
    if error.errno in (98, 48):
        name = "EADDRINUSE, message: address already in use"
    return DistNetworkError(
        "The server socket has failed to listen on any local network address. "
        f"{address}, port: {port}: {name} ({error.strerror or error})"
    )
