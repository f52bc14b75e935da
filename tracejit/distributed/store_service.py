"""The store of a job's server: answers requests, and keeps those that wait for keys.

In: frames of requests from connections. Out: frames of answers. Called by `job_server`, in its one
thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tracejit.distributed.store_protocol import (
    CHANGING,
    ProtocolError,
    Table,
    Talker,
    number,
    operate,
    pack,
    unpack,
)


class Service:
    """The store of a job: one table, and the requests that wait for its keys."""

    def __init__(self) -> None:
        self.table = Table()
        self._waiting: dict[bytes, list[_Waiting]] = {}
        self._all: dict[int, _Waiting] = {}

    def take(self, talker: Talker, received: bytearray) -> None:
        """Answer the requests in the bytes. A request's first field is its timeout in ms."""
        while (fields := unpack(received)) is not None:
            if len(fields) < 2:
                raise ProtocolError("the message is no request")
            self._answer(talker, fields[1:], fields[0])

    def _answer(self, talker: Talker, request: list[bytes], timeout: bytes) -> None:
        try:
            answer = operate(self.table, request)
            if answer is not None:
                talker.say(pack([b"ok", *answer]))
                if request[0] in CHANGING:
                    self._wake(request)
                return
            seconds = min(max(number(timeout), 0), 10**12) / 1000
        except ValueError as error:
            talker.say(pack([b"error", str(error).encode()]))
            return
        if seconds == 0:
            talker.say(pack([b"timeout"]))
            return
        made = _Waiting(talker, request, time.monotonic() + seconds)
        self._all[id(made)] = made
        for key in set(request[1:]):
            self._waiting.setdefault(key, []).append(made)

    def _wake(self, request: list[bytes]) -> None:
        """Answer those who waited for keys that the request wrote."""
        keys = request[1::2] if request[0] == b"multi_set" else request[1:2]
        for key in set(keys):
            for waiting in list(self._waiting.get(key, ())):
                answer = operate(self.table, waiting.request)
                if answer is not None:
                    self._end(waiting)
                    waiting.talker.say(pack([b"ok", *answer]))

    def _end(self, waiting: _Waiting) -> None:
        del self._all[id(waiting)]
        for key in set(waiting.request[1:]):
            left = [one for one in self._waiting.get(key, ()) if one is not waiting]
            if left:
                self._waiting[key] = left
            else:
                self._waiting.pop(key, None)

    def next_deadline(self) -> float | None:
        """Return the time of the first timeout; None if nothing waits."""
        return min((one.deadline for one in self._all.values()), default=None)

    def expire(self, now: float) -> None:
        """Tell those whose time is over."""
        for waiting in [one for one in self._all.values() if one.deadline <= now]:
            self._end(waiting)
            waiting.talker.say(pack([b"timeout"]))

    def forget(self, talker: Any) -> None:
        """Drop the requests of a connection that is gone."""
        for waiting in [one for one in self._all.values() if one.talker is talker]:
            self._end(waiting)


@dataclass
class _Waiting:
    talker: Talker
    request: list[bytes]
    deadline: float
