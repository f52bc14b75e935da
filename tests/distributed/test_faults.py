"""Ranks that hang, stop, raise, leave or call something else: the others end with a named error."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tracejit
from tests.distributed.kills import is_running
from tests.distributed.launchers import MPIEXEC, OPEN_MPI
from tests.distributed.ranks import free_port
from tests.distributed.test_rendezvous import Job
from tracejit.distributed import shared_memory

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 2.0
LATE = 15.0  # seconds within which an error counts as prompt: other work may be on this machine


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    for process in made.processes:
        if process.is_alive():
            os.kill(process.pid, signal.SIGCONT)
    made.stop()


def _sleeps(name: str) -> None:
    time.sleep(TIMEOUT + 4)


def _stops(name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raises(name: str) -> None:
    raise ValueError("no data")


def _leaves(name: str) -> None:
    sys.exit(0)


def _vanishes(name: str) -> None:
    os._exit(0)


def _collective(name: str) -> None:
    import tracejit.distributed as dist
    from tracejit.distributed import checkpoint

    x = tracejit.ones(5)
    if name == "all_reduce":
        dist.all_reduce(x)
    elif name == "recv":
        dist.recv(x, 1)
    elif name == "async":
        work = dist.all_reduce(x, async_op=True)
        assert work is not None
        work.wait()
    elif name == "save":
        checkpoint.save({"x": x}, checkpoint_id=os.environ["FOLDER"])
    else:
        raise AssertionError(name)


def _rank(port: int, rank: int, fault: Callable[[str], None], name: str) -> tuple[str, float]:
    """Return the error of a rank, and how long it waited."""
    import tracejit.distributed as dist

    dist.init_process_group("mpi", f"tcp://127.0.0.1:{port}", timedelta(seconds=TIMEOUT), 2, rank)
    for _ in range(3):
        dist.all_reduce(tracejit.ones(2))
    begun = time.monotonic()
    try:
        (fault if rank == 1 else _collective)(name)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - begun
    return "", time.monotonic() - begun


_AFTER = r"outside collectives, (after it started number 2|after all_reduce number 2 \(2 float32\))"
_LATE = (
    r"RuntimeError: {} did not end within 2 seconds: rank 0 is in {} number 3.*; "
    rf"rank 1 is {_AFTER}$"
)
_CANNOT = "RuntimeError: {} cannot end: rank 1"
_TEXTS = {
    _sleeps: _LATE, _stops: _LATE,
    _raises: rf"{_CANNOT} gave up: ValueError: no data; it was {_AFTER}$",
    _leaves: rf"{_CANNOT} has come to its end without it$",
    _vanishes: rf"{_CANNOT} died \(pid \d+\) {_AFTER}$",
}  # fmt: skip


def _cases() -> Iterator[Any]:
    """Yield each fault with each collective; `make test` takes three of them."""
    for fault in _TEXTS:
        for name in ("all_reduce", "async", "recv", "save"):
            quick = name == "all_reduce" and fault in (_stops, _raises, _leaves)
            yield pytest.param(fault, name, marks=[] if quick else pytest.mark.full,
                               id=f"{fault.__name__[1:]}-{name}")  # fmt: skip


@pytest.mark.parametrize("fault, name", list(_cases()))
def test_the_error_names_the_rank_and_the_collective(
    job: Job, fault: Callable[[str], None], name: str, tmp_path: Path
) -> None:
    if name == "recv" and fault is _leaves:
        pytest.skip("the count of messages is not told; the timeout or the last process ends it")
    port = free_port()
    for rank in range(2):
        job.start(_rank, port, rank, fault, name, FOLDER=tmp_path)
    fine, found = job.result(0)
    assert fine, found
    shown = {"async": "all_reduce", "save": "all_gather_into_tensor"}.get(name, name)
    assert re.match(_TEXTS[fault].replace("{}", shown), found[0]), found
    late = TIMEOUT if fault in (_sleeps, _stops) else 0.0
    assert late <= found[1] < late + LATE


def _calls(which: str, rank: int) -> None:
    import tracejit.distributed as dist

    x, y = tracejit.ones(6), [tracejit.ones(6), tracejit.ones(6)]
    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "operation": (lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0)),
        "shape": (lambda: dist.all_reduce(x), lambda: dist.all_reduce(x[:4])),
        "dtype": (lambda: dist.all_reduce(x), lambda: dist.all_reduce(x.double())),
        "root": (lambda: dist.broadcast(x, 0), lambda: dist.broadcast(x, 1)),
        "list": (lambda: dist.all_gather(y, x), lambda: dist.barrier()),
        "nothing": (
            lambda: dist.all_to_all_single(x, x.clone(), [2, 4], [2, 4]),
            lambda: dist.all_to_all_single(x, x.clone(), [4, 2], [4, 2]),
        ),
    }
    calls[which][rank]()


def _mismatch(port: int, rank: int, which: str) -> tuple[str, float]:
    return _rank(port, rank, lambda _: _calls(which, 1), which) if rank else _first(port, which)


def _first(port: int, which: str) -> tuple[str, float]:
    global _collective
    _collective = lambda name: _calls(name, 0)  # noqa: E731
    return _rank(port, 0, _sleeps, which)


_RUNS = "Detected mismatch between collectives on ranks. Rank 0 is running collective: "
_MISMATCHES = {
    "operation": "all_reduce of 6 float32, but Rank 1 is running collective: "
                 "broadcast of 6 float32, root 0.",
    "shape": "all_reduce of 6 float32, but Rank 1 is running collective: all_reduce of 4 float32.",
    "dtype": "all_reduce of 6 float32, but Rank 1 is running collective: all_reduce of 6 float64.",
    "root": "broadcast of 6 float32, root 0, but Rank 1 is running collective: "
            "broadcast of 6 float32, root 1.",
    "list": "all_gather of 6 float32, but Rank 1 is running collective: barrier.",
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "which",
    [one if one in ("operation", "nothing") else pytest.param(one, marks=pytest.mark.full)
     for one in _MISMATCHES],
)  # fmt: skip
def test_mismatches_at_level_detail(job: Job, which: str) -> None:
    port = free_port()
    for rank in range(2):
        job.start(_mismatch, port, rank, which, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    for error, seconds in job.results():
        expected = _MISMATCHES[which]
        assert error == (f"RuntimeError: {_RUNS}{expected}" if expected else "")
        assert seconds < TIMEOUT + LATE


def test_a_mismatch_that_hangs_names_both(job: Job) -> None:
    port = free_port()
    for rank in range(2):
        job.start(_mismatch, port, rank, "operation")
    texts = [error for error, _ in (job.result(rank)[1] for rank in range(2))]
    both = "rank 0 is in all_reduce number 3 (6 float32); rank 1 is in broadcast number 3 (6 float"
    assert any(both in text for text in texts), texts


def _captured(port: int, rank: int) -> list[Any]:
    import tracejit.distributed as dist

    dist.init_process_group("mpi", f"tcp://127.0.0.1:{port}", timedelta(seconds=30), 2, rank)

    @tracejit.script
    def step(x: Any) -> Any:
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    found = [(step if rank else step.__wrapped__)(tracejit.ones(2)).tolist() for _ in range(3)]
    return [found, len(step.report().breaks)]


def test_level_detail_and_captured_functions(job: Job) -> None:
    """One rank runs plainly what the other has captured, and both compare their collectives."""
    port = free_port()
    for rank in range(2):
        job.start(_captured, port, rank, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    plain, captured = job.results()
    assert plain[0] == captured[0] == [[5.0, 5.0]] * 3
    assert captured[1] > 0


def _never_comes(port: int, rank: int) -> str:
    import tracejit.distributed as dist

    if rank == 1:
        time.sleep(TIMEOUT + 2)
        return ""
    with pytest.raises(RuntimeError) as caught:
        dist.init_process_group("mpi", f"tcp://127.0.0.1:{port}", timedelta(seconds=1), 3, rank)
    return str(caught.value)


def test_a_rank_that_never_comes(job: Job) -> None:
    """Whoever came first says who is missing; the other hears that it gave up, or says the same."""
    port = free_port()
    for rank in range(3):
        job.start(_never_comes, port, rank)
    texts = [job.result(rank)[1] for rank in (0, 2)]
    assert any("2/3 clients joined; missing: rank 1" in text for text in texts), texts
    assert all("missing: rank 1" in text for text in texts), texts


def _leaves_its_server(port: int) -> bool:
    import tracejit.distributed as dist
    from tracejit.distributed import rendezvous

    dist.init_process_group("mpi", f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
    with socket.create_connection(("127.0.0.1", port)):
        pass
    dist.destroy_process_group()
    rendezvous._leave()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    return True


def test_the_server_closes_with_the_job(job: Job) -> None:
    job.start(_leaves_its_server, free_port())
    assert job.results() == [True]


# -- launchers -----------------------------------------------------------------------------------

WAITS = """
import os, re, sys, time
from datetime import timedelta
import tracejit, tracejit.distributed as dist

def work(rank=-1, size=-1):
    how, folder = sys.argv[1:3]
    dist.init_process_group(rank=rank, world_size=size, timeout=timedelta(seconds=60))
    dist.all_reduce(tracejit.ones(1))
    rank = dist.get_rank()
    names = re.findall("/dev/shm/(mpich_[^ \\n]+)", open("/proc/self/maps").read())
    open(f"{folder}/{rank}.part", "w").write(" ".join([str(os.getpid()), *names]))
    os.rename(f"{folder}/{rank}.part", f"{folder}/{rank}")
    if how == "waits" and rank == 0 or how == "is killed" and rank == 0:
        dist.all_reduce(tracejit.ones(1))
    if how == "is killed":
        time.sleep(0.5)
        os.kill(os.getpid(), 9)
    time.sleep(60)

if __name__ == "__main__":
    if "MASTER_ADDR" in os.environ and "RANK" not in os.environ:
        tracejit.multiprocessing.spawn(work, (2,), nprocs=2)
    else:
        work()
"""


def _launch(way: str, folder: Path, how: str) -> subprocess.Popen[str]:
    (folder / "waits.py").write_text(WAITS)
    told = [sys.executable, folder / "waits.py", how, folder]
    if way == "launcher":
        told[1:1] = ["-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2"]
    if way == "mpiexec":
        told[:0] = [*map(str, MPIEXEC), "-n", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if way == "spawn":
        environment |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port())}
    return subprocess.Popen(told, env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, process_group=0)  # fmt: skip


def _pids(folder: Path) -> list[str]:
    files, deadline = [folder / "0", folder / "1"], time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [file.read_text().split()[0] for file in files]


def _all_end(pids: list[str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline, "a process was left"
        time.sleep(0.02)


@pytest.mark.full
@pytest.mark.parametrize("how", ["waits", "computes"])
@pytest.mark.parametrize("way", ["launcher", "mpiexec", "spawn"])
def test_ctrl_c_ends_all(way: str, how: str, tmp_path: Path) -> None:
    """A terminal interrupts the launcher and all in its process group."""
    if way == "mpiexec" and not MPIEXEC[0].exists():
        pytest.skip("no mpiexec beside Python")
    launcher = _launch(way, tmp_path, how)
    pids = _pids(tmp_path)
    os.killpg(launcher.pid, signal.SIGINT)
    _all_end(pids, 9)  # nobody waits 10 seconds for others at its end
    launcher.communicate(timeout=LATE)
    assert launcher.returncode != 0


@pytest.mark.full
def test_a_stopped_rank_does_not_keep_the_launcher(tmp_path: Path) -> None:
    launcher = _launch("launcher", tmp_path, "waits")
    pids = _pids(tmp_path)
    os.kill(int(pids[1]), signal.SIGSTOP)
    begun = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=60)
    assert time.monotonic() - begun < 10  # SIGKILL would come after 15 seconds
    _all_end(pids, LATE)


def test_the_others_may_say_why_they_end(tmp_path: Path) -> None:
    """The launcher waits for their last words before it ends them."""
    script = tmp_path / "says.sh"
    script.write_text('[ "$RANK" = 1 ] && exit 7\nsleep 0.6\necho "rank 1 failed"\nsleep 60\n')
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2",
         "--no-python", "sh", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "rank 1 failed\n" and "exit code 7" in done.stderr
    assert time.monotonic() - begun < 3 + LATE


@pytest.mark.full
@pytest.mark.parametrize("way", ["launcher", "mpiexec", "spawn"])
def test_a_killed_rank_is_named_in_all_ways(way: str, tmp_path: Path) -> None:
    if way == "mpiexec" and not MPIEXEC[0].exists():
        pytest.skip("no mpiexec beside Python")
    launcher = _launch(way, tmp_path, "is killed")
    pids = _pids(tmp_path)
    begun = time.monotonic()
    text, _ = launcher.communicate(timeout=60)
    assert launcher.returncode != 0 and time.monotonic() - begun < LATE
    _all_end(pids, LATE)
    memory = (tmp_path / "0").read_text().split()[1:]
    assert (memory or OPEN_MPI) and not any(Path("/dev/shm", name).exists() for name in memory)
    if way == "mpiexec":
        named = rf"PID {pids[1]}|rank 1" if not OPEN_MPI else r"rank 1|\[1\]"
    else:
        named = r"rank 1 \(local 1" if way == "launcher" else "process 1 terminated|rank 1 died"
    assert re.search(named, text), text


SHRINKS = """
import os, sys
import tracejit, tracejit.distributed as dist

dist.init_process_group()
dist.all_reduce(tracejit.ones(3))
rank, victim = dist.get_rank(), int(sys.argv[1])
if rank == victim:
    if sys.argv[2] == "dies":
        os.kill(os.getpid(), 9)
    sys.exit()
told = ""
try:
    if sys.argv[2] == "dies":
        dist.all_reduce(tracejit.ones(3))
except RuntimeError as error:
    told = str(error)
old = dist.group.WORLD
try:
    dist.shrink_group([victim])
except TypeError as error:
    sys.stdout.write(f"{error}\\n")
    sys.exit(1)
for wrong in ([], [0, 1], [2], [dist.get_rank()]):
    try:
        dist.shrink_group(wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
model = tracejit.nn.parallel.DistributedDataParallel(tracejit.nn.Linear(3, 1))
model(tracejit.ones(2, 3) * (dist.get_rank() + 1)).sum().backward()
assert model.module.weight.grad.tolist() == [[3.0] * 3]
try:
    dist.all_reduce(tracejit.ones(3), group=old)
except ValueError as error:
    told += f"; {error}"
sys.stdout.write(f"{rank} {dist.get_rank()} {dist.get_world_size()} {told}\\n")
"""


@pytest.mark.full
@pytest.mark.parametrize("how", ["dies", "lives"])
@pytest.mark.parametrize("victim", [0, 1])
def test_the_others_go_on(victim: int, how: str, tmp_path: Path) -> None:
    """After a death only Open MPI can, with its fault tolerance."""
    if not MPIEXEC[0].exists():
        pytest.skip("no mpiexec beside Python")
    (tmp_path / "shrinks.py").write_text(SHRINKS)
    told = [tmp_path / "shrinks.py", str(victim), how]
    tolerant = ["--with-ft", "ulfm"] if OPEN_MPI and how == "dies" else []
    launch = [*MPIEXEC, *tolerant, "-n", "3", sys.executable]
    if how == "dies" and not OPEN_MPI:
        launch = [sys.executable, "-m", "tracejit.distributed.run", "--standalone",
                  "--nproc-per-node", "3"]  # fmt: skip
    done = subprocess.run(
        [*launch, *told],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, timeout=60, capture_output=True,
    )  # fmt: skip
    lines = sorted(line for line in done.stdout.splitlines() if line[:1] in ("0", "1", "2"))
    if how == "dies" and not OPEN_MPI:
        assert "this MPI library cannot go on after a process died" in done.stdout, done.stderr
        return
    assert len(lines) == 2, done.stdout + done.stderr
    others = [rank for rank in range(3) if rank != victim]
    for new, (rank, line) in enumerate(zip(others, lines, strict=True)):
        assert line.startswith(f"{rank} {new} 2 ") and "has been destroyed" in line
        assert how == "lives" or f"all_reduce cannot end: rank {victim} died" in line


def test_files_of_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are taken away from what is mapped, and from what a killed job left; no others."""
    monkeypatch.setattr(shared_memory, "FOLDER", tmp_path)
    names = ["mpich_shm_bfd2c8b_0", "mpich_vci_bfd2c8b_1", "mpich_shm_1234_0", "sem.other"]
    for name in names:
        (tmp_path / name).touch()
    shared_memory.unlink_of_job("tracejit_927faa091339264b")
    assert sorted(file.name for file in tmp_path.iterdir()) == names[2:]
    maps = tmp_path / "maps"
    mapped = ("mpich_shm_1234_0", "sem.other", "mpich_shm_77_0 (deleted)")
    maps.write_text("".join(f"7f0-7f1 rw-s 0 00:1b 42 /dev/shm/{name}\n" for name in mapped))
    shared_memory.unlink_mapped(maps)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["maps", "sem.other"]
    shared_memory.unlink_mapped(tmp_path / "none")
