"""Processes that are killed while they write the kernel cache: the next one computes right."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITES = """
import tracejit as tj
print("ready", flush=True)
for k in range(10**6):
    f = tj.script(lambda x: (x * (k % 40 + 0.5)).cumsum(0) / (k % 40 + 2))
    assert f(tj.ones(3)).tolist()
"""
READS = """
import tracejit as tj
for k in range(40):
    f = tj.script(lambda x: (x * (k % 40 + 0.5)).cumsum(0) / (k % 40 + 2))
    assert tj.allclose(f(tj.ones(3)), f.function(tj.ones(3))), k
"""


def killed(rng, cache):
    """A process that compiles and writes, killed at a random moment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_CACHE_DIR": str(cache)}
    writer = subprocess.Popen([sys.executable, "-c", WRITES], env=environment, cwd=ROOT,
                              stdout=subprocess.PIPE)
    assert writer.stdout.readline()
    time.sleep(rng.random() * 1.5)
    writer.send_signal(signal.SIGKILL)
    writer.wait(30)
    writer.stdout.close()


def after_kills(count, tmp_path):
    rng, cache = random.Random(count), tmp_path / "cache"
    for k in range(count):
        killed(rng, cache)
        if k % 10 == 9 or k == count - 1:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_CACHE_DIR": str(cache)}
            done = subprocess.run([sys.executable, "-W", "error", "-c", READS], env=environment,
                                  cwd=ROOT, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr


def test_the_kernel_cache_after_a_kill(tmp_path):
    after_kills(1, tmp_path)


@pytest.mark.full
def test_the_kernel_cache_after_many_kills(tmp_path):
    after_kills(60, tmp_path)
