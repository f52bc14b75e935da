"""The watch: who died, gave up or came to its end, and where it was."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracejit.distributed import watch as watch_module
from tracejit.distributed.board import Board
from tracejit.distributed.errors import DistNetworkError
from tracejit.distributed.job_server import JobServer
from tracejit.distributed.watch import Watch

BOUND = 20.0  # seconds: far more than anything here takes
KEY = "5ca1ab1e"
_context = multiprocessing.get_context("fork")


@pytest.fixture
def server() -> Iterator[JobServer]:
    made = JobServer("127.0.0.1", 0, 3, KEY)
    yield made
    made.close()


def _watch(server: JobServer, rank: int, key: str = KEY) -> Watch:
    return Watch("127.0.0.1", server.port, key, rank, 3)


def _until(condition: Callable[[], Any], bound: float = BOUND) -> None:
    deadline = time.monotonic() + bound
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def _rank(pipe: Any, port: int, rank: int, serves: bool) -> None:
    """Be a rank in another process, which does what the pipe says."""
    if serves:
        server = JobServer("127.0.0.1", 0, 3, KEY, rank=rank)
        port = server.port
    watch = Watch("127.0.0.1", port, KEY, rank, 3)
    pipe.send(port)
    while True:
        name, *arguments = pipe.recv()
        if name == "fork":
            child = os.fork()
            if child == 0:
                time.sleep(BOUND)
                os._exit(0)
            pipe.send(child)
            continue
        pipe.send(getattr(watch, name)(*arguments))


class Rank:
    """A rank in another process."""

    def __init__(self, port: int, rank: int, serves: bool = False) -> None:
        self.pipe, theirs = _context.Pipe()
        self.process = _context.Process(target=_rank, args=(theirs, port, rank, serves))
        self.process.start()
        theirs.close()
        assert self.pipe.poll(BOUND)
        self.port = self.pipe.recv()

    def __call__(self, *what: Any) -> Any:
        self.pipe.send(what)
        assert self.pipe.poll(BOUND)
        return self.pipe.recv()

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@pytest.fixture
def ranks() -> Iterator[Callable[..., Rank]]:
    made: list[Rank] = []

    def make(*arguments: Any, **more: Any) -> Rank:
        made.append(Rank(*arguments, **more))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_killed_rank(server: JobServer, ranks: Callable[..., Rank]) -> None:
    one, two = _watch(server, 0), _watch(server, 1)
    third = ranks(server.port, 2)
    third("enter", 17, "all_reduce")
    _until(lambda: len(one.where()) == 3)
    one.enter(17, "all_reduce")
    two.enter(16, "broadcast")
    two.leave()
    assert one.where() == {
        0: "in all_reduce number 17", 1: "outside collectives, after broadcast number 16",
        2: "in all_reduce number 17",
    }  # fmt: skip
    assert one.failed is None
    begun = time.monotonic()
    third.kill()
    _until(lambda: one.failed and two.failed)
    took = time.monotonic() - begun
    assert one.failed == two.failed
    assert one.failed == f"rank 2 died (pid {third.process.pid}) in all_reduce number 17"
    assert server.watchers.said == {2: "died"}
    assert took < 5  # half a second where the machine has nothing else to do
    one.close()
    two.close()


def test_who_comes_later_learns_it_too(server: JobServer, ranks: Callable[..., Rank]) -> None:
    third = ranks(server.port, 2)
    third.kill()
    _until(lambda: server.watchers.said)
    one = _watch(server, 0)
    _until(lambda: one.failed)
    assert one.failed and one.failed.startswith("rank 2 died")
    one.close()


def test_the_serving_rank_dies(ranks: Callable[..., Rank]) -> None:
    first = ranks(0, 0, serves=True)
    first("enter", 3, "barrier")
    one = Watch("127.0.0.1", first.port, KEY, 1, 3)
    child = first("fork")  # holds nothing of its parent's, which would hide the death
    first.kill()
    _until(lambda: one.failed, BOUND / 2)
    os.kill(child, signal.SIGKILL)
    assert one.failed == f"rank 0 died (pid {first.process.pid}) in barrier number 3"
    one.close()


def test_the_launcher_dies() -> None:
    server = JobServer("127.0.0.1", 0, 3, KEY)
    one = _watch(server, 0)
    server.watchers.over = lambda: None  # type: ignore[method-assign]
    server.close()
    _until(lambda: one.failed)
    assert one.failed == f"the launcher that serves the job died (pid {os.getpid()})"
    one.close()


def test_giving_up(server: JobServer) -> None:
    one, two = _watch(server, 0), _watch(server, 1)
    text = "ValueError: \N{SNOWMAN}" + "\0" * 5000
    one.enter(5, "all_gather")
    one.leave()
    one.say(text)
    one.close()  # the first word counts
    _until(lambda: two.failed)
    assert two.failed is not None
    assert two.failed.startswith("rank 0 gave up: ValueError: \N{SNOWMAN}")
    assert two.failed.endswith("; it was outside collectives, after all_gather number 5")
    assert len(two.failed) < 2100
    two.close()


def test_a_good_end(server: JobServer) -> None:
    """Good-byes are no failures, and neither is the server's end."""
    one, two, three = (_watch(server, rank) for rank in range(3))
    one.close()
    three.close()
    server.close()
    two._thread.join(BOUND)
    assert not two._thread.is_alive()
    assert two.failed is None and server.watchers.said == {}
    two.close()


def test_waiting_for_a_rank_that_came_to_its_end(
    server: JobServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "PATIENCE", 0.6)
    one, two, three = (_watch(server, rank) for rank in range(3))
    _until(lambda: len(one.where()) == 3)
    three.close()
    one.enter(4, "all_reduce")
    time.sleep(1.2)
    assert one.failed is None  # rank 1 may be on its way
    two.enter(4, "all_reduce")
    _until(lambda: one.failed)
    assert one.failed == (
        "rank 2 has come to its end outside collectives, and was in none before"
    )
    one.close()
    two.close()


def test_the_boards_file(server: JobServer) -> None:
    """Nothing is left of it once all ranks have it, whoever is killed later."""
    folder = Path(tempfile.gettempdir())
    file = folder / f"tracejit-board-{server._board}"
    ranks = [_watch(server, rank) for rank in range(2)]
    assert file.stat().st_mode & 0o777 == 0o600
    ranks.append(_watch(server, 2))
    _until(lambda: not file.exists())
    ranks[0].enter(1, "a collective with a name that is too long for a line")
    assert ranks[2].where()[0].startswith("in a collective with a name that is too")
    assert ranks[2].where()[0].endswith(" number 1")
    for one in ranks:
        one.close()


@pytest.mark.parametrize("first", ["watch", "server"])
def test_the_file_of_a_job_that_never_was_whole(first: str) -> None:
    server = JobServer("127.0.0.1", 0, 3, KEY)
    file = Path(tempfile.gettempdir()) / f"tracejit-board-{server._board}"
    one = _watch(server, 0)
    assert file.exists()
    (one if first == "watch" else server).close()
    assert not file.exists()
    one.close()
    server.close()


def test_a_board_of_a_wrong_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="name"):
        Board("../../etc/passwd", 0, 2)
    name = "0" * 32
    (tmp_path / f"tracejit-board-{name}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        Board(name, 0, 2)
    assert not (tmp_path / "elsewhere").exists()


def test_no_folder_for_the_board(server: JobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    one = _watch(server, 0)
    one.enter(1, "barrier")
    one.leave()
    assert one.where() == {}
    one.close()


def test_wrong_key(server: JobServer) -> None:
    with pytest.raises(DistNetworkError, match="key is wrong"):
        _watch(server, 0, "guess")


def test_a_forked_child_is_no_rank(server: JobServer) -> None:
    """A child that lives on must not hide its parent's death, nor its own end be taken for it."""
    one, two = _watch(server, 0), _watch(server, 1)
    child = os.fork()
    if child == 0:
        two.close()
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.1)
    assert one.failed is None and not one._ended
    one.close()
    two.close()


def test_the_board_costs_little(server: JobServer) -> None:
    one = _watch(server, 0)
    begun = time.perf_counter()
    for number in range(1000):
        one.enter(number, "all_reduce")
        one.leave()
    assert time.perf_counter() - begun < 0.5  # 2 ms where the machine has nothing else to do
    one.close()
