"""Captured functions called from several threads and after fork."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager.recording import active
from tracejit.jit.runtime import frames

ROOT = Path(__file__).resolve().parents[2]
# What tracejit says of its own defects.
pytestmark = pytest.mark.filterwarnings("error:.*please report this:RuntimeWarning")


def work(x, w):
    return tj.nn.functional.softmax(x @ w, -1).sum(0) + (x * 2).tanh().mean()


def run_threads(count, body):
    failures = []

    def guarded(k):
        try:
            body(k)
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert failures == []


def test_threads_share_programs_and_get_their_own_results():
    f = tj.script(work)
    inputs = [(tj.randn(n, 8), tj.randn(8, 5)) for n in range(1, 9)]
    expected = [work(*pair).numpy() for pair in inputs]

    def body(k):
        for r in range(20):
            pair = inputs[(k + r) % len(inputs)]
            np.testing.assert_allclose(f(*pair).numpy(), expected[(k + r) % len(inputs)], rtol=2e-5)

    run_threads(8, body)
    assert f.report().compiles == 1


def test_threads_compile_each_function_once():
    functions = [tj.script(lambda x, k=k: (x * k).sum(0) + k) for k in range(5)]

    def body(k):
        for g in functions:
            g(tj.ones(k + 1, 3))

    run_threads(16, body)
    assert [g.report().compiles for g in functions] == [1] * 5


def test_32_threads_over_5_functions_of_different_rank_compile_5_times():
    def of_rank(rank):
        return tj.script(lambda x: (x * 2.5 - rank).tanh().sum(-1) + x.amax())

    functions = [of_rank(rank) for rank in range(1, 6)]
    inputs = [tj.randn(*range(2, rank + 2)) for rank in range(1, 6)]
    expected = [f.function(x).numpy() for f, x in zip(functions, inputs)]
    start = threading.Barrier(32)

    def body(k):
        start.wait(60)
        for r in range(10):
            j = (k + r) % 5
            np.testing.assert_allclose(functions[j](inputs[j]).numpy(), expected[j], rtol=2e-5)

    run_threads(32, body)
    assert [f.report().compiles for f in functions] == [1] * 5
    assert [len(f.entries) for f in functions] == [1] * 5


def test_a_failure_in_one_thread_is_its_own():
    f = tj.script(lambda x, i: x[i] * 2)

    def body(k):
        for _ in range(20):
            if k % 2:
                with pytest.raises(IndexError, match="index 9 is out of bounds"):
                    f(tj.arange(4.0), tj.tensor([9]))
            else:
                assert f(tj.arange(4.0), tj.tensor([k % 4])).tolist() == [2.0 * (k % 4)]

    run_threads(8, body)


def test_grad_mode_is_per_thread():
    w = tj.ones(2, requires_grad=True)
    f = tj.script(lambda x: x * w)

    def body(k):
        for _ in range(10):
            if k % 2:
                with tj.no_grad():
                    assert not f(tj.ones(2)).requires_grad
            else:
                assert f(tj.ones(2)).requires_grad

    run_threads(6, body)


def _child(queue, x, w):
    f = tj.script(work)
    queue.put((SHARED(x, w).numpy(), f(x, w).numpy()))


SHARED = tj.script(work)


def test_a_forked_child_calls_what_was_compiled_before():
    x, w = tj.randn(300, 64), tj.randn(64, 64)
    expected = SHARED(x, w).numpy()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue, x, w))
    child.start()
    old, new = queue.get(timeout=60)
    child.join(20)
    np.testing.assert_allclose(old, expected, rtol=1e-6)
    np.testing.assert_allclose(new, expected, rtol=1e-6)
    assert child.exitcode == 0


def _loader(tasks, results):
    """As a DataLoader's worker: captured functions prepare batches until None comes."""
    for k in iter(tasks.get, None):
        x = tj.full((k + 1, 400, 200), float(k))
        results.put((k, SHARED(x[0], tj.ones(200, 3)).numpy()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_call_captured_functions(method):
    w = tj.ones(200, 3)
    SHARED(tj.ones(400, 200), w)  # compiled, and workers running, before the processes start
    context = multiprocessing.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    workers = [context.Process(target=_loader, args=(tasks, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for k in range(9):
        tasks.put(k)
    found = dict(results.get(timeout=120) for _ in range(9))
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 3
    for k, got in found.items():
        want = work(tj.full((400, 200), float(k)), w).numpy()
        np.testing.assert_allclose(got, want, rtol=2e-5)


def _script(code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", "import tracejit as tj\n" + code],
        env=environment,
        cwd=ROOT,
        timeout=120,
        capture_output=True,
        text=True,
    )


EXITS = {
    "first call at exit": "import atexit\nf = tj.script(lambda x: x * 2)\n"
    "atexit.register(lambda: print(f(tj.ones(1)).item()))",
    "replay at exit": "import atexit\nf = tj.script(lambda x: x * 2)\nf(tj.ones(1))\n"
    "atexit.register(lambda: print(f(tj.ones(1)).item()))",
    "a daemon thread calls while the interpreter exits": "import threading, time\n"
    "f = tj.script(lambda x: (x @ x).tanh())\nx = tj.ones(300, 300)\nf(x)\n"
    "threading.Thread(target=lambda: [f(x) for _ in range(10**6)], daemon=True).start()\n"
    "time.sleep(0.1)\nprint(2.0)",
    "a daemon thread compiles while the interpreter exits": "import threading, time\n"
    "def go():\n    for k in range(10**6): tj.script(lambda x: x * float(k))(tj.ones(2))\n"
    "threading.Thread(target=go, daemon=True).start()\ntime.sleep(0.3)\nprint(2.0)",
}


@pytest.mark.parametrize("code", EXITS.values(), ids=EXITS)
def test_calls_while_the_interpreter_exits(code):
    done = _script(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")


@pytest.mark.parametrize("captured", ["replayed", "recorded"])
def test_calls_go_on_after_an_interrupt_at_any_moment(captured):
    """The tracer is gone, programs and frames are whole, the next call is right."""

    def step(x):
        y = (x @ x).tanh()
        return (y * 2 + x).sum(0) - y.mean()

    armed = False  # an alarm that comes late interrupts no other test

    def interrupt(*args):
        if armed:
            raise KeyboardInterrupt

    x = tj.randn(60, 60)
    expected = step(x).numpy()
    f = tj.script(step)
    f(x)
    before = signal.signal(signal.SIGALRM, interrupt)
    hits = 0
    try:
        for k in range(0, 150, 1 if captured == "replayed" else 8):
            g = f if captured == "replayed" else tj.script(lambda x, k=k: step(x) + 0 * k)
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + k * 2e-5)
                for _ in range(2000 if captured == "replayed" else 1):
                    g(x)
            except KeyboardInterrupt:
                hits += 1
            finally:
                armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert active.tracer is None
            np.testing.assert_allclose(f(x).numpy(), expected, rtol=2e-4, atol=1e-4)
            np.testing.assert_allclose(g(x).numpy(), expected, rtol=2e-4, atol=1e-4)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert hits > (50 if captured == "replayed" else 6)


def test_another_thread_computes_with_a_number_that_is_replaced_meanwhile():
    class Box:
        n = 2.0

    box, seen = Box(), []

    def other():
        seen.append(tj.ones(2) * box.n + box.n)

    @tj.script
    def f(x):
        box.n += 1
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x * box.n

    found = [f(tj.ones(2)).tolist() for _ in range(3)]
    assert found == [[n, n] for n in (3.0, 4.0, 5.0)]
    assert [t.tolist() for t in seen] == [[n, n] for n in (6.0, 8.0, 10.0)]


def _often_switching(count, work):
    """Results of `work(k)` in threads that take turns at every moment."""
    before, found = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda k=k: found.append(work(k))) for k in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return found


def test_threads_never_draw_the_same_numbers():
    f = tj.script(lambda x: x + tj.rand(4))
    f(tj.zeros(4))
    draws = _often_switching(4, lambda k: [tuple(f(tj.zeros(4)).tolist()) for _ in range(60)])
    assert len({x for some in draws for x in some}) == 240


def test_threads_note_the_frames_they_keep(monkeypatch):
    monkeypatch.setattr(frames, "_keeping", deque())

    def keep(k):
        for _ in range(3000):
            frames._keep([], 1 << 12)
        return k

    assert sorted(_often_switching(4, keep)) == [0, 1, 2, 3]
    assert len(frames._keeping) <= frames._KEPT_TOTAL >> 12


def test_frames_are_counted_again_when_others_are_kept_meanwhile(monkeypatch):
    class Kept(deque):
        def __iter__(self):
            every = super().__iter__()
            yield next(every)
            if len(self) < 3:
                frames._keep([], 1)  # as the end of another object may, while this is read
            yield from every

    monkeypatch.setattr(frames, "_keeping", Kept([([], 5)]))
    frames._keep([], 2)
    assert frames._bytes_kept() == 8


def test_threads_with_many_shapes_share_the_bindings():
    f = tj.script(lambda x: x.sum() + 1)
    sizes = [range(1 + 140 * k, 140 + 140 * k) for k in range(3)]
    found = _often_switching(3, lambda k: [float(f(tj.ones(n))) - n for n in sizes[k]])
    assert sorted(map(len, found)) == [139] * 3 and {x for some in found for x in some} == {1.0}
