"""Captured functions called from several threads and after fork."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np

import tracejit as tj


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
