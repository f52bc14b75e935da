"""The store's requests: keys with values and queues, the same for every kind of store.

In: a request, which is a list of byte strings: an operation's name, keys, values. Out: an answer of
the same form, or None while it has to wait. Called by `store` for stores of one process and of a
file, and by `job_server` for peers that ask over a socket.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

MOST_FRAME = 64 << 20  # bytes of one request or answer
MOST_FIELDS = 1 << 17
MOST_KEY = 4096
MOST_KEYS = 1 << 20
MOST_BYTES = 512 << 20  # of all keys and values
_LENGTH = struct.Struct("!I")
CHANGING = frozenset({
    b"set", b"multi_set", b"add", b"append", b"compare_set", b"delete", b"queue_push", b"queue_pop",
})  # fmt: skip


class ProtocolError(Exception):
    """A peer broke the protocol; its connection ends with the text."""


def pack(fields: Sequence[bytes]) -> bytes:
    """Return the frame of a request or an answer.

    >>> unpack(bytearray(pack([b"get", b"key"]) + b"more"))
    [b'get', b'key']
    """
    body = b"".join(_LENGTH.pack(len(one)) + one for one in fields)
    if len(body) > MOST_FRAME:
        raise ValueError(f"a store moves at most {MOST_FRAME} bytes at once, got {len(body)}")
    return _LENGTH.pack(len(body)) + body


def unpack(received: bytearray) -> list[bytes] | None:
    """Take one frame off the bytes and return its fields, None if it is not whole yet.

    Raises ProtocolError for one that is longer than allowed or has wrong lengths inside.
    """
    if len(received) < 4:
        return None
    (size,) = _LENGTH.unpack_from(received)
    if size > MOST_FRAME:
        raise ProtocolError("the message is too long")
    if len(received) < 4 + size:
        return None
    body = bytes(received[4 : 4 + size])
    del received[: 4 + size]
    fields, at = [], 0
    while at < size:
        end = at + 4
        if end <= size:
            end += _LENGTH.unpack_from(body, at)[0]
        if end > size or end < at + 4 or len(fields) == MOST_FIELDS:
            raise ProtocolError("the message has wrong lengths")
        fields.append(body[at + 4 : end])
        at = end
    return fields


def number(text: bytes) -> int:
    """Return the integer that a counter's text stands for; ValueError if it is none."""
    try:
        return int(text[:32])
    except ValueError:
        raise ValueError(f"the value {text[:32]!r} is no integer") from None


@dataclass
class Table:
    """Keys with values, and queues. Callers hold a lock, or have one thread only."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    queues: dict[bytes, deque[bytes]] = field(default_factory=dict)
    held: int = 0  # bytes

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value; ValueError if the table would hold too much."""
        before = self.values.get(key)
        more = len(value) - len(before) if before is not None else len(value) + len(key)
        self._grow(key, more, before is None)
        self.values[key] = value

    def push(self, key: bytes, value: bytes) -> None:
        """Append to a queue; ValueError if the table would hold too much."""
        self._grow(key, len(value) + len(key), key not in self.queues)
        self.queues.setdefault(key, deque()).append(value)

    def pop(self, key: bytes) -> bytes | None:
        """Take the first value off a queue; None if there is none."""
        queue = self.queues.get(key)
        if not queue:
            return None
        value = queue.popleft()
        self.held -= len(value) + len(key)
        if not queue:
            del self.queues[key]
        return value

    def drop(self, key: bytes) -> bool:
        """Forget a key; return False if there was none."""
        value = self.values.pop(key, None)
        if value is None:
            return False
        self.held -= len(value) + len(key)
        return True

    def _grow(self, key: bytes, more: int, is_new: bool) -> None:
        if len(key) > MOST_KEY:
            raise ValueError(f"a key has at most {MOST_KEY} bytes, got {len(key)}")
        if is_new and len(self.values) + len(self.queues) >= MOST_KEYS:
            raise ValueError(f"a store holds at most {MOST_KEYS} keys")
        if self.held + more > MOST_BYTES:
            raise ValueError(f"a store holds at most {MOST_BYTES} bytes")
        self.held += more


def operate(table: Table, request: Sequence[bytes]) -> list[bytes] | None:
    """Return the answer to a request, None while keys that it waits for are missing.

    Raises ValueError for a value that is no integer and for more than the table may hold,
    ProtocolError for what is no request.

    >>> table = Table()
    >>> operate(table, [b"add", b"count", b"2"]), operate(table, [b"get", b"count"])
    ([b'2'], [b'2'])
    >>> operate(table, [b"get", b"missing"]) is None
    True
    """
    if not request or request[0] not in _OPERATIONS:
        raise ProtocolError("there is no such operation")
    operation, least = _OPERATIONS[request[0]]
    if len(request) - 1 < least:
        raise ProtocolError("the operation needs more fields")
    return operation(table, request[1:])


def _set(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    if len(fields) % 2:
        raise ProtocolError("a key has no value")
    for k in range(0, len(fields), 2):
        table.put(fields[k], fields[k + 1])
    return []


def _get(table: Table, keys: Sequence[bytes]) -> list[bytes] | None:
    if any(key not in table.values for key in keys):
        return None
    return [table.values[key] for key in keys]


def _wait(table: Table, keys: Sequence[bytes]) -> list[bytes] | None:
    return None if any(key not in table.values for key in keys) else []


def _check(table: Table, keys: Sequence[bytes]) -> list[bytes]:
    return [b"%d" % all(key in table.values for key in keys)]


def _add(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    result = b"%d" % (number(table.values.get(fields[0], b"0")) + number(fields[1]))
    table.put(fields[0], result)
    return [result]


def _append(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    table.put(fields[0], table.values.get(fields[0], b"") + fields[1])
    return []


def _compare_set(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    key, expected, desired = fields[:3]
    found = table.values.get(key)
    if found is None and expected:
        return [expected]
    if found is None or found == expected:
        table.put(key, desired)
        return [desired]
    return [found]


def _delete(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    return [b"%d" % table.drop(fields[0])]


def _count(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    return [b"%d" % len(table.values)]


def _keys(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    return list(table.values)


def _queue_push(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    table.push(fields[0], fields[1])
    return []


def _queue_pop(table: Table, fields: Sequence[bytes]) -> list[bytes] | None:
    value = table.pop(fields[0])
    return None if value is None else [value]


def _queue_len(table: Table, fields: Sequence[bytes]) -> list[bytes]:
    return [b"%d" % len(table.queues.get(fields[0], ()))]


# operation -> function, fewest fields
_OPERATIONS: dict[bytes, tuple[Callable[[Table, Sequence[bytes]], list[bytes] | None], int]] = {
    b"set": (_set, 2), b"multi_set": (_set, 0), b"get": (_get, 1), b"multi_get": (_get, 0),
    b"wait": (_wait, 0), b"check": (_check, 0), b"add": (_add, 2), b"append": (_append, 2),
    b"compare_set": (_compare_set, 3), b"delete": (_delete, 1), b"count": (_count, 0),
    b"keys": (_keys, 0), b"queue_push": (_queue_push, 2), b"queue_pop": (_queue_pop, 1),
    b"queue_len": (_queue_len, 1),
}  # fmt: skip


class Talker(Protocol):
    """A connection as a protocol sees it."""

    def say(self, data: bytes) -> None:
        """Send bytes, now or as soon as the peer takes them."""
