"""Processes that programs start: children under `tracejit run`, launchers from Python, ranks that
leave early."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _run(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60,
        env={**os.environ, **variables},
    )  # fmt: skip


CHILDREN = """
import subprocess, sys
import torch
import torch.multiprocessing

def work(rank):
    print("spawned", torch.__name__, torch.Tensor.__module__, flush=True)

if __name__ == "__main__":
    print("own", torch.Tensor.__module__, flush=True)
    code = "import torch.nn.functional as F, torch; print('child', torch.__name__, F.__name__)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
    if len(sys.argv) < 2:
        subprocess.run([sys.executable, __file__, "again"], check=True)
        torch.multiprocessing.spawn(work, nprocs=1)
"""


def test_children_get_tracejit_too(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CHILDREN)
    done = _run("-m", "tracejit", "run", str(script))
    assert done.returncode == 0, done.stderr
    kind = "tracejit.core.eager.tensor"
    child = "child torch tracejit.nn.functional"
    assert done.stdout.splitlines() == [
        f"own {kind}", child, f"own {kind}", child, f"spawned torch {kind}",
    ]  # fmt: skip


MPI = """
import mpi4py
try:
    from mpi4py import MPI
except ImportError as error:
    print(error)
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Is_initialized())
"""


def test_a_package_that_looks_for_mpi_does_not_start_it(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    script = tmp_path / "script.py"
    script.write_text(MPI)
    done = _run("-m", "tracejit", "run", str(script))
    assert done.returncode == 0, done.stderr
    refused, started = done.stdout.splitlines()
    assert "would start MPI for this process alone" in refused and started == "False"


LAUNCH = """
import sys
import tracejit
import tracejit.distributed as dist
from tracejit.distributed.elastic.multiprocessing.errors import ChildFailedError
from tracejit.distributed.launcher.api import LaunchConfig, elastic_launch

def total(first):
    dist.init_process_group()
    x = tracejit.tensor([first + dist.get_rank()])
    dist.all_reduce(x)
    return int(x), dist.is_torchelastic_launched()

def fails():
    if dist.get_node_local_rank() == 1:
        raise ValueError("on purpose")

if __name__ == "__main__":
    config = LaunchConfig(1, 1, 2, start_method=sys.argv[1], max_restarts=0)
    print(elastic_launch(config, total)(5))
    try:
        elastic_launch(config, fails)()
    except ChildFailedError as error:
        print(error.get_first_failure()[0], "on purpose" in str(error))
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.full)])
def test_functions_in_several_processes(tmp_path: Path, method: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(LAUNCH)
    done = _run(str(script), method, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines() == ["{0: (11, True), 1: (11, True)}", "1 True"], done.stderr


LEAVES = """
import time
import tracejit
import tracejit.distributed as dist
from tracejit.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group()
model = DDP(tracejit.nn.Linear(2, 1))
begun = time.monotonic()
try:
    for _ in range(2 + dist.get_rank()):
        model(tracejit.ones(1, 2)).sum().backward()
except RuntimeError as error:
    print(f"{error}; quick: {time.monotonic() - begun < 5}", flush=True)
    raise SystemExit(3)
"""


def test_a_rank_that_leaves_is_named_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LEAVES)
    launch = ("-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = _run(*launch, str(script), PYTHONPATH=str(ROOT))
    assert done.stdout == ("all_reduce of gradients, bucket 0 cannot end: rank 0 has come to its "
                           "end without it; quick: True\n"), done.stderr  # fmt: skip


@pytest.mark.full
def test_memory_of_sharded_state(tmp_path: Path) -> None:
    done = _run("-m", "bench.zero_memory", "--width", "64", "--layers", "3")
    assert done.returncode == 0, done.stderr
    stage_1, stage_2 = (line.split() for line in done.stdout.splitlines()[2:])
    assert float(stage_1[3]) <= 0.3 and float(stage_2[3]) <= 0.3 and float(stage_2[7]) <= 0.3
