"""Grad modes and inference mode against torch."""

import pytest

from tests.eager.programs import check

pytestmark = pytest.mark.oracle
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def errors_of(*actions):
    found = []
    for action in actions:
        try:
            action()
            found.append("no error")
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@program
def no_grad(m):
    x = m.ones(2, requires_grad=True)
    with m.no_grad():
        y = x * 2
        inside = m.is_grad_enabled()
        z = m.ones(1, requires_grad=True)
    return y.requires_grad, inside, m.is_grad_enabled(), z.requires_grad, (x * 2).requires_grad


@program
def nesting(m):
    seen = []
    with m.no_grad():
        with m.enable_grad():
            seen.append(m.is_grad_enabled())
            with m.set_grad_enabled(False):
                seen.append(m.is_grad_enabled())
            seen.append(m.is_grad_enabled())
        seen.append(m.is_grad_enabled())
    return seen, m.is_grad_enabled()


@program
def an_exception_restores(m):
    try:
        with m.no_grad():
            raise ValueError
    except ValueError:
        return m.is_grad_enabled()


@program
def decorators(m):
    @m.no_grad()
    def f(k):
        """doc"""
        return m.is_grad_enabled(), k

    @m.no_grad
    def g():
        return m.is_grad_enabled()

    @m.set_grad_enabled(False)
    def h():
        return m.is_grad_enabled()

    @m.inference_mode()
    def i():
        return m.is_inference_mode_enabled(), m.is_grad_enabled()

    @m.inference_mode
    def j():
        return m.is_inference_mode_enabled()

    return f(3), f.__name__, f.__doc__, g(), h(), i(), j(), m.is_grad_enabled()


@program
def recursion_through_a_decorator(m):
    @m.no_grad()
    def f(k):
        return [m.is_grad_enabled()] + (f(k - 1) if k else [])

    return f(3), m.is_grad_enabled()


@program
def generators(m):
    seen = []

    @m.no_grad()
    def f():
        got = yield m.is_grad_enabled()
        seen.append((got, m.is_grad_enabled()))
        try:
            yield 2
        except KeyError:
            seen.append(m.is_grad_enabled())
            yield 3
        return 4

    g = f()
    out = [next(g), m.is_grad_enabled(), g.send("a"), m.is_grad_enabled(), g.throw(KeyError())]
    try:
        next(g)
    except StopIteration as stop:
        out.append(stop.value)
    return out, seen


@program
def set_grad_enabled_as_a_call(m):
    m.set_grad_enabled(False)
    a = m.is_grad_enabled()
    m.set_grad_enabled(True)
    return a, m.is_grad_enabled()


@program
def inference(m):
    x = m.ones(2, requires_grad=True)
    with m.inference_mode():
        y = x * 2
        v = y[0]
        n = m.ones(2)
    return (
        y.requires_grad,
        y.is_inference(),
        v.is_inference(),
        n.is_inference(),
        x.is_inference(),
        (n + 1).is_inference(),
        m.is_inference_mode_enabled(),
    )


@program
def inference_tensors_outside(m):
    x = m.ones(2, requires_grad=True)
    with m.inference_mode():
        n = m.ones(2)
    return [
        e if isinstance(e, str) else (e[0], e[1][:60])
        for e in errors_of(
            lambda: n.add_(1),
            lambda: n * x,
            lambda: n + x,
            lambda: n.requires_grad_(),
            lambda: n.clone() * x,
        )
    ]


@program
def inference_mode_off(m):
    with m.inference_mode(), m.inference_mode(False):
        x = m.ones(2, requires_grad=True)
        return (x * 2).requires_grad, x.is_inference()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    check(program)
