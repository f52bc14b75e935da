"""Ranks in what stands for a container: no ptrace, 64 MB of shared memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
NO_PTRACE = [sys.executable, str(Path(__file__).with_name("no_ptrace.py"))]
SMALL = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"',
         "sh"]  # fmt: skip
SCRIPT = """
import tracejit, tracejit.distributed as dist
dist.init_process_group("mpi")
n, rank = dist.get_world_size(), dist.get_rank()
for size in (10, 100_000, 500_000):
    x = tracejit.ones(size) * (rank + 1)
    dist.all_reduce(x)
    assert x[-1].item() == n * (n + 1) / 2
    y = tracejit.zeros(size)
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(y, 0)
        assert (y == x).all().item()
    parts = [tracejit.zeros(size) for _ in range(n)]
    dist.all_gather(parts, x)
    assert all((part == x).all().item() for part in parts)
dist.destroy_process_group()
"""


def _run(command: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        capture_output=True, timeout=90,
    )  # fmt: skip


def _skip_unless(command: list[str], what: str) -> None:
    if not shutil.which(command[0]):
        pytest.skip(f"{what}: {command[0]} is not there")
    done = _run([*command, "true"])
    if done.returncode:
        pytest.skip(f"{what}: {done.stderr.strip() or done.returncode}")


def test_no_ptrace_and_little_shared_memory(tmp_path: Path) -> None:
    _skip_unless(NO_PTRACE, "no filter of system calls")
    _skip_unless(SMALL, "no shared memory of our own")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = _run([*SMALL, *NO_PTRACE, sys.executable, "-m", "tracejit.distributed.run",
                 "--standalone", "--nproc-per-node", 4, tmp_path / "script.py"])  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_doctor_names_both() -> None:
    _skip_unless(NO_PTRACE, "no filter of system calls")
    _skip_unless(SMALL, "no shared memory of our own")
    lines = "from tracejit.distributed import mpi_settings; print(*mpi_settings.lines(), sep='\\n')"
    done = _run([*SMALL, *NO_PTRACE, sys.executable, "-c", lines])
    assert "no ptrace" in done.stdout and "64 MB of shared memory" in done.stdout, done.stderr
