"""A connection to a job's server, for one request at a time.

In: an address, the job's key, and requests of `store_protocol`. Out: answers. Called by
`store.TCPStore`, and `open_connection` by `watch` too.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

from tracejit.core.memory import forks
from tracejit.distributed import store_protocol
from tracejit.distributed.errors import DistNetworkError
from tracejit.distributed.peer import MOST_HELLO, hello

_GRACE = 30.0  # seconds that a busy server may be late with an answer
_ATTEMPT = 10.0  # seconds for one attempt to connect


class NoAnswer(Exception):
    """The server is not there yet, or broke the connection off."""


def open_connection(
    address: str, port: int, greeting: bytes, timeout: float
) -> tuple[socket.socket, list[str]]:
    """Connect to a job's server; return the connection, and the fields of its answer.

    Tries until `timeout` seconds are over. Raises DistNetworkError then, and at once if the server
    refuses this process.
    """
    deadline = time.monotonic() + timeout
    pause, why = 0.01, ""
    while True:
        left = deadline - time.monotonic()
        try:
            return _attempt(address, port, greeting, min(max(left, 0.1), _ATTEMPT))
        except (OSError, NoAnswer) as error:
            why = str(error)
        if time.monotonic() + pause > deadline:
            raise DistNetworkError(
                f"The client socket has timed out after {round(timeout * 1000)}ms while trying to "
                f"connect to ({address}, {port}). ({why})"
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.25)


def _attempt(
    address: str, port: int, greeting: bytes, timeout: float
) -> tuple[socket.socket, list[str]]:
    connection = socket.create_connection((address, port), timeout)
    try:
        if connection.getsockname() == connection.getpeername():
            # a port that nobody listens on may connect to itself, and would then be taken
            raise NoAnswer("nobody listens there")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(greeting)
        line = b""
        while not line.endswith(b"\n") and len(line) < MOST_HELLO:
            one = connection.recv(1)  # what follows belongs to the protocol
            if not one:
                raise NoAnswer("the server closed the connection")
            line += one
        fields = line.decode("ascii", "replace").split()
        if fields[:1] == ["no"]:
            raise DistNetworkError(f"the job at ({address}, {port}) refused this process: "
                                   f"{' '.join(fields[1:])}")  # fmt: skip
        if fields[:1] != ["ok"] or len(fields) != 4:
            raise DistNetworkError(
                f"the server at ({address}, {port}) is not tracejit's: start the processes with "
                "python -m tracejit.distributed.run, or choose another MASTER_PORT"
            )
        return connection, fields[1:]
    except BaseException:
        connection.close()
        raise


class Connection:
    """A connection that is made again when it is needed: after a fork, after an interrupt.

    rank  of this process, if the server shall know it; -1 for a mere store
    """

    def __init__(
        self, address: str, port: int, key: str, rank: int = -1, world_size: int = -1,
        host: str = "-", timeout: float = 300.0,
    ) -> None:  # fmt: skip
        self.address, self.port, self._timeout = address, port, timeout
        self._key, self._rank, self._world_size, self._host = key, rank, world_size, host
        self._lock = forks.rlock()
        self._socket: socket.socket | None = None
        self._pid = self._owner = os.getpid()
        self._open()

    def _open(self) -> socket.socket:
        pid = os.getpid()
        rank = self._rank if pid == self._owner else -1  # a forked child is no rank
        greeting = hello("store", self._key, rank, self._world_size, pid, self._host)
        self._socket, _ = open_connection(self.address, self.port, greeting, self._timeout)
        self._pid = pid
        return self._socket

    def pmi(self) -> int:
        """Open the connection by which the rank's MPI library asks for the other ranks.

        Returns its descriptor, which belongs to the caller.
        """
        greeting = hello("pmi", self._key, self._rank, self._world_size, self._owner, self._host)
        opened, _ = open_connection(self.address, self.port, greeting, self._timeout)
        opened.settimeout(None)  # the library expects that reads wait
        return opened.detach()

    def own_address(self) -> str:
        """Return the address by which the server knows this process, in numbers."""
        assert self._socket is not None
        return str(self._socket.getsockname()[0])

    def ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        """Return the answer to a request.

        Raises TimeoutError if keys are missing after `seconds`, ValueError for a request that the
        store cannot do, DistNetworkError if the server is gone.
        """
        milliseconds = b"%d" % max(round(seconds * 1000), 0)
        frame = store_protocol.pack([milliseconds, *request])
        with self._lock:
            if self._socket is None or self._pid != os.getpid():
                self._open()
            try:
                answer = self._exchange(frame, seconds + _GRACE)
            except (OSError, NoAnswer, store_protocol.ProtocolError) as error:
                self.close()
                raise DistNetworkError(
                    f"the store at ({self.address}, {self.port}) does not answer: {error}"
                ) from error
            except BaseException:
                self.close()  # the answer would be taken for that to the next request
                raise
        if answer[0] == b"timeout":
            raise TimeoutError
        if answer[0] == b"error":
            raise ValueError(b" ".join(answer[1:]).decode())
        return answer[1:]

    def _exchange(self, frame: bytes, seconds: float) -> list[bytes]:
        connection = self._socket
        assert connection is not None
        # a socket's clock counts 32 bits of milliseconds on some systems
        connection.settimeout(min(seconds, 2_000_000.0))
        connection.sendall(frame)
        received = bytearray()
        while (answer := store_protocol.unpack(received)) is None:
            data = connection.recv(1 << 18)
            if not data:
                raise NoAnswer("the server closed the connection")
            received += data
        return answer

    def close(self) -> None:
        """Close the connection."""
        opened, self._socket = self._socket, None
        if opened is not None:
            with contextlib.suppress(OSError):
                opened.close()
