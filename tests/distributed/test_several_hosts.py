"""Two network namespaces stand for two hosts, with a launcher in each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
# In a user namespace of its own: no rights are needed, and nothing is left behind.
NAMESPACES = """
set -e
mount -t tmpfs none /run
for host in a b; do ip netns add $host; ip -n $host link set lo up; done
ip link add wire netns a type veth peer name wire netns b
ip -n a addr add 10.77.0.1/24 dev wire
ip -n b addr add 10.77.0.2/24 dev wire
for host in a b; do ip -n $host link set wire up; done
"""
SCRIPT = """
import os, sys, tracejit, tracejit.distributed as dist
from tracejit.distributed import environment
dist.init_process_group("mpi")
hosts = [None] * dist.get_world_size()
dist.all_gather_object(hosts, (environment.host(), os.environ["GROUP_RANK"]))
x = tracejit.ones(100_000) * (dist.get_rank() + 1)
dist.all_reduce(x)
sys.stdout.write(f"{dist.get_rank()} {x[-1].item()} {len(set(hosts))}\\n")
dist.destroy_process_group()
"""
LAUNCH = """
launch() {
    ip netns exec $1 unshare -u sh -c "hostname $1; exec $PYTHON -m tracejit.distributed.run \
        --nnodes 2 --node-rank $2 --nproc-per-node 2 --master-addr 10.77.0.1 script.py"
}
launch a 0 & first=$!
launch b 1
wait $first
"""


def _inside(text: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "-rnm", "sh", "-c", text], cwd=folder, text=True, capture_output=True,
        timeout=90, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, **more},
    )  # fmt: skip


def _skip_without_namespaces(folder: Path) -> None:
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            pytest.skip(f"no network namespaces: {program} is not there")
    done = _inside(NAMESPACES, folder)
    if done.returncode:
        pytest.skip(f"no network namespaces: {done.stderr.strip()}")


def test_a_launcher_in_each_of_two_namespaces(tmp_path: Path) -> None:
    _skip_without_namespaces(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = _inside(NAMESPACES + LAUNCH, tmp_path, TRACEJIT_JOB_KEY="secret")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{rank} 10.0 2" for rank in range(4)]
