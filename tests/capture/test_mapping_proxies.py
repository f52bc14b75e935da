"""Mappings that are read through a `MappingProxyType`: replays follow what is behind it."""

from __future__ import annotations

import inspect
from types import MappingProxyType, SimpleNamespace

import tracejit as tj
from tracejit.core.memory import reliances


def test_changes_behind_a_proxy_are_seen():
    behind = {"a": 2, "b": tj.ones(2)}
    holder = SimpleNamespace(shown=MappingProxyType(behind))

    def f(x):
        return x * holder.shown["a"] + holder.shown["b"] + len(holder.shown)

    captured = tj.script(f)

    def check():
        for _ in range(3):
            assert captured(tj.ones(2)).tolist() == f(tj.ones(2)).tolist()

    check()
    behind["a"] = 5
    check()
    behind["c"] = 1
    check()
    behind["b"] = tj.zeros(2)
    check()
    behind["b"].add_(1)
    check()
    holder.shown = MappingProxyType({"a": 7, "b": tj.ones(2)})
    check()
    holder.shown = {"a": 1, "b": tj.ones(2)}
    check()
    assert captured.report().cache_hits >= 12 and not captured.report().breaks


def test_a_call_may_write_behind_a_proxy():
    behind = {"n": 0}
    shown = MappingProxyType(behind)

    @tj.script
    def f(x):
        behind["n"] = behind["n"] + 1
        return x * shown["n"]

    assert [f(tj.ones(1)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert behind["n"] == 4 and f.report().cache_hits == 3


def test_signatures_are_read():
    signature = inspect.signature(lambda a, b=None: None)
    f = tj.script(lambda x: x * len(list(signature.parameters.keys())))
    assert [f(tj.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert f.report().cache_hits == 2 and not f.report().breaks


def test_where_proxies_cannot_be_asked_replays_do_without(monkeypatch):
    monkeypatch.setitem(reliances.answers, "proxies", False)
    behind = {"a": 2}
    shown = MappingProxyType(behind)
    f = tj.script(lambda x: x * shown["a"] + len(shown))
    found = []
    for behind["a"] in (2, 2, 3, 3):
        found.append(f(tj.ones(1)).item())
    assert found == [3.0, 3.0, 4.0, 4.0]
    assert "the function reads this builtins.mappingproxy" in str(f.report().breaks[0])
