"""Workers of a DataLoader in a rank of MPI: never forked, and no ranks themselves."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.launchers import MPIEXEC
from tests.distributed.ranks import Ranks, free_port
from tracejit.utils.data import DataLoader, Dataset
from tracejit.utils.data import start as worker_start

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, sys
import tracejit, tracejit.distributed as dist
from tracejit.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, k):
        launchers = ("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPI_LOCAL")  # *_MCA_ are settings
        found = [name for name in os.environ if name.startswith(launchers) and "_MCA_" not in name]
        assert not found, found
        assert "mpi4py.MPI" not in sys.modules
        return float(k)

def main(rank=-1, size=-1):
    dist.init_process_group("mpi", rank=rank, world_size=size)
    total = tracejit.zeros(1)
    for batch in DataLoader(Data(), batch_size=2, num_workers=2):
        total += batch.sum()
    dist.all_reduce(total)
    sys.stdout.write(f"{total.item()}\\n")
    sys.stdout.flush()
    dist.destroy_process_group()

if __name__ == "__main__":
    if "alone" in sys.argv:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
        tracejit.multiprocessing.spawn(main, (2,), nprocs=2)
    else:
        main()
"""


def _run(command: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        capture_output=True, timeout=90,
    )  # fmt: skip


@pytest.mark.parametrize(
    "way", ["launcher", "mpiexec", pytest.param("spawn", marks=pytest.mark.full)]
)
def test_ranks_load_data(way: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    if way == "launcher":
        start = ["-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", 2, script]
        done = _run([sys.executable, *start])
    elif way == "mpiexec":
        done = _run([*MPIEXEC, "-n", 2, sys.executable, script])
    else:
        done = _run([sys.executable, script, "alone", free_port()])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["12.0", "12.0"]
    assert "RuntimeWarning" not in done.stderr


class _Range(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> int:
        return k


def _context() -> tuple[str, str]:
    chosen = worker_start.context_of(None).get_start_method()
    try:
        list(DataLoader(_Range(), num_workers=1, multiprocessing_context="fork"))
    except RuntimeError as error:
        return chosen, str(error)
    return chosen, ""


def _unpicklable() -> list[str]:
    try:
        list(DataLoader(_Range(), num_workers=1, collate_fn=lambda batch: batch))
    except Exception as error:
        return list(getattr(error, "__notes__", []))
    return []


def _forks() -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subprocess.run(["true"], preexec_fn=os.getpid, check=True)
        before = [str(one.message) for one in caught if one.category is RuntimeWarning]
        for _ in range(2):
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
    return before + [f"{Path(one.filename).name} {one.message}" for one in caught
                     if one.category is RuntimeWarning]  # fmt: skip


def test_forks_are_refused_or_named(two: Ranks) -> None:
    for chosen, text in two(_context):
        assert chosen == "forkserver" and "'forkserver' or 'spawn'" in text
    for notes in two(_unpicklable):
        assert any("picklable" in note for note in notes)
    for told in two(_forks):
        (line,) = told  # once, and not for another program
        assert line.startswith("test_loader_workers.py this process has started MPI")


def test_the_context_without_mpi() -> None:
    assert worker_start.context_of(None) is multiprocessing
    fork = multiprocessing.get_context("fork")
    assert worker_start.context_of(fork) is fork


UNGUARDED = SCRIPT[: SCRIPT.index("if __name__")] + "main()\n"


@pytest.mark.full
def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = _run([sys.executable, "-m", "tracejit.distributed.run", "--standalone",
                 "--nproc-per-node", 2, script])  # fmt: skip
    assert done.returncode == 1
    assert "if __name__ == '__main__':" in done.stderr
