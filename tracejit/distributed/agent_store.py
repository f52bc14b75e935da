"""A client of the store that PyTorch's own torchrun serves, in PyTorch's protocol.

In: the address of its agent. Out: a store that knows `set`, `get`, `multi_get` and `wait`. Called
by `rendezvous`: the ranks tell each other through it where the job's server is.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time

from tracejit.distributed.errors import DistNetworkError
from tracejit.distributed.store_base import Store

_VALIDATE, _SET, _GET, _WAIT = 0, 1, 3, 6
_MAGIC = 0x3C85F7CE
_MOST = 1 << 20  # bytes of a value


def serves(environ: dict[str, str] | os._Environ[str]) -> bool:
    """Return True if the launcher's agent serves a store of PyTorch's, not one of ours.

    >>> serves({"TORCHELASTIC_USE_AGENT_STORE": "True"})
    True
    >>> serves({"TORCHELASTIC_USE_AGENT_STORE": "True", "TRACEJIT_AGENT": "1"})
    False
    """
    return environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and "TRACEJIT_AGENT" not in environ


class AgentStore(Store):
    """A store of PyTorch's that torchrun's agent serves. DistNetworkError if it does not answer.

    Each attempt of the job has keys of its own: the agent's store outlives a restart.
    """

    def __init__(self, address: str, port: int, seconds: float, attempt: str) -> None:
        self._where, self._prefix = f"{address}:{port}", f"/tracejit/attempt_{attempt}/".encode()
        try:
            self._socket = socket.create_connection((address, port), seconds)
            self._socket.sendall(struct.pack("<BI", _VALIDATE, _MAGIC))
        except OSError as error:
            raise self._error(str(error)) from error

    def _error(self, why: str) -> DistNetworkError:
        return DistNetworkError(
            f"TORCHELASTIC_USE_AGENT_STORE says that torchrun's agent serves a store at "
            f"{self._where}, but it does not answer as PyTorch's does ({why}); start the job by "
            "tracejitrun, which takes torchrun's options"
        )

    def _ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        name, *fields = request
        try:
            if name == b"set":
                key, value = fields
                self._send(_SET, _text(self._prefix + key) + _text(value))
                return []
            if name not in (b"get", b"multi_get", b"wait"):
                return super()._ask(request, seconds)
            keys = [_text(self._prefix + key) for key in fields]
            self._send(_WAIT, struct.pack("<Q", len(keys)) + b"".join(keys))
            self._receive(1, time.monotonic() + seconds)
            return [] if name == b"wait" else [self._value(key, seconds) for key in keys]
        except TimeoutError:
            self.close()  # an answer may still come, out of turn
            raise
        except (OSError, EOFError) as error:
            raise self._error(str(error)) from error

    def _value(self, key: bytes, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        self._send(_GET, key)
        (size,) = struct.unpack("<Q", self._receive(8, deadline))
        if size > _MOST:
            raise EOFError("a value is too long")
        return self._receive(size, deadline)

    def _send(self, query: int, data: bytes) -> None:
        self._socket.sendall(bytes([query]) + data)

    def _receive(self, count: int, deadline: float) -> bytes:
        found = b""
        while len(found) < count:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            data = self._socket.recv(count - len(found))
            if not data:
                raise EOFError("the connection was closed")
            found += data
        return found

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.close()


def _text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
