"""Loggers whose handlers and filters are the user's, or which the captured function sets up.

These are no programs of docs/programs.md: how many breaks they tell depends on who else logs.
"""

from __future__ import annotations

import io
import logging

import pytest

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.programs_idioms import logger_to, t
from tests.capture.shown import assert_same, plain, seen


def logged_by_code_of_the_users(jit):
    stream, counted, state = io.StringIO(), [0], {}

    class Numbered(logging.Filter):
        def filter(self, record):
            counted[0] += 1
            return counted[0] % 3

    class Strict(logging.Handler):
        def emit(self, record):
            if record.levelno > logging.INFO:
                raise RuntimeError(record.getMessage())

    logger = logger_to(stream)

    @jit
    def f(x):
        state["first"] = x.sum().item()
        logger.info("sum %s", x.sum().item())
        if counted[0] > 4:
            logger.warning("counted %d", counted[0])
        state["last"] = x.sum().item()
        return x * counted[0]

    out = [f(t(1)), f(t(2))]
    logger.addFilter(Numbered())
    out += [f(t(1)), f(t(2)), f(t(3))]
    logger.addHandler(Strict())
    for k in (4, 5, 6, 7):
        out += [tried(f, t(k)), dict(state)]
    return [*out, stream.getvalue()]


def logging_set_up_within(jit):
    stream, other = io.StringIO(), io.StringIO()
    logger, handler = logger_to(stream), logging.StreamHandler(other)

    @jit
    def f(x):
        logger.info("a %s", x.sum().item())
        logger.addHandler(handler)
        logger.info("b %s", x.sum().item())
        logger.removeHandler(handler)
        logger.setLevel(logging.ERROR)
        logger.info("c %s", x.sum().item())
        logger.setLevel(logging.INFO)
        logging.disable()
        logger.error("d %s", x)
        logging.disable(logging.NOTSET)
        return x * 2

    return [f(t(1)), f(t(2)), f(t(1)), stream.getvalue(), other.getvalue()]


@pytest.mark.parametrize("jit", [tj.script, tj.trace], ids=["script", "trace"])
@pytest.mark.parametrize("program", [logged_by_code_of_the_users, logging_set_up_within])
def test_lines_arrive_when_they_are_logged(program, jit):
    assert_same(seen(program(jit)), seen(program(plain)))
