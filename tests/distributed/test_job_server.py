"""The job's server: PMI's words, and peers that do not behave."""

from __future__ import annotations

import os
import pickle
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracejit.distributed import (
    job_server,
    peer,
    pmi_protocol,
    store_protocol,
    store_service,
    watch_protocol,
)
from tracejit.distributed.job_server import JobServer
from tracejit.distributed.peer import hello

KEY = "5ca1ab1e"
BOUND = 20.0  # seconds: far more than anything here takes


@pytest.fixture
def server() -> Iterator[JobServer]:
    made = JobServer("127.0.0.1", 0, 2, KEY, rank=0)
    yield made
    made.close()
    assert not made._thread.is_alive()


class Client:
    """A peer that says what a test wants."""

    def __init__(self, server: JobServer, first: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), BOUND)
        self.file = self.socket.makefile("rb")
        if first:
            self.socket.sendall(first)

    def say(self, *lines: str) -> None:
        self.socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def line(self) -> str:
        return self.file.readline().decode().rstrip("\n")

    def ask(self, line: str) -> str:
        self.say(line)
        return self.line()

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def is_over(self) -> bool:
        """Wait a moment for the server's end of the connection, behind what it says before."""
        self.socket.settimeout(0.3)
        try:
            while self.socket.recv(1000):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def is_closed(self) -> bool:
        """Wait for the server's end of the connection."""
        try:
            return self.file.read() == b""
        except ConnectionError:
            return True


def store(server: JobServer, rank: int = -1, key: str = KEY, host: str = "h",
          size: int = 2) -> Client:  # fmt: skip
    return Client(server, hello("store", key, rank, size, os.getpid(), host))


def pmi(server: JobServer, rank: int, key: str = KEY) -> Client:
    made = Client(server, hello("pmi", key, rank, 2, os.getpid(), "h"))
    assert made.line().startswith("ok")
    return made


def works(server: JobServer) -> bool:
    """Return True if a peer that behaves is served."""
    one = store(server)
    assert one.line().startswith("ok 0 ")
    one.socket.sendall(store_protocol.pack([b"0", b"add", b"works", b"1"]))
    answer = bytearray()
    while (fields := store_protocol.unpack(answer)) is None:
        answer += one.socket.recv(100)
    one.close()
    return fields[0] == b"ok"


def test_pmi(server: JobServer) -> None:
    one, two = pmi(server, 0), pmi(server, 1)
    assert one.ask("cmd=init pmi_version=1 pmi_subversion=1") == (
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    )
    assert one.ask("cmd=get_maxes").startswith("cmd=maxes kvsname_max=256 keylen_max=64")
    assert one.ask("cmd=get_universe_size") == "cmd=universe_size size=2 rc=0"
    assert one.ask("cmd=get_appnum") == "cmd=appnum appnum=0 rc=0"
    name = one.ask("cmd=get_my_kvsname").split("kvsname=")[1].split()[0]
    assert name == two.ask("cmd=get_my_kvsname").split("kvsname=")[1].split()[0]
    get = f"cmd=get kvsname={name} key="
    assert one.ask(f"{get}PMI_process_mapping") == "cmd=get_result rc=0 value=(vector,(0,1,2))"
    assert one.ask(f"cmd=put kvsname={name} key=a value=b c=d") == "cmd=put_result rc=0"
    assert two.ask(f"{get}a") == "cmd=get_result rc=0 value=b c=d"
    assert "rc=-1 msg=key_not_found" in two.ask(f"{get}b")
    assert "rc=-1" in one.ask(f"cmd=put kvsname={name} key=a value={'x' * 1025}")
    one.say("cmd=barrier_in")
    one.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        one.socket.recv(1)
    one.socket.settimeout(BOUND)
    two.say("cmd=barrier_in")
    assert two.line() == "cmd=barrier_out rc=0"
    assert one.socket.recv(100) == b"cmd=barrier_out rc=0\n"
    assert not server.world.is_empty()
    assert two.ask("cmd=finalize") == "cmd=finalize_ack rc=0"
    one.close()
    _until(server.world.is_empty)


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_hosts_are_unknown_before_all_registered(server: JobServer) -> None:
    one = pmi(server, 0)
    assert "key_not_found" in one.ask("cmd=get kvsname=k key=PMI_process_mapping")
    assert store(server, 1, host="g").line().startswith("ok")
    assert "(vector,(0,2,1))" in one.ask("cmd=get kvsname=k key=PMI_process_mapping")


def test_pmi_from_strangers(server: JobServer) -> None:
    """A connection says the key before it speaks PMI, wherever it comes from."""
    assert works(server)
    for first in (b"cmd=init pmi_version=1 pmi_subversion=1\n", b"cmd=initack pmiid=0\n"):
        assert Client(server, first).file.read() == b"no this is no connection of tracejit\n"
    wrong = Client(server, hello("pmi", "guess", 0, 2, 1, "h"))
    wrong.say("cmd=init pmi_version=1 pmi_subversion=1", "cmd=put key=a value=b")
    assert wrong.line().startswith("no the key is wrong")
    assert server.world.is_empty() and not server.world._values


@pytest.mark.parametrize("rank", [0, 2, -1, 10**18])
def test_pmi_ranks(server: JobServer, rank: int) -> None:
    """Rank 0 is here already, the others are no ranks of the job."""
    one = pmi(server, 0)
    told = Client(server, hello("pmi", KEY, rank, 2, 1, "h")).line()
    assert told == ("no rank 0 is here already" if rank == 0 else f"no rank {rank} is outside the "
                    "job")  # fmt: skip
    assert one.ask("cmd=get_appnum") == "cmd=appnum appnum=0 rc=0"


@pytest.mark.parametrize("line", ["cmd=get_appnum", "cmd=initack pmiid=1", "cmd=delete", "hello",
                                  "cmd=abort", "x" * 3000])  # fmt: skip
def test_pmi_lines_that_are_none(server: JobServer, line: str) -> None:
    """Nothing comes after "finalize", and nothing else is PMI."""
    one = pmi(server, 0)
    if "appnum" in line:
        assert one.ask("cmd=finalize") == "cmd=finalize_ack rc=0"
    one.say(line)
    assert one.is_closed()
    assert works(server)


@pytest.mark.parametrize(
    "first, answer",
    [
        (b"GET / HTTP/1.1\r\n", b"no connection of tracejit"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"no connection of tracejit"),
        (b"tracejit\n", b"no connection of tracejit"),
        (b"tracejit " + b"x" * 2000, b"no connection of tracejit"),
        (b"tracejit 0 store 5ca1ab1e -1 2 1 h\n", b"another version"),
        (b"tracejit 1 store wrong -1 2 1 h\n", b"key is wrong"),
        (b"tracejit 1 watch - 0 2 1 h\n", b"key is wrong"),
        (b"tracejit 1 store 5ca1ab1e 2 2 1 h\n", b"rank 2 is outside"),
        (b"tracejit 1 store 5ca1ab1e -2 2 1 h\n", b"rank -2 is outside"),
        (b"tracejit 1 watch 5ca1ab1e -1 2 1 h\n", b"rank -1 is outside"),
        (b"tracejit 1 store 5ca1ab1e 0 3 1 h\n", b"2 processes, not 3"),
        (b"tracejit 1 other 5ca1ab1e 0 2 1 h\n", b"no connection of tracejit"),
        (b"tracejit 1 store 5ca1ab1e a b c h\n", b"no connection of tracejit"),
        (b"tracejit 1 store 5ca1ab1e 0 2 1 " + b"h" * 65 + b"\n", b"no connection of tracejit"),
    ],
)
def test_wrong_first_lines(server: JobServer, first: bytes, answer: bytes) -> None:
    one = Client(server, first)
    said = one.file.read()
    assert said.startswith(b"no ") and answer in said
    assert works(server)


@pytest.mark.parametrize("protocol", ["store", "watch"])
def test_two_peers_with_one_rank(server: JobServer, protocol: str) -> None:
    first = hello(protocol, KEY, 1, 2, 1, "h")
    one = Client(server, first)
    assert one.line().startswith("ok")
    assert Client(server, first).line() == "no rank 1 is here already"
    one.close()

    def is_let_in() -> bool:
        return Client(server, first).line().startswith("ok")

    _until(is_let_in)


def test_silent_peers_are_dropped(server: JobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_server, "PATIENCE", 0.2)
    stays = store(server)
    assert stays.line().startswith("ok")
    begun = time.monotonic()
    assert Client(server).is_closed()
    assert Client(server, b"trace").is_closed()
    assert time.monotonic() - begun >= 0.3
    stays.socket.sendall(store_protocol.pack([b"0", b"count"]))
    assert stays.socket.recv(100)


def test_too_many_connections(server: JobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent ones give way; nobody gets in where all have said who they are."""
    monkeypatch.setattr(job_server, "PATIENCE", 600.0)
    silent = [Client(server) for _ in range(server._most + 5)]
    assert silent[0].is_closed()
    assert works(server)
    _until(lambda: len(server._peers) <= server._most)
    for one in silent:
        one.close()
    known = [store(server) for _ in range(server._most)]
    assert all(one.line().startswith("ok") for one in known)
    assert Client(server).is_closed()


@pytest.mark.parametrize(
    "message",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\x06\0\0\0\x09ab",
        b"\0\0\0\x02ab",
        store_protocol.pack([b"0"]),
        store_protocol.pack([b"0", b"no such"]),
        store_protocol.pack([b"0", b"set", b"k"]),
        store_protocol.pack([b"0", b"set", b"k", b"v", b"x"]),
    ],
)
def test_requests_that_are_none(server: JobServer, message: bytes) -> None:
    one = store(server)
    one.line()
    one.socket.sendall(message)
    assert one.is_closed()
    assert works(server)


@pytest.mark.parametrize("text", [b"x" * 40_000, b"garbage\n", b"[1]\n", b"[" * 30_000 + b"\n"])
def test_watch_lines_that_are_none(server: JobServer, text: bytes) -> None:
    one = Client(server, hello("watch", KEY, 0, 2, 1, "h"))
    assert one.line().startswith("ok")
    one.socket.sendall(text)
    one.is_closed()
    assert works(server)
    assert server.watchers.said == {0: "died"}


def test_bounds_of_the_store(server: JobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_protocol, "MOST_BYTES", 100)
    monkeypatch.setattr(store_protocol, "MOST_KEYS", 3)
    table = store_protocol.Table()
    table.put(b"a", b"x" * 90)
    with pytest.raises(ValueError, match="at most 100 bytes"):
        table.put(b"b", b"x" * 20)
    table.put(b"a", b"y")
    table.put(b"b", b"z")
    table.push(b"queue", b"z")
    with pytest.raises(ValueError, match="at most 3 keys"):
        table.push(b"other", b"z")
    assert table.pop(b"queue") == b"z" and table.drop(b"a") and table.drop(b"b")
    assert table.held == 0
    with pytest.raises(ValueError, match="at most 4096"):
        table.put(b"k" * 4097, b"")


def test_a_peer_that_never_reads(server: JobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server holds a bound of answers for it, and serves the others."""
    monkeypatch.setattr(peer, "_MOST_UNSENT", 1 << 20)
    one = store(server)
    one.socket.sendall(store_protocol.pack([b"0", b"set", b"k", b"v" * 100_000]))
    ask = store_protocol.pack([b"0", b"get", b"k"])
    with pytest.raises(OSError):
        for _ in range(100_000):
            one.socket.sendall(ask)
    assert works(server)


def test_waiting_costs_no_turn(server: JobServer) -> None:
    """Answers to those that wait come in any order; a peer that goes is forgotten."""
    one, two = store(server), store(server)
    one.socket.sendall(store_protocol.pack([b"60000", b"get", b"late", b"later"]))
    two.socket.sendall(store_protocol.pack([b"60000", b"wait", b"never"]))
    one.line(), two.line()
    _until(lambda: len(server.store._all) == 2)
    two.close()
    _until(lambda: len(server.store._all) == 1)
    third = store(server)
    for key in (b"late", b"later"):
        third.socket.sendall(store_protocol.pack([b"0", b"set", key, key]))
    answer = bytearray(one.socket.recv(100))
    assert store_protocol.unpack(answer) == [b"ok", b"late", b"later"]
    assert not server.store._all and not server.store._waiting


class Marks:
    """Object whose pickle leaves a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self._file,)


def test_pickles_are_never_unpickled(server: JobServer, tmp_path: Path) -> None:
    """Neither of strangers nor of peers with the key: the server moves bytes."""
    data = pickle.dumps(Marks(tmp_path / "mark"))
    pickle.loads(data)
    (tmp_path / "mark").unlink()
    assert Client(server, data).is_over()
    one, watcher, mpi = store(server), watch(server, 1), pmi(server, 0)
    one.line()
    one.socket.sendall(store_protocol.pack([b"0", b"set", b"k", data]))
    one.socket.sendall(store_protocol.pack([b"0", data, data]))
    watcher.socket.sendall(data + b"\n")
    mpi.socket.sendall(b"cmd=put key=a value=" + data.replace(b"\n", b" ") + b"\n" + data + b"\n")
    assert all(client.is_over() for client in (one, watcher, mpi))
    assert works(server) and not (tmp_path / "mark").exists()
    for module in (job_server, peer, pmi_protocol, store_protocol, store_service, watch_protocol):
        assert "pickle" not in Path(module.__file__ or "").read_text()


def watch(server: JobServer, rank: int) -> Client:
    made = Client(server, hello("watch", KEY, rank, 2, 1, "h"))
    assert made.line().startswith("ok")
    return made


def test_random_bytes(server: JobServer) -> None:
    """Whatever comes, cut off or reset at any place: a rank that is inside is served on."""
    chance = random.Random(0)
    inside = [watch(server, 0), pmi(server, 0)]
    starts = [b"", b"tracejit ", b"tracejit 1 store ", hello("store", KEY, -1, 2, 1, "h"),
              hello("watch", KEY, 1, 2, 1, "h"), hello("pmi", KEY, 1, 2, 1, "h")]  # fmt: skip
    for _ in range(300):
        first = chance.choice(starts)
        data = bytearray(first + chance.randbytes(chance.randrange(200)))
        if chance.random() < 0.5 and data:
            data[chance.randrange(len(data))] = chance.randrange(256)
        one = Client(server, bytes(data[: chance.randrange(len(data) + 1)]))
        if chance.random() < 0.5:  # no good-bye of TCP's either
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
    assert works(server)
    assert inside[1].ask("cmd=get_appnum") == "cmd=appnum appnum=0 rc=0"
    assert not inside[0].is_over()
    _until(lambda: len(server._peers) <= 3)


def test_slow_strangers_and_slow_peers(
    server: JobServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then keeps no stranger inside, and a slow peer keeps no other waiting."""
    monkeypatch.setattr(job_server, "PATIENCE", 0.5)
    slow = store(server)
    slow.line()
    frame = store_protocol.pack([b"0", b"set", b"slow", b"v" * 40])
    stranger = Client(server)
    begun = time.monotonic()
    with pytest.raises(OSError):
        for k, byte in enumerate(b"tracejit 1 store " + b"x" * 900):
            stranger.socket.sendall(bytes([byte]))
            slow.socket.sendall(frame[k : k + 1])
            assert works(server)
            time.sleep(0.02)
    assert 0.4 < time.monotonic() - begun < BOUND
    slow.socket.sendall(frame[k:])
    assert slow.socket.recv(100) == store_protocol.pack([b"ok"])


def test_a_flood_of_connections_leaves_the_ranks_inside(server: JobServer) -> None:
    inside = [watch(server, 0), watch(server, 1), pmi(server, 0), pmi(server, 1)]
    flood = [Client(server) for _ in range(2 * server._most)]
    assert works(server)
    for one in inside[2:]:
        assert one.ask("cmd=get_appnum") == "cmd=appnum appnum=0 rc=0"
    assert not inside[0].is_over() and not inside[1].is_over() and not server.watchers.said
    for one in flood:
        one.close()


def test_what_a_stranger_makes_the_server_hold(server: JobServer) -> None:
    one = Client(server)
    with pytest.raises(OSError):
        for _ in range(1000):
            one.socket.sendall(b"x" * 100_000)
            assert all(len(held.received) <= 1 << 18 for held in list(server._peers))
    assert works(server)


def test_what_a_watch_makes_the_server_keep(server: JobServer) -> None:
    """It keeps its news for ranks that come later: each rank has a few words."""
    one = watch(server, 0)
    one.say('{"posted": {"0": 3}}')
    _until(lambda: len(server.watchers._news) == 1)
    one.say('{"posted": {"0": 4}}')
    assert one.is_over()
    two = watch(server, 1)
    two.say('{"posted": [1]}')
    assert two.is_over()
    assert works(server)
    assert len(server.watchers._news) == 3  # and two deaths


def test_close_waits_for_mpi(server: JobServer) -> None:
    """MPI_Finalize of other ranks needs the server after rank 0 is through."""
    assert works(server)
    one = pmi(server, 1)
    closing = threading.Thread(target=server.close, args=(BOUND,))
    closing.start()
    time.sleep(0.05)
    assert one.ask("cmd=finalize") == "cmd=finalize_ack rc=0"
    closing.join(BOUND)
    assert not closing.is_alive() and not server._thread.is_alive()


def test_the_port_is_taken(server: JobServer) -> None:
    with pytest.raises(OSError) as caught:
        JobServer("127.0.0.1", server.port, 2, KEY)
    text = str(job_server.listening_error(caught.value, "127.0.0.1", server.port))
    assert "EADDRINUSE" in text and f"port: {server.port}" in text
    with pytest.raises(OSError) as caught:
        JobServer("192.0.2.1", 0, 2, KEY)
    assert "not one of this host's" in str(job_server.listening_error(caught.value, "x", 1))


def test_only_loopback_listens(server: JobServer) -> None:
    assert server._listener.getsockname()[0] == "127.0.0.1"
    other = JobServer("localhost", 0, 2, KEY)
    assert other._listener.getsockname()[0] == "127.0.0.1"
    other.close()
