"""Programs whose loops call functions and lambdas that the captured function defines."""

from __future__ import annotations

import functools

import tracejit as tj
from tests.capture.program_inputs import (
    LOOPS,
    data,
    results,
    results_and_gradients,
    tried,
    weights,
)
from tests.capture.program_list import programs_in


def step_defined_within(jit):
    w = weights()

    @jit
    def f(x):
        def step(h, row):
            return tj.tanh(h @ w + row)

        h = tj.zeros(3)
        for row in x:
            h = step(h, row)
        return h

    return [*results_and_gradients(f), w.grad]


def lambda_in_a_loop(jit):
    @jit
    def f(x, scale):
        times = lambda v: v * scale  # noqa: E731
        h = tj.zeros(3)
        for row in x:
            h = h + times(row)
        return h

    return [found for scale in (2.0, 3.0, 2) for found in results_and_gradients(f, scale)]


def closure_over_a_carried_variable(jit):
    @jit
    def f(x):
        h = tj.zeros(3)

        def mixed(row):
            return h * 0.5 + row.sin()

        for row in x:
            h = mixed(row)
        return h, mixed(h)

    return results(f)


def function_that_sets_a_variable(jit):
    @jit
    def f(x):
        total = x.sum(0)

        def add(row):
            nonlocal total
            total = total + row.cos()

        for row in x:
            add(row)
        return total

    return results_and_gradients(f)


def function_made_in_each_iteration(jit):
    @jit
    def f(x):
        h = tj.zeros(3)
        for row in x:
            def shifted(v):
                return tj.sin(v) + row  # noqa: B023

            h = shifted(h) + (lambda v: v * 2)(row)
        return h

    return results_and_gradients(f)


def function_kept_behind_the_loop(jit):
    @jit
    def f(x):
        h, g = tj.zeros(3), tj.sin
        for row in x:
            h = g(h) + row
            g = lambda v: v * row  # noqa: B023, E731
        return g(h)

    return results_and_gradients(f)


def branch_within_a_function(jit):
    @jit
    def f(x):
        def relu(v):
            if v.sum() > 0:
                return v * 1
            return v * 0.1

        h = tj.zeros(3)
        for row in x:
            h = relu(h + row)
        return h

    return results(f)


def function_with_an_effect(jit):
    seen = []

    @jit
    def f(x):
        def noted(row):
            seen.append(1)
            return row * 2

        h = tj.zeros(3)
        for row in x:
            h = h + noted(row)
        return h

    return results(f), seen


def function_that_looks_at_its_frame(jit):
    class Box:
        count = 0

    @jit
    def f(x):
        def noted(row):
            Box.count = Box.count + len(locals())
            return row * 2

        h = tj.zeros(3)
        for row in x:
            h = h + noted(row)
        return h

    return results(f), Box.count


def function_with_defaults(jit):
    @jit
    def f(x):
        def step(h, row, w=x.sum(0), *, scale=2.0):
            return h * 0.5 + row * w * scale

        h = tj.zeros(3)
        for k, row in enumerate(x):
            h = step(h, row, scale=0.5) + k
        return h

    return results_and_gradients(f)


def partial_and_keyed_functions(jit):
    @jit
    def f(x):
        def step(h, row):
            return h * 0.5 + row

        steps = {"step": functools.partial(step, tj.ones(3)), "cos": lambda v: v.cos()}
        h = tj.zeros(3)
        for row in x:
            h = h + steps["step"](row) + steps["cos"](row)
        return h

    return results_and_gradients(f)


def function_that_the_call_gets(jit):
    @jit
    def f(x, g):
        def twice(v):
            return g(g(v))

        h = tj.zeros(3)
        for row in x:
            h = h + twice(row)
        return h

    functions = (tj.sin, tj.cos, lambda v: v * 3, tj.sin)
    return [tried(f, data(n), g) for n in LOOPS for g in functions]


PROGRAMS = programs_in(globals())
