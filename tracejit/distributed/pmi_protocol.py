"""PMI 1.1, the text protocol by which MPICH's processes find each other in MPI_Init.

In: lines such as "cmd=get kvsname=... key=...". Out: lines of answers. Called by `job_server` for
processes that no launcher of MPI started. They have told the job's key and their rank before, and
hand the connection to MPICH as PMI_FD.

MPICH asks for `PMI_process_mapping` to learn which ranks share memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from tracejit.distributed.store_protocol import ProtocolError, Talker

MOST_LINE = 2048
_MOST_KEY, _MOST_VALUE = 64, 1024
_SPAWN = ("spawn", "mcmd", "publish_name", "unpublish_name", "lookup_name")


def process_mapping(hosts: Sequence[str]) -> str:
    """Return MPICH's text for the hosts of ranks 0, 1, ...; "" if it is too long for PMI.

    A block is (first host, hosts, ranks of each).

    >>> process_mapping(["a"] * 4)
    '(vector,(0,1,4))'
    >>> process_mapping(["a", "a", "b", "b"]), process_mapping(["a", "b", "a"])
    ('(vector,(0,2,2))', '(vector,(0,2,1),(0,1,1))')
    """
    numbers: dict[str, int] = {}
    runs: list[list[int]] = []  # host, ranks
    for host in hosts:
        node = numbers.setdefault(host, len(numbers))
        if runs and runs[-1][0] == node:
            runs[-1][1] += 1
        else:
            runs.append([node, 1])
    blocks: list[list[int]] = []
    for node, count in runs:
        if blocks and blocks[-1][0] + blocks[-1][1] == node and blocks[-1][2] == count:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1, count])
    text = "(vector," + ",".join(f"({a},{b},{c})" for a, b, c in blocks) + ")"
    return text if len(text) < _MOST_VALUE else ""


class World:
    """The processes that ask in MPI_Init, and what they tell each other.

    hosts  by rank; known once every rank has told its own to the store
    """

    def __init__(self, size: int, hosts: dict[int, str]) -> None:
        self.size, self._hosts = size, hosts
        # libraries name shared memory after it: two jobs of a host must not meet
        self.name = f"tracejit_{secrets.token_hex(8)}"
        self._values: dict[str, str] = {}
        self._inside: dict[int, Talker] = {}  # ranks that wait in the barrier
        self._ranks: dict[int, Talker] = {}
        self._failed = ""

    def take(self, talker: Talker, received: bytearray) -> None:
        """Answer the whole lines among the bytes; ProtocolError for what is no PMI."""
        while (end := received.find(b"\n")) >= 0:
            line = bytes(received[:end])
            del received[: end + 1]
            if len(line) > MOST_LINE:
                raise ProtocolError("the line is too long")
            self._answer(talker, line.decode("ascii", "replace"))
        if len(received) > MOST_LINE:
            raise ProtocolError("the line is too long")

    def _answer(self, talker: Talker, line: str) -> None:
        told = dict(part.split("=", 1) for part in line.strip().split(" ") if "=" in part)
        command = told.get("cmd", "")
        if self._rank_of(talker) is None:
            raise ProtocolError("the process said finalize before")
        if command in ("put", "get", "getbyidx"):
            self._key_or_value(talker, command, told, line)
        elif command == "barrier_in":
            self._enter(talker)
        elif command == "finalize":
            _say(talker, "finalize_ack rc=0")
            self.forget(talker)
        elif command == "abort":
            raise ProtocolError("the process gave up")
        elif command in _SPAWN:
            _say(talker, f"{command}_result rc=-1 msg=not_available")
        elif command in self._constants():
            _say(talker, self._constants()[command])
        else:
            raise ProtocolError("the line is no PMI command")

    def _constants(self) -> dict[str, str]:
        return {
            "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": f"maxes kvsname_max=256 keylen_max={_MOST_KEY} vallen_max={_MOST_VALUE} "
                         "rc=0",
            "get_appnum": "appnum appnum=0 rc=0",
            "get_my_kvsname": f"my_kvsname kvsname={self.name} rc=0",
            "get_universe_size": f"universe_size size={self.size} rc=0",
        }  # fmt: skip

    def _rank_of(self, talker: Talker) -> int | None:
        return next((rank for rank, one in self._ranks.items() if one is talker), None)

    def admit(self, talker: Talker, rank: int) -> None:
        """Let a rank in."""
        self._ranks[rank] = talker

    def _key_or_value(self, talker: Talker, command: str, told: dict[str, str], line: str) -> None:
        key = told.get("key", "")
        if command == "put":
            value = line.split("value=", 1)[1] if "value=" in line else ""
            fits = 0 < len(key) <= _MOST_KEY and len(value) <= _MOST_VALUE
            if not fits or len(self._values) >= 64 * self.size + 256:
                _say(talker, "put_result rc=-1 msg=too_long_or_too_many")
                return
            self._values[key] = value
            _say(talker, "put_result rc=0")
            return
        found = self._values.get(key)
        if key == "PMI_process_mapping" and len(self._hosts) == self.size:
            found = process_mapping([self._hosts[k] for k in range(self.size)]) or None
        if found is None or command == "getbyidx":
            _say(talker, f"{command}_result rc=-1 msg=key_not_found value=unknown")
        else:
            _say(talker, f"get_result rc=0 value={found}")

    def _enter(self, talker: Talker) -> None:
        rank = self._rank_of(talker)
        assert rank is not None
        self._inside[rank] = talker
        if self._failed:
            self.fail(self._failed)
        elif len(self._inside) == self.size:
            inside, self._inside = self._inside, {}
            for one in inside.values():
                _say(one, "barrier_out rc=0")

    def fail(self, why: str) -> None:
        """End the barrier of the others with an error: a rank will never come."""
        self._failed = why.replace(" ", "_")
        inside, self._inside = self._inside, {}
        for one in inside.values():
            _say(one, f"barrier_out rc=-1 msg={self._failed}")

    def forget(self, talker: Talker) -> None:
        """Take note that a connection is over."""
        rank = self._rank_of(talker)
        if rank is not None:
            del self._ranks[rank]
            self._inside.pop(rank, None)

    def is_empty(self) -> bool:
        """Return True if no process needs the server for MPI_Finalize any more."""
        return not self._ranks


def _say(talker: Talker, *commands: str) -> None:
    talker.say("".join(f"cmd={command}\n" for command in commands).encode())
