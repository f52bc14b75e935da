"""What Python's garbage collector runs during a recorded call is no part of the call."""

import gc
import time
import weakref

import pytest

import tracejit


def collect():
    """Collect as if by itself: `map` calls what nobody sees."""
    return list(map(gc.collect, (2,)))


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
    """Return a captured function amid whose ops a collection runs."""
    gc.disable()

    def body(x):
        y = x * 2
        collect()
        return (y + 1).sum()

    yield request.param(body)
    gc.enable()


def test_foreign_calls_of_finalizers_and_callbacks_are_no_breaks(collecting):
    said = []
    reference = dropped(lambda: said.append(time.time()), said.append)
    assert collecting(tracejit.ones(3)).item() == 9
    assert len(said) == 2 and "gone" in said and reference() is None
    assert collecting.report().breaks == []


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
        collect()
        return y + 1

    reference = dropped(uses, len)
    assert f(tracejit.ones(3)).tolist() == [3, 3, 3]
    assert "used outside of it, before it was computed" in said[0] and reference() is None
    assert kept[0].tolist() == [2, 2, 2]


def test_recording_goes_on_after_a_collection(collecting):
    """The watcher listens again: a foreign call behind the collection is named."""
    @tracejit.script
    def f(x):
        collect()
        time.sleep(0)
        return x * 2

    f(tracejit.ones(3))
    assert any("time.sleep" in b.reason for b in f.report().breaks)
    before = list(gc.callbacks)
    f(tracejit.ones(3))
    assert gc.callbacks == before


@pytest.mark.parametrize("jit", [tracejit.script, tracejit.trace])
def test_what_a_collection_does_that_the_code_asks_for_is_part_of_the_call(jit):
    class Adds:
        def __init__(self, tensor):
            self.tensor, self.me = tensor, self

        def __del__(self):
            self.tensor.add_(10)

    def body(x):
        y = x * 2
        made = Adds(y)
        del made
        gc.collect()
        return y + 1

    f = jit(body)
    for k in range(4):
        assert f(tracejit.tensor(float(k))).item() == body(tracejit.tensor(float(k))).item()
