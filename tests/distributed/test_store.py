"""Stores: every kind does what PyTorch's does, between processes and threads too."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tracejit.distributed import store as ours
from tracejit.distributed import store_protocol
from tracejit.distributed.errors import DistNetworkError, DistStoreError
from tracejit.distributed.job_server import JobServer

SHORT = timedelta(milliseconds=50)
KINDS = ("tcp", "file", "hash", "prefix")


def _make(library: Any, kind: str, folder: Path) -> Any:
    if kind == "tcp":
        return library.TCPStore("127.0.0.1", 0, 1, True)
    if kind == "file":
        return library.FileStore(str(folder / "store"), 1)
    return library.HashStore() if kind == "hash" else library.PrefixStore("p", library.HashStore())


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    yield _make(ours, request.param, tmp_path)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        names = [one.__name__ for one in type(error).__mro__]
        return next(n for n in names if n in ("QueueEmptyError", "ValueError", "TypeError",
                                              "RuntimeError"))  # fmt: skip


def _script(store: Any) -> list[Any]:
    """Call everything, errors included, and return what came of it."""
    store.set_timeout(SHORT)
    calls: list[Callable[[], Any]] = [
        lambda: store.timeout,
        lambda: store.set("a", "1"), lambda: store.get("a"), lambda: store.set("a", "2"),
        lambda: store.get("a"), lambda: store.set("b", b"\x00\xff"), lambda: store.get("b"),
        lambda: store.set("empty", ""), lambda: store.get("empty"), lambda: store.set("c", 3),
        lambda: store.add("n", 3), lambda: store.add("n", -5), lambda: store.get("n"),
        lambda: store.add("a", 40), lambda: store.add("n", 0),
        lambda: store.get("missing"), lambda: store.wait(["a", "missing"]),
        lambda: store.wait(["missing"], SHORT), lambda: store.wait(["a", "n"]),
        lambda: store.wait(["a"], SHORT),
        lambda: store.check(["a", "n"]), lambda: store.check(["a", "missing"]),
        lambda: store.check([]),
        lambda: store.compare_set("k", "", "v"), lambda: store.compare_set("k", "v", "w"),
        lambda: store.compare_set("k", "x", "y"), lambda: store.compare_set("q", "x", "y"),
        lambda: store.check(["q"]),
        lambda: store.multi_set(["m1", "m2"], ["1", "2"]),
        lambda: store.multi_get(["m2", "m1"]),
        lambda: store.multi_get(["m1", "missing"]),
        lambda: store.append("ap", "1"), lambda: store.append("ap", "2"), lambda: store.get("ap"),
        lambda: store.delete_key("m1"), lambda: store.check(["m1"]),
        lambda: store.barrier("all", 1),
        lambda: store.set_timeout(3),
    ]  # fmt: skip
    return [_outcome(call) for call in calls]


def _queues(store: Any) -> list[Any]:
    store.set_timeout(SHORT)
    calls: list[Callable[[], Any]] = [
        lambda: store.queue_len("Q"), lambda: store.queue_push("Q", "1"),
        lambda: store.queue_push("Q", b"2"), lambda: store.queue_len("Q"),
        lambda: store.queue_pop("Q"), lambda: store.queue_pop("Q", block=False),
        lambda: store.queue_pop("Q", block=False), lambda: store.queue_pop("Q"),
        lambda: store.queue_len("Q"),
    ]  # fmt: skip
    return [_outcome(call) for call in calls]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_like_pytorch(kind: str, tmp_path: Path) -> None:
    theirs = pytest.importorskip("torch.distributed")
    found = []
    for name, library in (("ours", ours), ("theirs", theirs)):
        folder = tmp_path / name
        folder.mkdir()
        one = _make(library, kind, folder)
        found.append(_script(one))
        if kind != "file":  # PyTorch's has no queues
            found[-1] += _queues(one)
            keys = [key for key in one.list_keys() if len(key) < 3 or key == "empty"]
            found[-1].append(sorted(keys))
        found[-1].append(isinstance(one.clone(), library.Store))
    assert found[0] == found[1]


@pytest.mark.oracle
def test_errors_of_tcp_stores_like_pytorch() -> None:
    theirs = pytest.importorskip("torch.distributed")
    for library in (ours, theirs):
        brief = timedelta(milliseconds=300)
        with pytest.raises(RuntimeError, match="The client socket has timed out after 300ms while"
                           " trying to connect to") as caught:  # fmt: skip
            library.TCPStore("127.0.0.1", 1, 2, False, brief)
        assert type(caught.value).__name__ == "DistNetworkError"
        with pytest.raises(RuntimeError, match="1/2 clients joined") as caught:
            library.TCPStore("127.0.0.1", 0, 2, True, brief)
        assert type(caught.value).__name__ == "DistStoreError"
        one = library.TCPStore("127.0.0.1", 0, 1, True)
        with pytest.raises(RuntimeError, match="EADDRINUSE") as caught:
            library.TCPStore("127.0.0.1", one.port, 1, True)
        assert type(caught.value).__name__ == "DistNetworkError"
        assert library.TCPStore("127.0.0.1", 0, 2, True, brief, False).num_keys() == 0
        assert one.num_keys() == 1
        with pytest.raises(RuntimeError, match="must be of same size"):
            one.multi_set(["m3"], ["1", "2"])
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(one)
        with pytest.raises(RuntimeError):
            library.Store().get("a")
        shared = library.TCPStore("127.0.0.1", 0, None, True, multi_tenant=True)
        again = library.TCPStore("127.0.0.1", shared.port, None, True, multi_tenant=True)
        shared.set("a", "1")
        assert again.get("a") == b"1"


def test_waiting_for_others(store: Any) -> None:
    """A value that another thread sets ends the wait at once."""
    other = store.clone()
    threading.Timer(0.05, lambda: other.set("late", "1")).start()
    begun = time.monotonic()
    assert store.get("late") == b"1"
    assert time.monotonic() - begun < 10
    threading.Timer(0.05, lambda: other.queue_push("Q", "2")).start()
    assert store.queue_pop("Q") == b"2"


def test_counters_of_threads(store: Any) -> None:
    def count() -> None:
        mine = store.clone()
        for _ in range(25):
            mine.add("n", 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert store.add("n", 0) == 100


def test_timeouts_name_the_keys(store: Any) -> None:
    store.set_timeout(SHORT)
    with pytest.raises(DistStoreError, match=r"wait timeout after 50ms, keys: .*first, .*second"):
        store.wait(["first", "second"])


def test_the_server_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ours.TCPStore("127.0.0.1", 0, is_master=True)
    other = ours.TCPStore("127.0.0.1", one.port, timeout=SHORT)
    other.set("a", "1")
    port = one.port
    del one  # the server ends with its store
    with pytest.raises(DistNetworkError):
        other.get("a")
    with pytest.raises(DistNetworkError, match="timed out"):
        other.get("a")
    again = ours.TCPStore("127.0.0.1", port, is_master=True)
    again.set("a", "2")
    assert other.get("a") == b"2"


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not know the job's key is refused at once."""
    monkeypatch.setenv("TRACEJIT_JOB_KEY", "secret")
    one = ours.TCPStore("127.0.0.1", 0, is_master=True)
    assert ours.TCPStore("127.0.0.1", one.port).num_keys() == 0
    monkeypatch.setenv("TRACEJIT_JOB_KEY", "guess")
    begun = time.monotonic()
    with pytest.raises(DistNetworkError, match="refused this process: the key is wrong"):
        ours.TCPStore("127.0.0.1", one.port)
    assert time.monotonic() - begun < 60


def test_a_server_of_another_kind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(DistNetworkError, match="is not tracejit's"):
            ours.TCPStore("127.0.0.1", port)


def test_long_values(store: Any) -> None:
    value = os.urandom(3 << 20)
    store.set("long", value)
    assert store.get("long") == value
    with pytest.raises(ValueError, match="at most"):
        store.set("k" * 5000, "")


def test_a_store_of_the_programs_own() -> None:
    class Mine(ours.Store):
        def __init__(self) -> None:
            super().__init__()
            self.values: dict[str, Any] = {}

        def set(self, key: str, value: str | bytes) -> None:
            self.values[key] = value

    inner = Mine()
    outer = ours.PrefixStore("a", ours.PrefixStore("b", inner))
    outer.set("k", "v")
    assert inner.values == {"b/a/k": "v"}
    assert outer._underlying_non_prefix_store is inner
    with pytest.raises(NotImplementedError, match="Mine.get"):
        outer.get("k")


def _write_for_ever(path: str) -> None:
    store = ours.FileStore(path)
    for k in range(10**9):
        store.set(f"key {k % 50}", b"%d" % k * 200)


def test_a_killed_process_leaves_a_sound_file(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=_write_for_ever, args=(path,))
    writer.start()
    store = ours.FileStore(path)
    store.wait(["key 20"])
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    with open(path, "ab") as file:  # a change that was cut short
        file.write(store_protocol.pack([b"set", b"torn", b"x" * 100])[:50])
    store.set("after", "1")
    again = ours.FileStore(path)
    assert again.get("after") == b"1" and not again.check(["torn"])


def test_the_last_process_removes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store"
    one, two = ours.FileStore(str(path), 2), ours.FileStore(str(path), 2)
    one.close()
    two.set("a", "1")
    assert path.exists()
    two.close()
    assert not path.exists()


def _count(store: Any) -> None:
    for _ in range(200):
        store.add("n", 1)


@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_a_forked_child_counts_too(kind: str, tmp_path: Path) -> None:
    """It has a connection of its own, and takes turns with its parent."""
    store = _make(ours, kind, tmp_path)
    client = store.clone()
    client.set_timeout(SHORT)
    child = multiprocessing.get_context("fork").Process(target=_count, args=(client,))
    client.add("n", 1)
    child.start()
    _count(client)
    child.join(60)
    assert child.exitcode == 0
    assert client.get("n") == b"401" and store.get("n") == b"401"


def test_the_connection_for_the_mpi_library() -> None:
    """It speaks PMI for one rank, waits in reads, and stays when the store goes."""
    server = JobServer("127.0.0.1", 0, 2, "5ca1ab1e")
    one = ours.JobStore("127.0.0.1", server.port, "5ca1ab1e", 1, 2, timedelta(seconds=20))
    descriptor = one.pmi()
    assert os.get_blocking(descriptor)
    with pytest.raises(DistNetworkError, match="rank 1 is here already"):
        one.pmi()
    del one
    os.write(descriptor, b"cmd=get_universe_size\n")
    assert os.read(descriptor, 100) == b"cmd=universe_size size=2 rc=0\n"
    os.close(descriptor)
    server.close()
