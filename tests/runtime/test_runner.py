"""Workers: asleep when idle, gone at exit, made anew after fork; BLAS's own threads untouched."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.programs import GELU, chain, matmul, run
from tracejit.core import memory
from tracejit.jit.runtime import blas
from tracejit.jit.runtime.executable import Executable
from tracejit.jit.runtime.runner import (
    ACTIVE,
    BUSY,
    EPOCH,
    JOB,
    MISSED,
    PATIENCE,
    POOL,
    SLEEPERS,
    SYSTEM,
    WAKES,
    runner,
)

ROOT = Path(__file__).resolve().parents[2]
SIZE = 1 << 18


@pytest.fixture
def two_threads():
    memory.set_num_threads(2)
    yield
    memory.set_num_threads(None)


def shared():
    executable = Executable(chain([GELU, GELU], SIZE))
    binding = executable.bind({})
    assert binding.shared
    return lambda: run(executable, binding, np.ones(SIZE, np.float32)).copy()


def test_idle_workers_sleep(two_threads):
    shared()()
    words = runner().words
    end = time.monotonic() + 5
    while words[SLEEPERS] < len(runner().workers) and time.monotonic() < end:
        time.sleep(0.01)
    assert words[SLEEPERS] == len(runner().workers) > 0
    assert words[BUSY] == words[ACTIVE] == 0
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.3)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 0.1, "they take no time"


class Jobs:
    """Empty jobs over a pool of their own, whose wakes are counted by a function of ours."""

    def __init__(self):
        self.pool, self.job, self.woken = np.zeros(128, np.int64), np.zeros(JOB, np.int64), 0

        def wake(*words):
            self.woken += 1
            return 0

        kind = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_int64] * 7)
        self.wake = kind(wake)
        self.pool[SYSTEM] = ctypes.cast(self.wake, ctypes.c_void_p).value
        self.job[POOL] = self.pool.ctypes.data

    def run(self, asleep, worth_waking=False):
        """The number of wakes of one job."""
        before, epoch = self.woken, self.pool[EPOCH]
        self.pool[SLEEPERS], self.job[WAKES] = asleep, worth_waking
        runner().hold(self.job.ctypes.data)
        assert self.pool[EPOCH] == epoch + 2, "it was opened and closed"
        return self.woken - before


def test_short_jobs_wake_workers_that_stay_awake():
    jobs = Jobs()
    jobs.run(0)
    assert sum(jobs.run(1) for _ in range(5)) == 1, "tried once"
    assert [jobs.run(0) for _ in range(9)] == [0] * 9, "nobody sleeps"
    assert sum(jobs.run(1) for _ in range(5)) == 1, "it was some use: tried as soon again"


def test_short_jobs_leave_workers_asleep_that_come_too_late():
    jobs = Jobs()
    jobs.run(0)
    at = [k for k in range(6000) if jobs.run(1)]
    waits = np.diff([-1, *at])
    assert waits[:4].tolist() == [5, 13, 29, 61]
    assert (waits[8:] == 1025).all() and len(waits) == 11, "at most one in a thousand tries"
    assert jobs.pool[PATIENCE] == 1024 and jobs.pool[MISSED] < 1025


def test_long_jobs_wake_workers_at_once():
    jobs = Jobs()
    assert [jobs.run(asleep, True) for asleep in (1, 1, 0, 2)] == [1, 1, 0, 1]


def test_fork_with_sleeping_workers(two_threads):
    call = shared()
    want = call()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ok = not runner().workers and (call() == want).all() and (call() == want).all()
            code = 0 if ok and runner().workers else 2
        finally:
            os._exit(code)
    assert waited(child) == 0
    assert (call() == want).all()


def test_fork_while_another_thread_compiles():
    done = in_a_process("""
import threading
from tests.runtime.test_native import of_text
from tracejit import config
from tracejit.jit.runtime import cache
stop = False

def compile_all():
    k = 0
    while not stop:
        k += 1
        cache.functions_of([of_text(f"out[i] = np.float64(k[i] * {k})")])

with config.override(cache_dir="/dev/null/none"):
    thread = threading.Thread(target=compile_all)
    thread.start()
    for k in range(8):
        time.sleep(0.02)
        child = os.fork()
        if child == 0:
            cache.functions_of([of_text(f"out[i] = np.float64(k[i] - {k})")])
            os._exit(0)
        assert waited(child) == 0
    stop = True
    thread.join()
""")
    assert done.returncode == 0, done.stderr


def waited(child):
    for _ in range(600):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the child hangs")


def in_a_process(code, timeout=60):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRACEJIT_NUM_THREADS": "2"}
    head = "from tests.runtime.test_runner import *\nmemory.set_num_threads(2)\n"
    return subprocess.run(
        [sys.executable, "-c", head + code], env=environment, cwd=ROOT, timeout=timeout,
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("code", [
    "shared()()",
    "import threading\nf = shared()\n"
    "t = threading.Thread(target=lambda: [f() for _ in range(50)])\nt.start()",
    "import threading\nf = shared()\nf()\nt = threading.Thread(target=lambda: [f() for _ in "
    "range(10**6)], daemon=True)\nt.start()\ntime.sleep(0.1)",
    "import threading, atexit\nf = shared()\natexit.register(f)\nf()",
])  # fmt: skip
def test_exit_is_silent(code):
    done = in_a_process(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_arrives_after_the_native_call():
    done = in_a_process(
        "f = shared()\nf()\nsignal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
        "hits = []\nsignal.signal(signal.SIGALRM, lambda *a: hits.append(1))\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end: f()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\nassert len(hits) > 3\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_blas_keeps_the_users_thread_count(two_threads):
    import ctypes

    found = blas.blas()
    assert found.get_threads and found.set_threads, found
    get = ctypes.CFUNCTYPE(ctypes.c_int)(found.get_threads)
    set_ = ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set_threads)
    before = get()
    executable = Executable(matmul(False, False, 512, 512, 256))
    binding = executable.bind({})
    a, b = np.ones((512, 256), np.float32), np.ones((256, 512), np.float32)
    try:
        for count in (2, 1):
            set_(count)
            assert (run(executable, binding, a, b) == 256).all()
            assert get() == count
        assert (blas.guard()[:2] == 0).all()
    finally:
        set_(before)


def test_scipys_blas_serves_where_numpy_has_none():
    found = blas._of_scipy()
    assert found.sgemm and found.dgemm and found.get_threads
    done = in_a_process(
        "blas._of_numpy = lambda: None\n"
        "e = Executable(matmul(False, True, 40, 30, 20))\n"
        "a, b = np.ones((40, 20), np.float32), np.ones((30, 20), np.float32)\n"
        "assert (run(e, e.bind({}), a, b) == 20).all()\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg\nscipy.linalg.inv(np.eye(3))\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
