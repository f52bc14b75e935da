"""Functions that keep results (`functools.lru_cache`) keep what they would without a capture."""

from __future__ import annotations

import functools
import gc
import itertools
import weakref

import pytest

import tracejit as tj
from tests.shares import share
from tracejit.core.memory import reliances

CACHES = {
    "bounded": functools.lru_cache,
    "small": functools.lru_cache(maxsize=1),
    "typed": functools.lru_cache(typed=True),
    "unbounded": functools.cache,
    "none": functools.lru_cache(maxsize=0),
}
JITS = {"script": tj.script, "trace": tj.trace}


def counted(jit, cache, ask):
    """A call that counts, before and after the number behind the cache changes."""
    state, runs = {"steps": 0, "factor": 2.0}, []

    @cache
    def scale(i, j=1):
        runs.append(type(i).__name__)
        return i * state["factor"] * j

    @jit
    def f(x, i):
        state["steps"] += 1
        state["factor"] += 1.0
        return x * ask(scale, i), state["steps"]

    scale(7)
    out = [f(tj.ones(1), 3), f(tj.ones(1), 3), f(tj.ones(1), 4), f(tj.ones(1), 3)]
    out = [(x.item(), n) for x, n in out]
    return out, runs, scale.cache_info(), scale(3), type(scale(3)), scale(7)


WAYS = {
    "called": lambda scale, i: scale(i),
    "mapped": lambda scale, i: sum(map(scale, [i, i])),
    "generated": lambda scale, i: sum(map(scale, (k for k in [i, i]))),
    "partial": lambda scale, i: functools.partial(scale, j=2)(i),
    "sorted": lambda scale, i: sorted([i, 1], key=scale)[0],
    "keyword": lambda scale, i: scale(i, j=2),
    "computed": lambda scale, i: scale(i + 1),
}


@pytest.mark.parametrize(("cache", "way", "jit"), [
    pytest.param(*case, marks=share("-".join(case), 8))
    for case in itertools.product(CACHES, WAYS, JITS)])  # fmt: skip
def test_a_cache_holds_what_it_would(cache, way, jit):
    assert counted(JITS[jit], CACHES[cache], WAYS[way]) == counted(
        lambda f: f, CACHES[cache], WAYS[way])


class Log:
    def __init__(self, name):
        self.name, self.lines = name, []

    @functools.lru_cache(None)  # noqa: B019
    def warn_once(self, message):
        self.lines.append(message)

    @functools.lru_cache  # noqa: B019
    def gain(self, n):
        return 2.0 * n

    @property
    @functools.cache  # noqa: B019
    def width(self):
        return 3.0


def test_none_is_a_result_that_is_kept():
    log = Log("a")
    f = tj.script(lambda x: (log.warn_once("once"), x * 2)[1])
    for _ in range(6):
        f(tj.ones(2))
    assert log.lines == ["once"]
    assert f.report().cache_hits == 4 and f.report().compiles == 1
    assert Log.warn_once.cache_info()[:2] == (5, 1)
    Log.warn_once.cache_clear()


def test_a_method_is_asked_again_of_the_same_object():
    one, other = Log("a"), Log("b")
    Log.gain(one, 2), Log.gain(other, 2)
    f = tj.script(lambda log, x: x * log.gain(2))
    assert [f(log, tj.ones(1)).item() for log in (one, one, other, one, other)] == [4.0] * 5
    assert f.report().cache_hits == 3 and f.report().compiles == 2
    assert Log.gain.cache_info()[:2] == (5, 2)
    Log.gain.cache_clear()
    assert f(one, tj.ones(1)).item() == 4.0
    assert Log.gain.cache_info()[:2] == (0, 1)


def test_an_entry_keeps_no_object_alive():
    log = Log("a")
    f = tj.script(lambda log, x: x * log.gain(2))
    log.gain(2)
    f(log, tj.ones(1)), f(log, tj.ones(1))
    assert f.report().cache_hits == 1
    gone = weakref.ref(log)
    Log.gain.cache_clear()
    del log
    gc.collect()
    assert gone() is None
    assert f(Log("b"), tj.ones(1)).item() == 4.0


class Equal:
    """Its instances are all equal: another one may have put the result into a cache."""

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1


def test_what_cannot_be_asked_again_is_named():
    kept, held = functools.cache(lambda one: 2.0), Equal()
    kept(held)
    f = tj.script(lambda x: x * kept(held))
    assert [f(tj.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert "lru_cache" in str(f.report().breaks[0])


def test_where_caches_cannot_be_asked_replays_do_without(monkeypatch):
    monkeypatch.setitem(reliances.answers, "caches", False)
    kept = functools.cache(lambda n: n * 2.0)
    kept(3)
    f = tj.script(lambda x: x * kept(3))
    assert [f(tj.ones(1)).item() for _ in range(3)] == [6.0] * 3
    assert "lru_cache" in str(f.report().breaks[0])
