"""One script, started in several ways: mpiexec, multiprocessing.spawn, a launcher's variables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tracejit
from tests.distributed.ranks import free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import tracejit, tracejit.distributed as dist
dist.init_process_group("mpi")
x = tracejit.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3, x
dist.barrier()
open(f"{OUT}/{dist.get_rank()}", "w").write(str(dist.get_world_size()))
dist.destroy_process_group()
"""
MPIEXEC = Path(sys.executable).with_name("mpiexec")


def _script(folder: Path) -> Path:
    file = folder / "script.py"
    file.write_text(SCRIPT.replace("{OUT}", str(folder)))
    return file


def _environment(**more: str) -> dict[str, str]:
    dropped = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def _came(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.suffix == ""}


@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside Python")
def test_mpiexec(tmp_path: Path) -> None:
    subprocess.run(
        [MPIEXEC, "-n", "2", sys.executable, _script(tmp_path)], env=_environment(), timeout=60,
        check=True,
    )  # fmt: skip
    assert _came(tmp_path) == {"0": "2", "1": "2"}


def test_variables_of_a_launcher(tmp_path: Path) -> None:
    script, port = _script(tmp_path), str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, script],
            env=_environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost",
                             MASTER_PORT=port),
        )
        for rank in range(2)
    ]  # fmt: skip
    assert [process.wait(60) for process in processes] == [0, 0]
    assert _came(tmp_path) == {"0": "2", "1": "2"}


def _member(rank: int, port: int, folder: str) -> None:
    import tracejit.distributed as dist

    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    x = tracejit.ones(3) * (rank + 1)
    dist.all_reduce(x)
    Path(folder, str(rank)).write_text(str(x.tolist()))
    dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore:backend='gloo'")
def test_spawn(tmp_path: Path) -> None:
    tracejit.multiprocessing.spawn(_member, (free_port(), str(tmp_path)), nprocs=2)
    assert _came(tmp_path) == {"0": "[3.0, 3.0, 3.0]", "1": "[3.0, 3.0, 3.0]"}


def _fails(rank: int, port: int, how: str) -> None:
    import tracejit.distributed as dist

    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    dist.init_process_group("mpi", rank=rank, world_size=2)
    if rank == 1:
        if how == "raises":
            raise ArithmeticError("bad luck")
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tracejit.ones(1))
    time.sleep(60)


@pytest.mark.parametrize("how", ["raises", "is killed"])
def test_a_rank_that_ends_badly_ends_the_others(how: str) -> None:
    begun = time.monotonic()
    errors: Any = tracejit.multiprocessing
    with pytest.raises(errors.ProcessException) as found:
        errors.spawn(_fails, (free_port(), how), nprocs=2)
    text = str(found.value)
    # either the rank itself is seen first, or the one that waited for it and says so
    assert "bad luck" in text or "SIGKILL" in text or "rank 1" in text, text
    assert time.monotonic() - begun < 40
