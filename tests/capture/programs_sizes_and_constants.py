"""Sizes as the numbers they are for Python, and constants that passes look through."""

from __future__ import annotations

import fractions
import json

import numpy as np

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in


def sizes_equal_other_kinds_of_numbers(jit):
    @jit
    def f(x, k):
        n = x.shape[0]
        numbers = (n == np.int64(3), n != np.int32(4), n == complex(3), n == fractions.Fraction(3))
        truths = n == True, n != True, n in (True, False)  # noqa: E712
        return *map(bool, numbers), *truths, n == "3", n == k, n != k, k == n

    return [f(tj.ones(n), tj.tensor([2, 3, 4])) for n in (3, 1, 4, 0, 3)]


def sizes_divided_by_sizes_that_may_be_0(jit):
    @jit
    def whole(x):
        return x.new_full((x.numel() // x.size(1),), 2.0)

    @jit
    def rest(x):
        return x.numel() % x.size(1), divmod(12, x.size(1))

    @jit
    def never(x):
        return x + x.size(1) // 0

    shapes = ((2, 3), (2, 0), (0, 2), (5, 2))
    return [[tried(f, tj.ones(*shape)) for shape in shapes] for f in (whole, rest, never)]


def chunks_of_nothing(jit):
    @jit
    def f(x):
        return [tuple(part.shape) for part in x.chunk(3)], x + 1

    return [f(tj.ones(n)) for n in (5, 0, 6, 1)]


def sizes_written_as_json(jit):
    def written(x):
        return json.dumps({"n": x.size(0), "shape": list(x.shape)}), int.bit_length(x.size(0))

    f = tj.script(written) if jit is tj.trace else jit(written)  # a trace cannot see into json
    return [f(tj.ones(n)) for n in (3, 2, 0)]


def constants_seen_as_other_numbers(jit):
    @jit
    def f(x):
        ones = tj.ones(2, dtype=tj.complex64)
        bits = tj.full((2,), -2.5).view(tj.int32), tj.ones(2).view(tj.uint8)
        pairs = tj.view_as_real(ones) * 2, tj.view_as_complex(tj.full((2, 2), 3.0))
        return *bits, *pairs, ones.imag + x, ones.real + x

    return [f(tj.ones(2)), f(tj.zeros(2))]


def powers_of_infinity_by_constants(jit):
    @jit
    def f(x):
        return [x ** tj.full((5,), p) for p in (0.5, 2.0, 0.0, -0.5)] + [x**0.5, x**-0.5]

    inf, nan = float("inf"), float("nan")
    return [f(tj.tensor([-inf, -0.0, 4.0, nan, inf])), f(tj.tensor([-1.0, 2.0, 3.0, nan, -inf]))]


def choices_between_numbers(jit):
    @jit
    def f(x, k, m):
        kept = x > 0
        return tj.where(kept, k, m), tj.where(kept, k, 2), tj.where(kept, 2.5, m) * x.half()

    calls = ((1.5, 2), (2, 1.5), (1.5, 2.5), (1, 2), (0.1, 0.2), (True, 2.5))
    return [f(tj.tensor([1.0, -1.0]), *numbers) for numbers in calls]


PROGRAMS = programs_in(globals())
