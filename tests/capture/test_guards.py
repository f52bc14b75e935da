"""Guards on what a call reads beside its tensors' elements: another answer needs another
program."""

from __future__ import annotations

import sys
import types

import pytest

import tracejit as tj
from tracejit.jit.capture import fingerprint


def calls(function):
    """The plain function and the captured one."""
    return function, tj.script(function, mode="graph")


@pytest.mark.parametrize("first", [False, True])
def test_whether_a_tensor_requires_grad(first: bool) -> None:
    for f in calls(lambda x: x * 2 + 1):
        for requires_grad in (first, not first, first):
            y = f(tj.ones(3, requires_grad=requires_grad))
            assert y.requires_grad is requires_grad


@pytest.mark.parametrize("first", [False, True])
def test_grad_mode(first: bool) -> None:
    x = tj.ones(3, requires_grad=True)
    for f in calls(lambda x: x * 2 + 1):
        for enabled in (first, not first, first):
            with tj.set_grad_enabled(enabled):
                assert f(x).requires_grad is enabled


def test_grad_mode_when_nothing_requires_grad() -> None:
    for f in calls(lambda x: tj.ones(2, requires_grad=True) * x):
        for enabled in (False, True, False):
            with tj.set_grad_enabled(enabled):
                assert f(tj.ones(2)).requires_grad is enabled


def test_a_leaf_made_in_the_call() -> None:
    for f in calls(lambda x: (x * 2).detach().requires_grad_()):
        for _ in range(2):
            y = f(tj.ones(2))
            assert y.requires_grad and y.is_leaf


def test_default_dtype() -> None:
    for f in calls(lambda n: tj.ones(2) * n):
        assert f(2).dtype is tj.float32
        tj.set_default_dtype(tj.float64)
        try:
            assert f(2).dtype is tj.float64
        finally:
            tj.set_default_dtype(tj.float32)
        assert f(2).dtype is tj.float32


def test_layout() -> None:
    base = tj.arange(12.0).view(3, 4)
    for f in calls(lambda x: x.reshape(-1)):
        for x, view in (
            (base, True),
            (base.t(), False),
            (base[:, 1], True),
            (base[:, 1:2], True),
            (base[1], True),
        ):
            y = f(x)
            assert y.tolist() == [
                v for row in x.tolist() for v in (row if isinstance(row, list) else [row])
            ]
            assert (y.data_ptr() == x.data_ptr()) is view


def test_sizes_of_one_in_the_layout() -> None:
    base = tj.arange(6.0).view(3, 1, 2)
    for f in calls(lambda x: x.reshape(-1, 1)):
        for x, view in (
            (base[:1, :, 0], True),
            (base[..., 0], True),
            (base.permute(2, 1, 0), False),
        ):
            assert (f(x).data_ptr() == x.data_ptr()) is view


def test_a_view_of_a_strided_argument_shows_later_writes() -> None:
    def function(x):
        y = x.reshape(-1)
        x.tanh_()
        return y

    for f in calls(function):
        x = tj.ones(5)[1::2]
        y = f(x)
        assert y.tolist() == x.tolist()


def test_arguments_computed_from_each_other() -> None:
    for f in calls(lambda a, b, c: a * 3 + b * c):
        for _ in range(2):
            x = tj.ones(3, requires_grad=True)
            y = x * 2
            f(x, y, y.view(-1)).sum().backward()
            assert x.grad.tolist() == [11.0, 11.0, 11.0]


def test_hooks_of_an_argument_run_once() -> None:
    for f in calls(lambda a: a * 3):
        for _ in range(2):
            seen = []
            y = tj.ones(3, requires_grad=True) * 2
            y.register_hook(seen.append)
            f(y).sum().backward()
            assert len(seen) == 1


def test_errors_of_a_backward_that_cannot_work() -> None:
    def function(x, w):
        y = x * w
        w.add_(1)
        return y

    said = []
    for f in calls(function):
        y = f(tj.ones(3, requires_grad=True), tj.ones(3))
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
            y.sum().backward()
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_code_without_a_file_is_watched_like_any_other():
    """`python -c`, `exec` of a text: what it reads is guarded."""
    space = {"tj": tj, "n": 2}
    exec("f = tj.script(lambda x: x * n)", space)
    for n in (2, 2, 3, 2):
        space["n"] = n
        assert space["f"](tj.ones(1)).item() == n
    assert space["f"].report().cache_hits == 2


@pytest.mark.full  # it looks through all modules that other tests imported
def test_modules_found_in_the_table_of_all(monkeypatch):
    """How many programs that takes depends on what else is imported; what it gives does not."""
    names = ["rate"]
    f = tj.script(lambda x: x * getattr(sys.modules["module_of_a_test"], names[0]), mode="graph")
    for rate in (2.0, 3.0):
        module = types.ModuleType("module_of_a_test")
        module.rate, module.other = rate, 10 * rate
        monkeypatch.setitem(sys.modules, "module_of_a_test", module)
        for name in ("rate", "other", "rate"):
            names[0] = name
            for _ in range(3):
                assert f(tj.ones(2)).tolist() == [getattr(module, name)] * 2
        module.rate = 7.0
        assert f(tj.ones(2)).tolist() == [7.0] * 2


def test_guards_look_through_a_class_only_after_it_changed(monkeypatch):
    class Net(tj.nn.Module):
        def forward(self, x):
            return x * 2

    net, seen = Net(), []
    f = tj.script(net)
    for _ in range(3):
        f(tj.ones(1))
    whole = fingerprint._own
    monkeypatch.setattr(fingerprint, "_own", lambda cls: seen.append(cls) or whole(cls))
    f(tj.ones(1))
    assert seen == []
    Net.forward = lambda self, x: x * 3
    assert f(tj.ones(1)).item() == 3.0 and Net in seen
