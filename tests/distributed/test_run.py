"""The launcher: torchrun's options and variables, logs, restarts, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.ranks import free_port
from tracejit.distributed.launch_options import parse, streams

ROOT = Path(__file__).resolve().parents[2]
TELLS = """
import json, os, sys
names = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_NAME MASTER_ADDR MASTER_PORT "
         "TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID OMP_NUM_THREADS TRACEJIT_JOB_KEY").split()
found = {name: os.environ.get(name) for name in names} | {"arguments": sys.argv[1:]}
print(json.dumps(found), flush=True)
"""


def _launch(*arguments: Any, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    return subprocess.run(
        [sys.executable, "-m", "tracejit.distributed.run", *map(str, arguments)],
        env={**environment, "PYTHONPATH": str(ROOT), **more}, text=True, capture_output=True,
        timeout=60,
    )  # fmt: skip


def test_variables_and_arguments(tmp_path: Path) -> None:
    script = tmp_path / "tells.py"
    script.write_text(TELLS)
    done = _launch("--nproc_per_node", 2, "--standalone", "--rdzv-id", "job7", script, "--lr", 0.1)
    assert done.returncode == 0, done.stderr
    first, second = sorted(map(json.loads, done.stdout.splitlines()), key=lambda one: one["RANK"])
    assert [first["RANK"], second["RANK"]] == [first["LOCAL_RANK"], second["LOCAL_RANK"]]
    assert (first["WORLD_SIZE"], first["LOCAL_WORLD_SIZE"], first["GROUP_RANK"]) == ("2", "2", "0")
    assert first["ROLE_NAME"] == "default" and first["TORCHELASTIC_RUN_ID"] == "job7"
    assert first["OMP_NUM_THREADS"] == "1" and len(first["TRACEJIT_JOB_KEY"]) == 32
    assert first["MASTER_PORT"] == second["MASTER_PORT"] != "0"
    assert first["arguments"] == ["--lr", "0.1"]


def test_modules_commands_and_logs(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = _launch("--standalone", "-m", "tells", PYTHONPATH=path)
    assert json.loads(done.stdout)["OMP_NUM_THREADS"] is None  # one process may use all cores
    done = _launch("--standalone", "--nproc-per-node", 2, "-r", "0:1,1:0", "-t", "0:0,1:1",
                   "--log-dir", tmp_path / "logs", "--no-python", "echo", "hello")  # fmt: skip
    assert done.stdout == "[rank 1]: hello\n"
    logs = sorted((tmp_path / "logs").rglob("stdout.log"))
    assert [log.read_text() for log in logs] == ["hello\n"] * 2


TELLS_TORCH = """
import torch
print(torch.__file__, torch.distributed.is_torchelastic_launched(), flush=True)
"""


@pytest.mark.parametrize("module", ["run", "launch"])
def test_pytorchs_launchers_below_the_run_command(tmp_path: Path, module: str) -> None:
    script = tmp_path / "tells_torch.py"
    script.write_text(TELLS_TORCH)
    done = subprocess.run(
        [sys.executable, "-m", "tracejit", "run", "-m", f"torch.distributed.{module}",
         "--standalone", "--nproc_per_node", "2", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(ROOT / "tracejit" / "__init__.py"), "True"] * 2


def test_a_failure_ends_all_and_is_named(tmp_path: Path) -> None:
    script = tmp_path / "fails.sh"
    script.write_text('[ "$RANK" = 1 ] && exit 7\nsleep 60\n')  # sleep is a process of sh's
    begun = time.monotonic()
    done = _launch("--standalone", "--nproc-per-node", 3, "--max-restarts", 1, "--no-python", "sh",
                   script)  # fmt: skip
    assert done.returncode == 1 and time.monotonic() - begun < 30
    lines = [line for line in done.stderr.splitlines() if line.startswith("  rank")]
    assert len(lines) == 2 and all("rank 1" in line and "exit code 7" in line for line in lines)
    assert "starting again, 0 left" not in done.stderr and "1 left" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_nothing_is_left_when_the_launcher_ends(tmp_path: Path, number: int) -> None:
    script = tmp_path / "waits.sh"
    script.write_text(f"echo $$ > {tmp_path}/$RANK\nexec sleep 60\n")
    launcher = subprocess.Popen(
        [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2",
         "--no-python", "sh", script], env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    files = [tmp_path / "0", tmp_path / "1"]
    deadline = time.monotonic() + 30
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    launcher.send_signal(number)
    launcher.wait(40)
    deadline = time.monotonic() + 10
    for file in files:
        while Path("/proc", file.read_text().strip()).exists():
            assert time.monotonic() < deadline, "a process was left"
            time.sleep(0.05)


JOB = """
import os, sys, tracejit, tracejit.distributed as dist
dist.init_process_group()
x = tracejit.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(x)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    os.kill(os.getpid(), 9)
dist.barrier()
sys.stdout.write(f"{x.tolist()} {dist.is_torchelastic_launched()}\\n")  # in one piece
sys.stdout.flush()
"""


def test_a_killed_rank_is_named_and_the_job_starts_again(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    done = _launch("--standalone", "--nproc-per-node", 2, "--max-restarts", 1, tmp_path / "job.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n").count("[3.0, 3.0] True") == 2
    assert "ended by SIGKILL" in done.stderr


PLAIN = """
import tracejit, tracejit.distributed as dist
dist.init_process_group()
x = tracejit.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(dist.get_rank(), x.item(), flush=True)
"""


def test_a_launcher_on_each_of_two_hosts(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    port = str(free_port())
    launchers = [
        subprocess.Popen(
            [sys.executable, "-m", "tracejit.distributed.run", "--nnodes", "2", "--node-rank",
             str(node), "--nproc-per-node", "1", "--master-port", port, tmp_path / "plain.py"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_JOB_KEY": "secret"},
            stdout=subprocess.PIPE, text=True,
        )
        for node in range(2)
    ]  # fmt: skip
    found = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    assert found == ["0 3.0\n", "1 3.0\n"]
    assert [launcher.returncode for launcher in launchers] == [0, 0]


def test_options() -> None:
    found = parse(["--nnodes=2", "--node-rank=1", "--rdzv-endpoint=host:1234", "a.py", "-x"])
    assert (found.nnodes, found.node_rank, found.arguments) == (2, 1, ["-x"])
    assert (found.master_addr, found.master_port) == ("host", 1234)
    assert parse(["--nproc-per-node=auto", "a.py"]).nproc_per_node >= 1
    for wrong in (
        ["--nnodes=1:4", "a.py"], ["--rdzv-backend=etcd", "a.py"], ["--nproc-per-node=0", "a.py"],
        ["--node-rank=1", "a.py"], ["-m", "--no-python", "a"], ["-r", "7", "a.py"],
    ):  # fmt: skip
        with pytest.raises(SystemExit):
            parse(wrong)
    with pytest.raises(ValueError, match="pairs"):
        streams("0:1,5:1", 2)


def test_variables_are_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("PET_MAX_RESTARTS", "2")
    found = parse(["a.py"])
    assert (found.nproc_per_node, found.max_restarts) == (3, 2)
    assert parse(["--max-restarts", "5", "a.py"]).max_restarts == 5
