"""Holders of an object are found on every version of CPython, and so by the plain search."""

from __future__ import annotations

import gc

import pytest

import tracejit as tj
from tracejit.core.memory import reliances
from tracejit.core.memory.referrers import referrers


@pytest.fixture(params=[True, False], ids=["asked", "searched"])
def way(request, monkeypatch):
    monkeypatch.setitem(reliances.answers, "referrers", request.param)


def test_the_canary_holds_here():
    assert reliances.known["referrers"].canary()


def test_holders_of_several_objects_are_found_and_nothing_that_the_call_made(way):
    class Kept:
        pass

    one, two = Kept(), Kept()
    holder, both, given = [one], (one, two), [one, two]
    found = [x for x in referrers(given) if type(x) in (list, tuple)]
    assert sorted(map(id, found)) == sorted([id(holder), id(both)])


def test_holders_that_the_program_froze_are_found(way):
    holder = [given := object()]
    gc.freeze()
    assert any(one is holder for one in referrers([given]))


def test_memory_whose_views_are_frozen_is_not_resized():
    whole = tj.arange(6.0)
    view = whole[2:4]
    gc.freeze()
    with pytest.raises(RuntimeError, match="has views"):
        whole.resize_(100)
    assert view.tolist() == [2.0, 3.0]


def test_a_number_that_a_call_returns_is_plain(way):
    @tj.script
    def total(x, kept):
        n = x.sum().item()
        kept.append((n, {"n": n}))
        return n

    for value in (3.0, 4.0):
        kept = []
        assert type(total(tj.full((1,), value), kept)) is float
        assert kept == [(value, {"n": value})] and type(kept[0][1]["n"]) is float


def test_an_assertion_with_a_number_in_its_text_ends(way):
    @tj.script
    def checked(x, n):
        assert n > 0, f"n is {n}"
        return x * n

    assert checked(tj.ones(1), 5).tolist() == [5.0]
    assert checked(tj.ones(1), 2).tolist() == [2.0]
    with pytest.raises(AssertionError, match="n is -1"):
        checked(tj.ones(1), -1)
