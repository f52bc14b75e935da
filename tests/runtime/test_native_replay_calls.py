"""What native replays give, keep alive and survive: results, errors, threads, signals, forks."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import weakref

import pytest

import tracejit as tj
from tests.runtime.replayed_calls import Scaled, facts, pair, plain, served, warmed
from tracejit.jit.capture import memory_words

pytestmark = pytest.mark.skipif(
    not memory_words.supported(), reason="no native code on this interpreter")


def test_results_that_are_kept_stay_as_they_are() -> None:
    compiled, y = warmed(pair), tj.ones(4)
    kept = [compiled(tj.full((4,), float(k)), y) for k in range(40)]
    for k, (product, total) in enumerate(kept):
        assert product.tolist() == [float(k)] * 4 and total.tolist() == [4.0 * k + 1] * 4
    one = kept[0][0]
    one.add_(1)
    assert one._version == 1 and compiled(tj.ones(4), y)[0]._version == 0


def test_large_results() -> None:
    x, y = tj.ones(40, 40), tj.ones(40, 40)
    compiled = warmed(plain, x, y)
    kept = [compiled(x * k, y) for k in range(10)]
    for k, found in enumerate(kept):
        assert facts(found) == facts(plain(x * k, y))
    assert served(compiled, x, y)[1]


def test_errors_of_the_program() -> None:
    def chosen(table, index):
        return table[index] * 2

    table, index = tj.arange(4.0), tj.tensor([0, 3])
    compiled = warmed(chosen, table, index)
    for _ in range(3):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            compiled(table, tj.tensor([0, 9]))
        for _ in range(40):
            assert compiled(table, index).tolist() == [0.0, 6.0]


def test_counts_of_references_stay() -> None:
    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(pair, x, y)

    def counts():
        objects = (x, y, x._shape, x._dtype, x._device, x._storage, tj.Tensor)
        return [sys.getrefcount(one) for one in objects]

    gc.collect()
    before = counts()
    for _ in range(1000):
        compiled(x, y)
        with contextlib.suppress(TypeError):
            compiled.native(())
        compiled.native((x, 3.0))
        compiled.native((x, tj.ones(5)))
    gc.collect()
    assert compiled.native is not None and counts() == before


def test_nothing_is_kept_alive() -> None:
    x, y = tj.arange(4.0), tj.ones(4)
    compiled = warmed(plain, x, y)
    gone = [weakref.ref(x), weakref.ref(y), weakref.ref(compiled.entries[0][1])]
    del x, y
    gc.collect()
    assert [at() for at in gone[:2]] == [None, None]
    del compiled
    gc.collect()
    assert gone[2]() is None


def test_a_model_that_is_gone_is_let_go() -> None:
    x = tj.ones(4)
    models = [Scaled()]

    def apply(x):
        return models[0](x)

    with tj.no_grad():
        compiled = warmed(apply, x)
        at = weakref.ref(models[0])
        models[0] = Scaled()
        gc.collect()
        assert at() is None
        assert facts(compiled(x)) == facts(apply(x))


def test_threads_call_at_once_and_have_modes_of_their_own() -> None:
    compiled = warmed()
    wrong = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(number):
        mode = tj.no_grad if number % 2 else tj.enable_grad
        with mode():
            for k in range(400):
                given = tj.full((4,), float(k)), tj.full((4,), float(number))
                if facts(compiled(*given)) != facts(plain(*given)):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    try:
        [one.start() for one in threads]
        [one.join() for one in threads]
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_a_new_thread_starts_with_its_own_modes() -> None:
    found = []
    given = tj.arange(4.0), tj.ones(4)
    with tj.no_grad():
        compiled = warmed()
        thread = threading.Thread(target=lambda: found.append(compiled(*given)))
        thread.start()
        thread.join()
    assert facts(found[0]) == facts(plain(*given))


def test_code_that_the_collector_runs_may_call_the_function() -> None:
    compiled = warmed()
    given = tj.arange(4.0), tj.ones(4)
    expected, inside = facts(plain(*given)), []

    class Loop:
        def __init__(self):
            self.self = self

        def __del__(self):
            inside.append(facts(compiled(*given)) == expected)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(300):
            Loop()
            assert facts(compiled(*given)) == expected
    finally:
        gc.set_threshold(*thresholds)
    assert inside and all(inside)


def test_signals_find_a_call_over_or_not_begun() -> None:
    compiled = warmed()
    given = tj.arange(4.0), tj.ones(4)
    expected, caught, result = facts(plain(*given)), 0, None

    def raising(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, raising)
    try:
        for k in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + k * 1e-6)  # once
                result = None
                for _ in range(2000):
                    result = compiled(*given)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedError:
                caught += 1
            assert result is None or facts(result) == expected
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught > 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_goes_on() -> None:
    compiled = warmed()
    given = tj.arange(4.0), tj.ones(4)
    expected = facts(plain(*given))
    child = os.fork()
    if child == 0:
        os._exit(0 if all(facts(compiled(*given)) == expected for _ in range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert served(compiled, *given)[1] and facts(compiled(*given)) == expected


def test_reports_count_native_calls() -> None:
    compiled = warmed()
    before = compiled.report().cache_hits
    for _ in range(50):
        compiled(tj.ones(4), tj.ones(4))
    assert compiled.report().cache_hits == before + 50
    assert compiled.report().cache_hits == before + 50


def test_calls_that_alternate_are_left_to_python() -> None:
    compiled, given = warmed(), [(tj.ones(k), tj.ones(k)) for k in (4, 5)]
    for _ in range(400):
        for one in given:
            compiled(*one)
    assert compiled.entries[0][1].patience > 64


def test_a_frame_that_is_in_use_is_left_alone() -> None:
    compiled = warmed()
    frames = compiled.entries[0][1].last[2].binding.frames
    taken = frames.pop()
    frames.append(taken.native.frame())
    before = taken.addresses()
    assert facts(compiled(tj.ones(4), tj.ones(4))) == facts(plain(tj.ones(4), tj.ones(4)))
    assert compiled.native is None and taken.addresses() == before


def test_a_call_of_known_tensors_inside_a_recording_is_recorded() -> None:
    given = tj.arange(4.0), tj.ones(4)
    inner = warmed(plain, *given)
    outer = tj.script(lambda z: inner(*given) + z, mode="compiled")
    for k in range(9):
        given[0].fill_(float(k))
        assert facts(outer(tj.ones(4))) == facts(plain(*given) + tj.ones(4))
