"""Functions that tracing records as they are; `wrap` wants the top level of a module."""

import math

import tracejit.fx


@tracejit.fx.wrap
def chosen(x, limit=0):
    return x if x.sum() > limit else -x


def tripled(x):
    return x * 3


tracejit.fx.wrap("tripled")
tracejit.fx.wrap("len")


def program(x):
    return chosen(x, limit=1) + tripled(x) + tripled(1) + len(x) + len([1, 2]) + math.sqrt(4)


def roots(x):
    return math.sqrt(x) * 2
