"""Errors of a backward name the forward line of the node that failed."""

from __future__ import annotations

import linecache
import re
import warnings

import pytest

import tracejit
from tracejit import config

MODES = ("graph", "compiled")


@pytest.fixture(autouse=True)
def short():
    with config.override(tracebacks="short"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def plain(function):
    return function


def forward_line(call):
    """Return the line that the note of a failing call's error names; it must be of this file."""
    with pytest.raises(Exception) as caught:
        call()
    notes = [n for n in getattr(caught.value, "__notes__", ()) if n.startswith("tracejit: ")]
    found = re.search(r"while running the backward of `([^`]*)` \(([^`]*?):(\d+)\)", "".join(notes))
    if found is None:
        return None
    assert found[2] == "test_backward_lines.py"
    assert linecache.getline(__file__, int(found[3])).strip() == found[1]
    return found[1]


def weights():
    return tracejit.ones(3), tracejit.ones(3, requires_grad=True)


def steps(x, w):
    y = (x * w).exp()
    z = (y * w).sum()
    return y, z


def result_is_written(jit):
    f = jit(steps)
    for _ in range(2):  # the second is a replay
        y, z = f(*weights())
    y.add_(1)
    z.backward()


def argument_is_written(jit):
    x, w = weights()
    _, z = jit(steps)(x, w)
    with tracejit.no_grad():
        w.add_(1)
    z.backward()


def backward_twice(jit):
    _, z = jit(steps)(*weights())
    z.backward()
    z.backward()


def written_and_differentiated_inside(jit):
    @jit
    def f(x, w):
        y = (x * w).exp()
        z = (y * 2).sum()
        y.add_(1)
        z.backward()

    f(*weights())


LINES = {
    result_is_written: "z = (y * w).sum()",
    argument_is_written: "z = (y * w).sum()",
    backward_twice: "z = (y * w).sum()",
    written_and_differentiated_inside: "y = (x * w).exp()",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", LINES)
def test_captured(program, mode):
    with config.override(mode=mode):
        assert forward_line(lambda: program(tracejit.script)) == LINES[program]


@pytest.mark.parametrize("program", LINES)
def test_eager_in_anomaly_mode(program):
    with tracejit.autograd.detect_anomaly():
        assert forward_line(lambda: program(plain)) == LINES[program]


@pytest.mark.parametrize("program", LINES)
def test_eager_without_it(program):
    assert forward_line(lambda: program(plain)) is None


class Wrong(tracejit.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad[:1]


class Raises(Wrong):
    @staticmethod
    def backward(ctx, grad):
        raise KeyError("mine")


@pytest.mark.parametrize("kind", [Wrong, Raises])
def test_custom_functions_know_their_line(kind):
    def f(x):
        y = kind.apply(x * 1)
        return y.sum()

    line = forward_line(lambda: f(tracejit.ones(3, requires_grad=True)).backward())
    assert line == "y = kind.apply(x * 1)"


def test_a_backward_within_a_backward_names_its_own_line():
    class Outer(tracejit.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            inner = tracejit.ones(3, requires_grad=True)
            with tracejit.enable_grad():
                loss = Wrong.apply(inner).sum()
            loss.backward()
            return grad

    def f():
        Outer.apply(tracejit.ones(3, requires_grad=True)).sum().backward()

    assert forward_line(f) == "loss = Wrong.apply(inner).sum()"


def test_a_function_keeps_no_frame_alive():
    y = Wrong.apply(tracejit.ones(3, requires_grad=True))
    assert [type(part).__name__ for part in y.grad_fn._called_from] == ["code", "int"]
