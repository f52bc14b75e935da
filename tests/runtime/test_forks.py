"""A child forked while other threads are at work never waits for what they will not release."""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tracejit as tj
from tests.runtime.test_runner import waited
from tracejit.core.memory import forks

ROOT = Path(__file__).resolve().parents[2]


def forked(body):
    """The exit status of a child that runs `body`."""
    pid = os.fork()
    if pid == 0:
        status = 9
        try:
            status = int(body() or 0)
        finally:
            os._exit(status)
    return waited(pid)


def in_another_thread(hold):
    """Run `hold(ready, over)` in a thread until the `over` it is given is set."""
    ready, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(ready, over))
    thread.start()
    assert ready.wait(30)

    def end():
        over.set()
        thread.join()

    return end


def test_a_lock_of_another_thread_is_free_in_the_child():
    lock = forks.rlock()

    def hold(ready, over):
        with lock:
            ready.set()
            over.wait()

    end = in_another_thread(hold)
    try:
        assert forked(lambda: 0 if lock.acquire(timeout=5) else 1) == 0
        assert not lock.acquire(blocking=False), "in the parent it is taken"
    finally:
        end()


def test_a_lock_of_the_forking_thread_stays_its_own():
    lock = forks.rlock()

    def inside():
        lock.release()  # RuntimeError where it were not held
        return 0

    with lock:
        assert forked(inside) == 0


@pytest.mark.parametrize("kind", ["script", "trace"])
def test_a_function_that_another_thread_captures(kind):
    def body(x, wait):
        if wait is not None:
            wait[0].set()
            wait[1].wait()
        return x * 2

    captured = getattr(tj, kind)(body)
    end = in_another_thread(lambda ready, over: captured(tj.ones(2), (ready, over)))
    try:
        assert forked(lambda: captured(tj.ones(2), None).tolist() != [2.0, 2.0]) == 0
    finally:
        end()


def test_the_recursion_limit_and_the_collector_are_as_the_program_set_them():
    import gc

    limit = sys.getrecursionlimit()

    def body(x, ready, over):
        ready.set()
        over.wait()
        return x + 1

    end = in_another_thread(lambda ready, over: tj.script(body)(tj.ones(2), ready, over))
    try:
        assert forked(lambda: sys.getrecursionlimit() != limit or not gc.isenabled()) == 0
    finally:
        end()


def test_a_module_that_another_thread_imports_is_imported_in_the_child(tmp_path):
    code = f"""
import os, sys, threading, time
import tracejit
from tracejit.core.memory import forks
forks.PATIENCE = 0.2
sys.path.insert(0, {str(tmp_path)!r})
threading.Thread(target=lambda: __import__('numba.slow'), daemon=True).start()
time.sleep(1)
pid = os.fork()
if pid == 0:
    os.environ['FAST'] = '1'
    from numba.slow import value
    os._exit(value)
for _ in range(200):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        os._exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.05)
os.kill(pid, 9)
os._exit(99)
"""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("")
    slow = "import os, time\nif 'FAST' not in os.environ: time.sleep(20)\nvalue = 7\n"
    (tmp_path / "numba" / "slow.py").write_text(slow)
    assert run(["-c", code]).returncode == 7


def run(arguments, timeout=300):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT,
                          capture_output=True, text=True, timeout=timeout)


def stressed(count, seed):
    done = run(["-m", "tests.runtime.fork_stress", "--count", str(count), "--seed", str(seed)],
               timeout=60 + 10 * count)
    assert done.returncode == 0, done.stderr
    assert re.match(rf"forks {count} hung 0 wrong 0 errors \[\]", done.stdout), (
        done.stdout + done.stderr
    )


def test_forks_while_all_else_goes_on():
    stressed(4, 1)


@pytest.mark.full
def test_many_forks_while_all_else_goes_on():
    stressed(240, 2)


class Doubled(tj.utils.data.Dataset):
    """Samples that a captured function prepares, in a worker."""

    def __init__(self, function):
        self.function = function

    def __len__(self):
        return 8

    def __getitem__(self, k):
        return self.function(tj.ones(3) * k, 3)


def test_workers_of_a_loader_forked_while_a_thread_captures():
    def body(x, n):
        for k in range(n):
            x = x * 2 + k
        return x

    captured, stop = tj.script(body), threading.Event()

    def keep_on():
        n = 40
        while not stop.is_set():
            captured(tj.ones(3), n)
            n += 1

    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        time.sleep(0.1)
        loader = tj.utils.data.DataLoader(
            Doubled(captured), batch_size=4, num_workers=2, multiprocessing_context="fork",
            timeout=100,
        )  # fmt: skip
        found = tj.cat(list(loader))
    finally:
        stop.set()
        thread.join()
    assert tj.equal(found, tj.stack([body(tj.ones(3) * k, 3) for k in range(8)]))


_LATE = """
import os, sys
import tracejit
from tracejit.core.memory import forks
print("logging" in sys.modules, "dataclasses" in sys.modules, "numba" in sys.modules)
import logging
said = []
begin, after = forks._before, forks._after_in_parent

def before():
    said.append(f"before {logging._lock._is_owned()}")
    begin()

forks._before = before
forks.rlock_awaited()
import threading
pid = os.fork()
if pid == 0:
    forks._mended.clear()
    pid = os.fork()
    os._exit(0 if said == ["before False"] * 2 or pid == 0 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print(said, forks._held.locks, forks._held.forking)
"""


def test_hooks_run_once_and_before_those_of_logging_that_came_later():
    run = subprocess.run([sys.executable, "-c", _LATE], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.splitlines() == ["False False False", "['before False'] [] False"], run.stderr
