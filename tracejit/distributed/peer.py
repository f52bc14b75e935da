"""A connection of a job's server, and the line by which it starts.

In: bytes to send. Out: bytes that arrived, for the connection's protocol. Called by `job_server`;
`store_client` writes the first line at the other end.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Protocol

from tracejit.distributed import store_protocol

VERSION = "1"
NO_KEY = "-"
MOST_HELLO = 1024  # bytes of a first line
_MOST_UNSENT = 2 * store_protocol.MOST_FRAME


class Server(Protocol):
    """A server as its connections see it."""

    def lose(self, peer: Peer) -> None:
        """End a connection, as soon as nobody is in the middle of it."""

    def expect(self, peer: Peer) -> None:
        """Wait until the peer takes what is unsent, too."""


def hello(protocol: str, key: str, *fields: object) -> bytes:
    """Return the first line of a connection."""
    return f"tracejit {VERSION} {protocol} {key or NO_KEY} {' '.join(map(str, fields))}\n".encode()


def resolve(address: str, port: int) -> tuple[int, Any]:
    """Return the family and the socket address that a name stands for, IPv4 first.

    Raises OSError for a name that is unknown.
    """
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return int(found[0][0]), found[0][4]


class Peer:
    """One connection."""

    def __init__(self, server: Server, connection: socket.socket) -> None:
        self._server, self.connection = server, connection
        self.received, self.unsent = bytearray(), bytearray()
        self.service: Any = None  # of the protocol, once it is known
        self.rank = -1
        self.since = time.monotonic()

    def say(self, data: bytes) -> None:
        """Send bytes, now or as soon as the peer takes them."""
        self.unsent += data
        self.send()

    def send(self) -> None:
        """Send what the peer takes now."""
        try:
            while self.unsent:
                del self.unsent[: self.connection.send(self.unsent)]
        except BlockingIOError:
            if len(self.unsent) > _MOST_UNSENT:
                self.unsent.clear()
                self._server.lose(self)
                return
        except OSError:
            self.unsent.clear()  # reading will find the end
        self._server.expect(self)
