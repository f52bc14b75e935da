"""A rank's side of the watch: learns that another rank has died or given up, and where it was.

In: the job's server, and what this rank is in. Out: `failed`, a text as soon as something happened.
Called by `rendezvous`, which makes it, and by whoever waits in a collective.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from array import array
from typing import Any

from tracejit.core.memory import forks
from tracejit.distributed import environment, watch_protocol
from tracejit.distributed.board import Board
from tracejit.distributed.peer import hello
from tracejit.distributed.store_client import open_connection
from tracejit.distributed.store_protocol import ProtocolError

# A rank that came to its end may have done its part: the others have so long to finish.
PATIENCE = 20.0
_MOST_GROUPS = 100  # of which the others hear: a message has a bound
_watches: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch:
    """The watch of a rank, until `close`.

    failed  what happened to another rank, or None; waiters read it without a lock
    posted  its one element is the number of the last collective that this rank started

    >>> from tracejit.distributed.job_server import JobServer
    >>> server = JobServer("127.0.0.1", 0, 1, "")
    >>> watch = Watch("127.0.0.1", server.port, "", 0, 1)
    >>> watch.enter(3, "all_reduce")
    >>> watch.where(), watch.failed
    ({0: 'in all_reduce number 3'}, None)
    >>> watch.close(); server.close()
    """

    def __init__(
        self, address: str, port: int, key: str, rank: int, world_size: int, timeout: float = 60.0
    ) -> None:
        self.failed: str | None = None
        self._size = world_size
        self._ended: set[int] = set()
        self._posted: dict[int, dict[str, int]] = {}  # by ranks that came to their end
        self._stuck: tuple[dict[int, str], float] = ({}, 0.0)
        self.patience = PATIENCE
        self._over = False
        greeting = hello("watch", key, rank, world_size, os.getpid(), environment.host())
        self._socket, told = open_connection(address, port, greeting, timeout)
        self._server = (int(told[0]), told[1])
        self._board: Board | None = None
        with contextlib.suppress(OSError):  # no folder for temporary files: errors say less
            self._board = Board(told[2], rank, world_size)
        self.posted = array("q", [-1]) if self._board is None else self._board.posted
        self._send(mapped=True)
        self._socket.settimeout(None)
        self._thread = threading.Thread(target=self._listen, daemon=True, name="tracejit-watch")
        _watches.add(self)
        self._thread.start()

    def enter(self, number: int, name: str, sizes: str = "") -> None:
        """Say that this rank waits in a collective."""
        if self._board is not None:
            self._board.enter(number, name, sizes)

    def leave(self) -> None:
        """Say that it waits no more."""
        if self._board is not None:
            self._board.leave()

    def where(self) -> dict[int, str]:
        """Return what each rank of this host is in."""
        return {} if self._board is None else self._board.everywhere()

    def say(self, text: str) -> None:
        """Give up: the others hear the text."""
        self._end(say=text[: watch_protocol.MOST_TEXT])

    def tell_end(self, posted: dict[str, int]) -> None:
        """Say that this rank posts no more collectives, and how many it did in each group."""
        if not self._over and len(posted) <= _MOST_GROUPS:
            self._send(posted=posted)

    def hears_of_failure(self, seconds: float) -> bool:
        """Return True if something happened to another rank, now or within some seconds.

        A server that goes has sent its last words before.
        """
        deadline = time.monotonic() + seconds
        while self.failed is None and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.failed is not None

    def look_for_missing(self, group: Any, number: int, name: str) -> None:
        """Fail if a rank of a group came to its end before its collective of this number."""
        for rank, posted in self._posted.items():
            if rank in group.ranks and posted.get(group.group_name, number) < number:
                self._fail(f"rank {rank} has come to its end without it")

    def close(self) -> None:
        """Say that this rank comes to its end as it should."""
        self._end(bye=True)

    def _end(self, **told: Any) -> None:
        if self._over:
            return
        self._over = True
        self._send(**told)
        if self._board is not None:  # some may never have come
            self._board.unlink()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        # the server closes next; a connection cut off here could lose the last words
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)
        self._socket.close()

    def _send(self, **told: Any) -> None:
        with contextlib.suppress(OSError):  # the listener finds out why
            self._socket.sendall(watch_protocol.line(**told))

    def _listen(self) -> None:
        received = bytearray()
        try:
            while True:
                data = self._receive()
                if data is None:
                    continue
                if not data:
                    break
                received += data
                for told in watch_protocol.lines(received):
                    self._hear(told)
        except (OSError, ProtocolError):
            pass
        if not self._over:
            rank, pid = self._server
            self._fail(f"rank {rank} died (pid {pid}){self._place(rank)}" if rank >= 0 else
                       f"the launcher that serves the job died (pid {pid})")  # fmt: skip

    def _receive(self) -> bytes | None:
        """Return what the server said; None if it is time to look at ranks that ended."""
        self._socket.settimeout(0.25 if self._ended else None)
        try:
            return self._socket.recv(1 << 16)
        except TimeoutError:
            self._look_at_ended()
            return None

    def _hear(self, told: dict[str, Any]) -> None:
        if "died" in told:
            rank = int(told["died"])
            here = told.get("host") == environment.host()
            place = self._place(rank) if here else " on another host"
            self._fail(f"rank {rank} died (pid {told.get('pid')}){place}")
        elif "gave_up" in told:
            rank = int(told["gave_up"])
            place = self._place(rank)
            self._fail(f"rank {rank} gave up: {told.get('text')}" + (place and f"; it was{place}"))
        elif "ending" in told:
            self._posted[int(told["ending"])] = told["posted"]
        elif "ended" in told:
            self._ended.add(int(told["ended"]))
        elif "unlink" in told:
            if self._board is not None:
                self._board.unlink()
        elif "over" in told:
            self._over = True

    def _place(self, rank: int) -> str:
        text = self._board.where(rank) if self._board is not None else ""
        return f" {text}" if text else ""

    def _look_at_ended(self) -> None:
        """Fail if all others wait, and have not moved for long, when some came to their end.

        A rank that still computes may be the one they wait for, so that the board must show all.
        """
        places = self.where()
        waiting = {rank: text for rank, text in places.items() if rank not in self._ended}
        now = time.monotonic()
        if len(places) < self._size or not all(text.startswith("in ") for text in waiting.values()):
            waiting = {}
        if waiting != self._stuck[0]:
            self._stuck = (waiting, now)
        if waiting and now - self._stuck[1] > self.patience:
            rank = min(self._ended)
            self._fail(f"rank {rank} has come to its end{self._place(rank)}")

    def _fail(self, text: str) -> None:
        if self.failed is None:
            self.failed = text


@forks.in_child
def _forget_watches() -> None:
    """Close a forked child's copies: else the server would not learn of the parent's death."""
    for watch in list(_watches):
        watch._socket.close()
    _watches.clear()
