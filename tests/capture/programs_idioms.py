"""Idioms of training code: where it prints and logs, recursion that a value ends, exceptions told
more of."""

from __future__ import annotations

import contextlib
import io
import logging
import logging.handlers
import sys

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def t(*values):
    return tj.tensor([float(v) for v in values])


def logger_to(stream):
    logger = logging.Logger("of a program", logging.INFO)
    logger.addHandler(logging.StreamHandler(stream))
    return logger


def tensors_logged_as_numbers(jit):
    stream, kept = io.StringIO(), logging.handlers.MemoryHandler(100)
    logger = logger_to(stream)
    logger.addHandler(kept)
    weight = t(2).requires_grad_()

    @jit
    def f(x):
        y = (x * weight).sum()
        logger.info("%.3f %d %s %5s", y, y.detach(), y, weight)
        z = x * 3
        logger.warning("%5.2f", z.sum())
        z.mul_(2)
        return y

    out = [f(t(1, 2)), f(t(3, 4)), f(t(1, 2)), stream.getvalue()]
    tensors = [x for record in kept.buffer for x in record.args]
    return [*out, *[(type(x).__name__, float(x), x.grad_fn is None) for x in tensors]]


def recursion_that_a_value_ends(jit):
    def halvings(x):
        if x <= 1:
            return 0
        return 1 + halvings(x / 2)

    def fibonacci(x):
        return x if x <= 1 else fibonacci(x - 1) + fibonacci(x - 2)

    def shrunk(x):
        while x.sum() > 1:
            x = shrunk(x / 2 - 1)
        return x

    functions = [jit(halvings), jit(fibonacci), jit(shrunk)]
    return [f(t(k)) for f in functions for k in (6, 3, 7, 1)]


def recursion_on_trial(jit):
    def steps(x, n):
        if n == 0:
            return x
        if x.sum() > 0:
            return steps(x - 1, n - 1)
        return x

    f = jit(steps)
    return [f(t(k), n) for k, n in ((1, 3), (90, 20), (90, 80), (5, 20))]


def recursion_too_deep_in_a_side(jit):
    def down(x, n):
        return x if n == 0 else down(x + 1, n - 1)

    @jit
    def f(x, n):
        if x.sum() > 0:
            return down(x, n)
        return x

    calls = ((1, 3), (-1, 100_000), (1, 100_000), (1, 5))
    return [type(tried(f, t(k), n)).__name__ for k, n in calls]


def printed_elsewhere(jit):
    outer, inner = io.StringIO(), io.StringIO()

    @jit
    def f(x):
        print("before", x.sum().item())
        with contextlib.redirect_stdout(inner):
            print("within", x.sum().item())
        own, before = io.StringIO(), sys.stdout
        sys.stdout = own
        try:
            print("own", x.max())
        finally:
            sys.stdout = before
        print("after")
        return x * 2, own.getvalue()

    with contextlib.redirect_stdout(outer):
        out = [f(t(k)) for k in (1, 2, 1)]
    return [*out, outer.getvalue(), inner.getvalue()]


def printed_to_code_of_the_users(jit):
    lines = []

    class Stream:
        def write(self, text):
            lines.append(text)

        def flush(self):
            pass

    @jit
    def f(x):
        print("sum", x.sum().item())
        return x * len(lines)

    out = []
    for stream in (io.StringIO(), Stream(), io.StringIO(), Stream()):
        with contextlib.redirect_stdout(stream):
            out += [f(t(1)), f(t(2))]
    return [*out, lines]


def exception_told_more_of(jit):
    @jit
    def f(x):
        try:
            return x.view(3, 3)
        except RuntimeError as error:
            error.add_note(f"of {x.sum().item()}")
            raise

    errors = [tried(f, t(*values)) for values in ((1,), range(9), (1, 2), (3,))]
    return [getattr(error, "__notes__", error) for error in errors]


PROGRAMS = programs_in(globals())
