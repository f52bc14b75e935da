"""One script, started in all ways: our launcher, MPI's, torchrun, srun, spawn, by hand."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tracejit
from tests.distributed.launchers import MPIEXEC
from tests.distributed.ranks import free_port
from tracejit.distributed import launch as launch_module
from tracejit.distributed.agent_store import AgentStore
from tracejit.distributed.errors import DistNetworkError

pytest.importorskip("mpi4py")

ROOT = Path(__file__).resolve().parents[2]
# Unedited in all ways: it starts its own processes only where it is told to.
SCRIPT = """
import os, sys
import tracejit, tracejit.distributed as dist

def main(rank=-1, size=-1):
    dist.init_process_group("mpi", rank=rank, world_size=size)
    x = tracejit.ones(3) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    assert x.tolist() == [3.0] * 3, x
    dist.barrier()
    with open(f"{sys.argv[1]}/{dist.get_rank()}", "w") as file:
        file.write(str(dist.get_world_size()))
    dist.destroy_process_group()

if __name__ == "__main__":
    if "alone" in sys.argv:
        tracejit.multiprocessing.spawn(main, (2,), nprocs=2)
    else:
        main()
"""
RUN = [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2"]
# As Slurm's: two tasks on this host, whose libraries it does not serve (--mpi=none).
SRUN = """
export SLURM_JOB_ID=$1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2
export SLURM_NODEID=0 SLURM_STEP_NODELIST=host[07]
shift
for task in 0 1; do SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & done
wait
"""
IN_TORCH = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(x)
assert x.tolist() == [3.0] * 3 and "tracejit" in type(x).__module__, type(x)
with open(f"{sys.argv[1]}/{dist.get_rank()}", "w") as file:
    file.write(str(dist.get_world_size()))
"""


def _script(folder: Path, text: str = SCRIPT) -> Path:
    file = folder / "script.py"
    file.write_text(text)
    return file


def _environment(**more: str) -> dict[str, str]:
    dropped = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def _came(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.suffix == ""}


def _start(way: str, script: Path) -> list[subprocess.Popen[bytes]]:
    port, told = str(free_port()), [sys.executable, script, script.parent]
    here = {"MASTER_ADDR": "localhost", "MASTER_PORT": port}
    if way == "launcher":
        return [subprocess.Popen([*RUN, *told[1:]], env=_environment())]
    if way == "mpiexec":
        return [subprocess.Popen([*MPIEXEC, "-n", "2", *told], env=_environment())]
    if way == "srun":
        command = ["sh", "-c", SRUN, "srun", str(int(port) % 10000), *told]
        return [subprocess.Popen(command, env=_environment())]
    if way == "spawn":
        return [subprocess.Popen([*told, "alone"], env=_environment(**here))]
    return [
        subprocess.Popen(told, env=_environment(RANK=str(rank), WORLD_SIZE="2", **here))
        for rank in range(2)
    ]


@pytest.mark.parametrize("way", ["launcher", "mpiexec", "spawn", "by hand", "srun"])
def test_the_same_script_in_all_ways(way: str, tmp_path: Path) -> None:
    if way == "mpiexec" and not MPIEXEC[0].exists():
        pytest.skip("no mpiexec beside Python")
    processes = _start(way, _script(tmp_path))
    assert [process.wait(60) for process in processes] == [0] * len(processes)
    assert _came(tmp_path) == {"0": "2", "1": "2"}


@pytest.mark.parametrize("way", ["launcher", pytest.param("mpiexec", marks=pytest.mark.full)])
def test_a_script_that_imports_torch(way: str, tmp_path: Path) -> None:
    script = _script(tmp_path, IN_TORCH)
    start = [*RUN] if way == "launcher" else [*MPIEXEC, "-n", "2", sys.executable]
    command = [*start, "-m", "tracejit", "run", script, tmp_path]
    subprocess.run(command, env=_environment(), timeout=60, check=True)
    assert _came(tmp_path) == {"0": "2", "1": "2"}


@pytest.mark.oracle
def test_torchrun_itself(tmp_path: Path) -> None:
    """Its agent serves a store of PyTorch's, by which the ranks find each other."""
    pytest.importorskip("torch")
    script = _script(tmp_path)
    script.write_text(SCRIPT + """
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(1)
""")
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts",
         "1", "--monitor-interval", "0.1", "--master-port", str(free_port()), script, tmp_path],
        env=_environment(), timeout=90, check=True,
    )  # fmt: skip
    assert _came(tmp_path) == {"0": "2", "1": "2"}


def test_an_agent_that_is_not_torchruns() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        store = AgentStore("127.0.0.1", server.getsockname()[1], 5, "0")
        server.accept()[0].close()
        with pytest.raises(DistNetworkError, match="start the job by tracejitrun"):
            store.wait(["key"])


def test_launch_tells_the_local_rank(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text("import os, sys\n"
                                       "print(os.environ['LOCAL_RANK'], sys.argv[1:])\n")
    launch = [sys.executable, "-W", "ignore", "-m", "tracejit.distributed.launch", "--standalone"]
    for option, told in (([], "0 ['--local-rank=0', '-x']\n"), (["--use-env"], "0 ['-x']\n")):
        done = subprocess.run([*launch, *option, tmp_path / "tells.py", "-x"], text=True,
                              capture_output=True, env=_environment(), timeout=60)  # fmt: skip
        assert done.stdout == told, done.stderr
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="--use-env"):
        launch_module.main(["--standalone", "--no-python", "true"])


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
