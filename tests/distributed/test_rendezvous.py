"""Processes find each other: every way to say where, and what they hear if it fails."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.ranks import free_port
from tracejit.distributed import rendezvous
from tracejit.distributed import store as stores
from tracejit.distributed.errors import DistNetworkError, DistStoreError
from tracejit.distributed.job_server import JobServer

pytest.importorskip("mpi4py")
BOUND = 60.0  # seconds: far more than anything here takes
BRIEF = timedelta(milliseconds=300)
VARIABLES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "TRACEJIT_JOB_KEY", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID",
    "TRACEJIT_AGENT",
)  # fmt: skip
# Forked from a process that never started MPI: a rank costs no imports.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tracejit.distributed", "tests.distributed.ranks", "mpi4py"])


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def _rank(pipe: Any, function: Callable[..., Any], variables: dict[str, str],
          arguments: tuple[Any, ...]) -> None:  # fmt: skip
    os.environ.update(variables)
    try:
        pipe.send((True, function(*arguments)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
        raise


class Job:
    """Ranks that each call a function, in processes that end after it."""

    def __init__(self) -> None:
        self.processes: list[Any] = []
        self._pipes: list[Any] = []

    def start(self, function: Callable[..., Any], *arguments: Any, **variables: Any) -> None:
        ours, theirs = _context.Pipe()
        told = {name: str(value) for name, value in variables.items()}
        self.processes.append(
            _context.Process(target=_rank, args=(theirs, function, told, arguments))
        )
        self._pipes.append(ours)
        self.processes[-1].start()
        theirs.close()

    def result(self, rank: int) -> tuple[bool, Any]:
        """Return a rank's result, or False and its error."""
        if not self._pipes[rank].poll(BOUND):
            return False, "no answer"
        try:
            return tuple(self._pipes[rank].recv())
        except EOFError:
            return False, "died"

    def results(self) -> list[Any]:
        found = [self.result(rank) for rank in range(len(self.processes))]
        assert all(fine for fine, _ in found), "\n".join(str(value) for _, value in found)
        for process in self.processes:
            process.join(BOUND)
        assert [process.exitcode for process in self.processes] == [0] * len(self.processes)
        return [value for _, value in found]

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.stop()


def _sum(init_method: str | None, rank: int = -1, size: int = -1, how: str = "") -> Any:
    """Join twice, talk each time; return the ranks' sum and what the store tells."""
    import tracejit
    import tracejit.distributed as dist
    from tracejit.distributed import groups

    found = []
    for turn in range(2):
        store: Any = None
        if how.startswith("file:"):
            store = dist.FileStore(f"{how[5:]}{turn}", size)
        elif how.startswith("tcp:"):
            store = dist.TCPStore("127.0.0.1", int(how[4:]) + turn, size, rank == 0)
        dist.init_process_group("mpi", init_method, world_size=size, rank=rank, store=store)
        own = tracejit.ones(2) * (dist.get_rank() + 1)
        dist.all_reduce(own)
        world = groups.world()
        assert world.store is not None
        world.store.set(f"rank {dist.get_rank()}", str(turn))
        names = [f"rank {rank}" for rank in range(dist.get_world_size())]
        found.append((own.tolist(), world.store.multi_get(names)))
        dist.barrier()
        dist.destroy_process_group()
    return found


TWO = [([3.0, 3.0], [b"0", b"0"]), ([3.0, 3.0], [b"1", b"1"])]


def test_variables(job: Job) -> None:
    port = free_port()
    for rank in (1, 0):
        job.start(_sum, None, RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port)
    assert job.results() == [TWO, TWO]


def test_address_with_three_ranks(job: Job) -> None:
    """More ranks than there may be cores, and one that comes before the server is there."""
    port = free_port()
    job.start(_sum, f"tcp://127.0.0.1:{port}", 2, 3)
    job.start(_sum, f"tcp://127.0.0.1:{port}?rank=1&world_size=3")
    job.start(_sum, f"tcp://127.0.0.1:{port}", 0, 3)
    three = [([6.0, 6.0], [b"0"] * 3), ([6.0, 6.0], [b"1"] * 3)]
    assert job.results() == [three] * 3


@pytest.mark.parametrize("how", ["url", pytest.param("file", marks=pytest.mark.full), "tcp"])
def test_stores(job: Job, how: str, tmp_path: Path) -> None:
    given = {"url": "", "file": f"file:{tmp_path}/store", "tcp": f"tcp:{free_port()}"}[how]
    url = f"file://{tmp_path}/url" if how == "url" else None
    for rank in range(2):
        job.start(_sum, url, rank, 2, given)
    assert job.results() == [TWO, TWO]
    assert how != "url" or not (tmp_path / "url").exists()


def test_the_launchers_agent_serves(job: Job) -> None:
    """Below a launcher no rank binds the port, and the job has a key."""
    server = JobServer("127.0.0.1", 0, 2, "5ca1ab1e")
    variables = {
        "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": server.port,
        "TORCHELASTIC_USE_AGENT_STORE": True, "TRACEJIT_AGENT": 1,
        "TRACEJIT_JOB_KEY": "5ca1ab1e", "TORCHELASTIC_RUN_ID": "none",
        "PMI_RANK": 0, "PMI_SIZE": 1, "PMI_FD": 999,
    }  # fmt: skip
    for rank in range(2):
        job.start(_sum, "env://", RANK=rank, **variables)
    assert job.results() == [TWO, TWO]
    deadline = time.monotonic() + BOUND
    while server._peers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.watchers.said == {}
    server.close()


def test_one_process_alone(job: Job) -> None:
    one = [([1.0, 1.0], [b"0"]), ([1.0, 1.0], [b"1"])]
    job.start(_sum, None, 0, 1)
    port = free_port()
    job.start(_sum, None, RANK=0, WORLD_SIZE=1, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    assert job.results() == [one, one]


def _another_rank(port: int, rank: int) -> str:
    import tracejit.distributed as dist

    url = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("mpi", url, rank=rank, world_size=2)
    dist.destroy_process_group()
    with pytest.raises(RuntimeError) as caught:
        dist.init_process_group("mpi", url, rank=1 - rank, world_size=2)
    return str(caught.value)


def test_another_rank_the_second_time(job: Job) -> None:
    port = free_port()
    for rank in range(2):
        job.start(_another_rank, port, rank)
    texts = job.results()
    assert re.match("this process is rank 0 of 2 and cannot become rank 1 of 2", texts[0])


def _wait_in_a_barrier(port: int, rank: int, absent: int, how: str) -> str:
    import tracejit.distributed as dist

    dist.init_process_group("mpi", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.barrier()
    if rank == absent:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exits":
            sys.exit(3)
        raise ValueError("no data")
    with pytest.raises(RuntimeError) as caught:
        dist.barrier()
    return str(caught.value)


_TEXTS = {
    "killed": r"rank {} died \(pid \d+\)",
    "raises": "rank {} gave up: ValueError: no data",
    "exits": "rank {} gave up: it ends with exit code 3",
}


@pytest.mark.parametrize(
    "how, absent",
    [
        ("killed", 0), ("killed", 1), ("raises", 1),
        pytest.param("raises", 0, marks=pytest.mark.full),
        pytest.param("exits", 0, marks=pytest.mark.full),
        pytest.param("exits", 1, marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_a_rank_that_ends_early(job: Job, how: str, absent: int) -> None:
    text = _TEXTS[how]
    port = free_port()
    for rank in range(2):
        job.start(_wait_in_a_barrier, port, rank, absent, how)
    fine, found = job.result(1 - absent)
    assert fine and "barrier" in found.split(":")[0]
    assert re.search(text.format(absent), found), found


def _join(*arguments: Any) -> Any:
    return rendezvous.join(*arguments)


def test_missing_ranks_have_names() -> None:
    begun = time.monotonic()
    with pytest.raises(DistStoreError, match="1/4 clients joined; missing: rank 1, 2, 3"):
        _join(f"tcp://127.0.0.1:{free_port()}", 0, 4, None, BRIEF)
    with pytest.raises(DistNetworkError, match="timed out after 300ms while trying to connect"):
        _join(f"tcp://127.0.0.1:{free_port()}", 1, 2, None, BRIEF)
    assert time.monotonic() - begun < 30


def test_refused_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = JobServer("127.0.0.1", 0, 2, "5ca1ab1e")
    url = f"tcp://127.0.0.1:{server.port}"
    with pytest.raises(DistNetworkError, match="key is wrong"):
        _join(url, 1, 2, None, BRIEF)
    monkeypatch.setenv("TRACEJIT_JOB_KEY", "5ca1ab1e")
    with pytest.raises(DistNetworkError, match="this job has 2 processes, not 3"):
        _join(url, 1, 3, None, BRIEF)
    with pytest.raises(DistNetworkError, match="EADDRINUSE"):
        _join(url, 0, 2, None, BRIEF)
    with pytest.raises(DistStoreError, match="missing: rank 0"):
        _join(url, 1, 2, None, BRIEF)
    server.close()


_CALLS: dict[str, tuple[str, int, int]] = {
    "no variables": ("env://", -1, -1),
    "RANK alone": ("env://", -1, -1),
    "no address": ("env://", -1, -1),
    "no port": ("env://", -1, -1),
    "no rank": ("tcp://127.0.0.1:29500", -1, 2),
    "no size": ("tcp://127.0.0.1:29500", 0, -1),
    "no tcp port": ("tcp://127.0.0.1", 0, 2),
    "no file rank": ("file:///nowhere/store", -1, 2),
    "no path": ("file://", 0, 2),
    "unknown": ("foo://127.0.0.1", 0, 2),
    "no scheme": ("somewhere", 0, 2),
    "twice": ("tcp://127.0.0.1:29500?rank=0&world_size=2", 0, 2),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", _CALLS)
def test_errors_like_pytorch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch.distributed")
    url, rank, size = _CALLS[name]
    if name in ("RANK alone", "no address", "no port"):
        monkeypatch.setenv("RANK", "0")
    if name in ("no address", "no port"):
        monkeypatch.setenv("WORLD_SIZE", "2")
    if name == "no port":
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(Exception) as theirs:
        next(torch.rendezvous(url, rank, size))
    with pytest.raises(type(theirs.value)) as ours:
        _join(url, rank, size, None, BRIEF)
    assert str(ours.value) == str(theirs.value)


def test_a_store_needs_rank_and_size() -> None:
    with pytest.raises(ValueError, match="world_size must be positive if using store"):
        _join(None, 0, -1, stores.HashStore(), BRIEF)
    with pytest.raises(ValueError, match="rank must be non-negative if using store"):
        _join(None, -1, 2, stores.HashStore(), BRIEF)
    with pytest.raises(ValueError, match="rank 2 is outside a world of 2"):
        _join("tcp://127.0.0.1:1", 2, 2, None, BRIEF)


_PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from tests.distributed.test_rendezvous import _sum
found = _sum({arguments})
assert found[0][0] == [3.0, 3.0], found
print("joined", flush=True)
"""


def _mpiexec() -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return beside if os.path.exists(beside) else shutil.which("mpiexec")


@pytest.mark.parametrize(
    "arguments", ["None", pytest.param("'env://', size=2", marks=pytest.mark.full)]
)
def test_below_mpiexec(arguments: str) -> None:
    launcher = _mpiexec()
    if launcher is None:
        pytest.skip("there is no mpiexec")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, "-c",
         _PROGRAM.format(root=root, arguments=arguments)],
        capture_output=True, text=True, timeout=BOUND,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("joined") == 2


def test_below_mpiexec_as_another() -> None:
    """Arguments that contradict the launcher are an error, not another world."""
    launcher = _mpiexec()
    if launcher is None:
        pytest.skip("there is no mpiexec")
    root = str(Path(__file__).parents[2])
    program = _PROGRAM.format(root=root, arguments="None, 0, 3")
    done = subprocess.run([launcher, "-n", "1", sys.executable, "-c", program],
                          capture_output=True, text=True, timeout=BOUND)  # fmt: skip
    assert done.returncode != 0
    assert "MPI sees rank 0 of 1 processes, expected rank 0 of 3" in done.stderr
