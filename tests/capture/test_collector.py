"""What Python's garbage collector runs during a recorded call is no part of the call."""

import gc
import time
import weakref

import pytest

import tracejit

PREFIX = "the function calls gc.collect;"


class Cycle:
    """Object that only the collector frees. Its finalizer does what no replay may repeat."""

    def __init__(self, does):
        self.me, self.does = self, does

    def __del__(self):
        self.does()


def dropped(does, say):
    """Make garbage; return a reference whose callback says when it is gone."""
    return weakref.ref(Cycle(does), lambda reference: say("gone"))


@pytest.fixture(params=[tracejit.script, tracejit.trace])
def collecting(request):
    """Return a captured function that collects amid its ops: with a break, but that one alone."""
    gc.disable()

    def body(x):
        y = x * 2
        gc.collect()
        return (y + 1).sum()

    yield request.param(body)
    gc.enable()


def reasons(f):
    return [b.reason[:len(PREFIX)] for b in f.report().breaks]


def test_foreign_calls_of_finalizers_and_callbacks_are_no_breaks(collecting):
    said = []
    reference = dropped(lambda: said.append(time.time()), said.append)
    assert collecting(tracejit.ones(3)).item() == 9
    assert len(said) == 2 and "gone" in said and reference() is None
    assert reasons(collecting) == [PREFIX]


def test_ops_of_finalizers_are_not_recorded(collecting):
    total = tracejit.zeros(3)
    reference = dropped(lambda: total.add_(tracejit.ones(3).cumsum(0)), len)
    collecting(tracejit.ones(3))
    assert total.tolist() == [1, 2, 3] and reference() is None
    assert [g for g in collecting.graphs.values() if "cumsum" in str(g)] == []
    collecting(tracejit.ones(3))
    assert total.tolist() == [1, 2, 3]


def test_finalizers_do_not_see_what_the_call_has_not_computed(collecting):
    """The collector may run amid the recording of an op: nothing can be computed then."""
    said, kept = [], []

    def uses():
        try:
            kept[-1].sum()
        except RuntimeError as error:
            said.append(str(error))

    @tracejit.script
    def f(x):
        y = x * 2
        kept.append(y)
        gc.collect()
        return y + 1

    reference = dropped(uses, len)
    assert f(tracejit.ones(3)).tolist() == [3, 3, 3]
    assert "used outside of it, before it was computed" in said[0] and reference() is None
    assert kept[0].tolist() == [2, 2, 2]


def test_recording_goes_on_after_a_collection(collecting):
    """The watcher listens again: a foreign call behind the collection is named."""
    @tracejit.script
    def f(x):
        gc.collect()
        time.sleep(0)
        return x * 2

    f(tracejit.ones(3))
    assert any("time.sleep" in b.reason for b in f.report().breaks)
    before = list(gc.callbacks)
    f(tracejit.ones(3))
    assert gc.callbacks == before
