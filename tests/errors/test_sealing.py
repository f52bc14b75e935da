"""Sealed functions do what they did, at no cost, and tell when an exception leaves them."""

from __future__ import annotations

import dis
import inspect
import sys
from types import FunctionType

import pytest

from tracejit.core.memory import reliances
from tracejit.core.ops import sealing


def divided(x):
    return 1 / x


def handled(x):
    try:
        return divided(x)
    except ZeroDivisionError:
        raise ValueError(x) from None
    finally:
        x = [y + 1 for y in range(3)]


def in_blocks(x, *rest, scale=2, **named):
    with open("/dev/null"):
        found = [divided(y) * scale for y in (x, *rest)]

        def inner():
            return found, named

        return inner()


def looped(x):
    for k in range(3):
        try:
            divided(k - 1)
        except ZeroDivisionError:
            continue
        finally:
            x = x * 1
    while True:
        return divided(x)


def guarded(x):
    match x:
        case 0:
            return divided(x)
        case _:
            return {k: divided(k + x) for k in range(2)}


def many_constants():
    lines = "".join(f"    y = {k}.5\n" for k in range(300))
    names = {"divided": divided}
    exec(f"def f(x):\n{lines}    return divided(x)\n", names)
    return names["f"]


FUNCTIONS = [divided, handled, in_blocks, looped, guarded, many_constants()]


@pytest.fixture
def left(monkeypatch):
    """The errors that left sealed functions."""
    found = []

    def leaving():
        error = sys.exc_info()[1]
        found.append(error)
        error.__traceback__ = None

    monkeypatch.setattr(sealing, "_leaving", [leaving])
    return found


def copied(function):
    """A function with code of its own, for code is sealed once."""
    code = function.__code__.replace(co_name=function.__name__ + "_copied")
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                        function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_and_errors_stay(function, left):
    sealed = copied(function)
    sealing.seal(sealed)
    assert sealed(2) == function(2)
    with pytest.raises((ZeroDivisionError, ValueError)) as expected:
        function(0)
    with pytest.raises(expected.type) as raised:
        sealed(0)
    assert str(raised.value) == str(expected.value)
    assert left == [raised.value]
    assert raised.tb.tb_next is None, "the function left no entry"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_success_runs_the_same_instructions(function, left):
    sealed = copied(function)
    before = sealed.__code__
    sealing.seal(sealed)
    after = sealed.__code__
    assert after.co_code.startswith(before.co_code), "nothing new where no exception passes"
    own = len(before.co_code)
    targets = [i.argval for i in dis.get_instructions(before) if i.opcode in dis.hasjrel]
    assert all(target < own for target in targets)
    assert after.co_consts[:len(before.co_consts)] == before.co_consts
    assert list(after.co_positions())[:own // 2] == list(before.co_positions())
    assert inspect.signature(sealed) == inspect.signature(function)
    if function.__name__ != "f":  # made of a text
        assert inspect.getsource(sealed) == inspect.getsource(function)


def test_public_functions_are_sealed():
    import tracejit

    sample = [tracejit.Tensor.add_, tracejit.Tensor.__matmul__, tracejit.matmul, tracejit.ones,
              tracejit.nn.Module.__call__, tracejit.nn.functional.linear, tracejit.linalg.inv,
              tracejit.fft.fft, tracejit.special.softmax, tracejit.optim.SGD.step,
              tracejit.func.vmap, tracejit.load, tracejit.nn.Linear.__init__,
              tracejit.CompiledFunction.__call__, tracejit.autograd.grad,
              type(tracejit.exp).__call__, tracejit.Tensor.backward]
    assert [f for f in sample if not sealing.is_sealed(f.__code__)] == []


def test_generators_stay(left):
    def count():
        yield 1

    before = count.__code__
    sealing.seal(count)
    assert count.__code__ is before


def test_an_error_at_the_limit_of_recursion_goes_on(left):
    def deep(n):
        return deep(n + 1)

    sealing.seal(deep)
    with pytest.raises(RecursionError) as raised:
        deep(0)
    assert raised.value.__context__ is None


def test_nested_functions(left):
    def maker():
        def made(x):
            return divided(x)
        return made

    sealing.seal(maker, nested=True)
    with pytest.raises(ZeroDivisionError):
        maker()(0)
    assert len(left) == 1


def test_code_stays_where_the_inside_is_another(left, monkeypatch):
    monkeypatch.setitem(reliances.answers, "handlers", False)
    sealed = copied(divided)
    before = sealed.__code__
    sealing.seal(sealed)
    assert sealed.__code__ is before
