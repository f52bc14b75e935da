"""The watch of a job: tells every rank which other has died, given up or come to its end.

In: one connection a rank, whose end without a word means that the process died. Out: lines of JSON
to the other ranks. Called by `job_server`; `watch` is the other end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tracejit.distributed.store_protocol import ProtocolError, Talker

MOST_TEXT = 2000  # characters, of which one takes 12 bytes at most
MOST_LINE = 32_768


def line(**told: Any) -> bytes:
    """Return a message.

    >>> line(bye=True)
    b'{"bye": true}\\n'
    """
    return json.dumps(told).encode() + b"\n"


def lines(received: bytearray) -> list[dict[str, Any]]:
    """Take the whole messages off the bytes; ProtocolError for what is none.

    >>> lines(bytearray(b'{"bye": true}\\n{"s'))
    [{'bye': True}]
    """
    found = []
    while (end := received.find(b"\n")) >= 0:
        text = bytes(received[:end])
        del received[: end + 1]
        if len(text) > MOST_LINE:
            raise ProtocolError("the line is too long")
        try:
            told = json.loads(text)
        except ValueError:
            raise ProtocolError("the line is no message") from None
        if not isinstance(told, dict):
            raise ProtocolError("the line is no message")
        found.append(told)
    if len(received) > MOST_LINE:
        raise ProtocolError("the line is too long")
    return found


class Watchers:
    """The ranks that hold a watch connection.

    died   called with a text when a rank dies
    said   by rank: the text with which it gave up, or "died"
    """

    def __init__(self, size: int, died: Callable[[str], None]) -> None:
        self._size, self._died = size, died
        self._ranks: dict[int, tuple[Talker, int, str]] = {}  # connection, pid, host
        self._mapped: set[int] = set()
        self._ending: set[int] = set()
        self._news: list[bytes] = []  # for ranks that come later
        self.said: dict[int, str] = {}

    def admit(self, talker: Talker, rank: int, pid: int, host: str) -> None:
        """Let a rank in, and tell it what happened before."""
        self._ranks[rank] = (talker, pid, host)
        for news in self._news:
            talker.say(news)

    def take(self, talker: Talker, received: bytearray) -> None:
        """Read a rank's messages."""
        for told in lines(received):
            rank = self._rank_of(talker)
            if rank is None:
                return
            if "say" in told:
                text = str(told["say"])[:MOST_TEXT]
                self.said.setdefault(rank, text)
                del self._ranks[rank]
                self._tell(gave_up=rank, text=text)
            elif "posted" in told:
                self._note_end(rank, told["posted"])
            elif "bye" in told:
                del self._ranks[rank]
                self._tell(ended=rank)
            elif "mapped" in told:
                self._mapped.add(rank)
                if len(self._mapped) == self._size:
                    self._tell(unlink=True)

    def _note_end(self, rank: int, posted: Any) -> None:
        """Tell how many collectives a rank posted in each group, once."""
        fine = isinstance(posted, dict) and all(type(n) is int for n in posted.values())
        if not fine or rank in self._ending:  # the server keeps what it tells
            raise ProtocolError("the line is no message")
        self._ending.add(rank)
        self._tell(ending=rank, posted=posted)

    def _rank_of(self, talker: Talker) -> int | None:
        return next((rank for rank, one in self._ranks.items() if one[0] is talker), None)

    def _tell(self, **told: Any) -> None:
        news = line(**told)
        self._news.append(news)
        for talker, _, _ in list(self._ranks.values()):
            talker.say(news)

    def forget(self, talker: Talker) -> None:
        """Take note that a connection is over. Without a word before, the process died."""
        rank = self._rank_of(talker)
        if rank is None:
            return
        _, pid, host = self._ranks.pop(rank)
        self.said.setdefault(rank, "died")
        self._tell(died=rank, pid=pid, host=host)
        self._died(f"rank {rank} died")

    def over(self) -> None:
        """Tell all that the server ends, and that this is no failure."""
        self._tell(over=True)
