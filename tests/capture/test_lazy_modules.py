"""Modules of ours that load when they are named: their arrival is no effect of the call."""

from __future__ import annotations

import sys

import tracejit as tj


def _forget(monkeypatch, name):
    monkeypatch.setattr(tj, "__name__", "torch")  # as scripts over PyTorch's names see it
    monkeypatch.delitem(vars(tj), name, raising=False)
    monkeypatch.delitem(sys.modules, f"tracejit.{name}", raising=False)


def test_a_module_that_loads_in_the_call_is_no_effect(monkeypatch):
    _forget(monkeypatch, "futures")
    torch = tj
    f = tj.script(lambda x: x * (2.0 if torch.futures.Future is not None else 3.0))
    assert [f(tj.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert not f.report().breaks and f.report().cache_hits == 2


def test_a_module_that_may_be_missing_is_no_effect(monkeypatch):
    torch = tj

    def f(x):
        try:  # the name may be missing
            kind = torch.hub
        except AttributeError:
            kind = None
        return x * (2.0 if kind is not None else 3.0)

    _forget(monkeypatch, "hub")
    g = tj.script(f)
    assert [g(tj.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert not g.report().breaks and g.report().cache_hits == 2


def test_an_attribute_that_the_user_sets_on_a_module_of_his_is_an_effect(monkeypatch):
    module = type(sys)("users_settings")
    monkeypatch.setitem(sys.modules, "users_settings", module)

    def f(x):
        module.count = getattr(module, "count", 0) + 1
        return x + 1

    g = tj.script(f)
    for _ in range(4):
        g(tj.ones(1))
    assert module.count == 4
