"""Seeded failures of ops: each runs plainly and captured, and must fail in the same way (C7).

A program takes `jit` (a decorator) and returns a `Failure`: calls that work, the call that fails,
and everything its caller can see afterwards. Lines of these functions are compared, so they are
never reformatted into lambdas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracejit as tj

F = tj.nn.functional


@dataclass
class Failure:
    """One seeded failure. `state()` is all the caller can see beside results and the exception."""

    good: Callable[[], Any]
    bad: Callable[[], Any]
    state: Callable[[], Any]


class Box:
    """Something with attributes."""

    def __init__(self, **attributes: Any):
        self.__dict__.update(attributes)


def around(jit, op, good, bad):
    """`op(*arguments)` between writes to memory, attributes, containers and the generator."""
    memory, box, seen = tj.zeros(3), Box(calls=0, last=None), []

    @jit
    def f(*arguments):
        memory.add_(1)
        box.calls = box.calls + 1.0
        noise = tj.rand(2)
        result = op(*arguments)
        memory.mul_(2)
        box.last = noise
        seen.append(noise)
        return result * 1

    return Failure(
        lambda: f(*good),
        lambda: f(*bad),
        lambda: [memory, memory._version, box.calls, box.last, seen, good, bad],
    )


def shapes_that_do_not_broadcast(jit):
    return around(jit, lambda a, b: a + b, (tj.ones(3), tj.ones(3)), (tj.ones(3), tj.ones(4)))


def masks_that_do_not_broadcast(jit):
    good, bad = (tj.ones(3), tj.ones(3) > 0), (tj.ones(3), tj.ones(4) > 0)
    return around(jit, lambda a, mask: a.masked_fill(mask, 3), good, bad)


def sizes_of_a_product(jit):
    good, bad = (tj.ones(2, 3), tj.ones(3, 2)), (tj.ones(2, 3), tj.ones(2, 3))
    return around(jit, lambda a, b: a @ b, good, bad)


def operands_that_cannot_be_joined(jit):
    good, bad = (tj.ones(2, 3), tj.ones(2, 3)), (tj.ones(2, 3), tj.ones(2, 4))
    return around(jit, lambda a, b: tj.cat([a, b]), good, bad)


def dtype_of_a_write(jit):
    def write(a, b):
        return a.add_(b)

    good = (tj.tensor([1, 2]), tj.tensor([3, 4]))
    return around(jit, write, good, (tj.tensor([1, 2]), tj.tensor([0.5, 0.5])))


def dtype_of_a_product(jit):
    good = (tj.ones(2, 2), tj.ones(2, 2))
    return around(jit, lambda a, b: a @ b, good, (tj.ones(2, 2), tj.ones(2, 2, dtype=tj.float64)))


def dtype_of_an_index(jit):
    good = (tj.ones(4), tj.tensor([1]))
    return around(jit, lambda x, i: x[i], good, (tj.ones(4), tj.tensor([1.0])))


def a_text_as_operand(jit):
    return around(jit, lambda a, b: a + b, (tj.ones(2), 1.0), (tj.ones(2), "one"))


def index_out_of_range(jit):
    good, bad = (tj.arange(4.0), tj.tensor([0, -4])), (tj.arange(4.0), tj.tensor([0, 4]))
    return around(jit, lambda x, i: x[i], good, bad)


def index_out_of_range_below(jit):
    good, bad = (tj.arange(4.0), tj.tensor([3])), (tj.arange(4.0), tj.tensor([-5]))
    return around(jit, lambda x, i: x[i], good, bad)


def index_out_of_range_for_another_size(jit):
    good, bad = (tj.arange(9.0), tj.tensor([8])), (tj.arange(5.0), tj.tensor([8]))
    return around(jit, lambda x, i: x[i], good, bad)


def computed_index_out_of_range(jit):
    def pick(x, n):
        return x[x.argmax() + n]

    good = (tj.tensor([1.0, 5.0, 2.0]), tj.tensor(1))
    return around(jit, pick, good, (tj.tensor([1.0, 5.0, 2.0]), tj.tensor(2)))


def index_written_before_it_is_used(jit):
    def pick(x, i):
        i.add_(1)
        return x[i]

    good, bad = (tj.arange(40.0), tj.tensor([0])), (tj.arange(40.0), tj.tensor([39]))
    return around(jit, pick, good, bad)


def number_index_out_of_range(jit):
    return around(jit, lambda x, n: x[n], (tj.arange(4.0), 3), (tj.arange(4.0), 4))


def embedding_out_of_range(jit):
    table = tj.randn(5, 2)
    good, bad = (tj.tensor([[0, 4]]), table), (tj.tensor([[1, 5]]), table)
    return around(jit, lambda i, w: F.embedding(i, w), good, bad)


def index_select_out_of_range(jit):
    good, bad = (tj.ones(3, 2), tj.tensor([2])), (tj.ones(3, 2), tj.tensor([-1]))
    return around(jit, lambda x, i: x.index_select(0, i), good, bad)


def gather_out_of_range(jit):
    good, bad = (tj.ones(2, 2), tj.tensor([[1, 0]])), (tj.ones(2, 2), tj.tensor([[2, 0]]))
    return around(jit, lambda x, i: x.gather(1, i), good, bad)


def scatter_out_of_range(jit):
    good, bad = (tj.ones(3), tj.tensor([2])), (tj.ones(3), tj.tensor([3]))
    return around(jit, lambda x, i: x.scatter(0, i, 7.0), good, bad)


def index_write_out_of_range(jit):
    def put(x, i):
        x[i] = 9.0
        return x

    return around(jit, put, (tj.zeros(3), tj.tensor([2])), (tj.zeros(3), tj.tensor([1, 3])))


def class_out_of_range(jit):
    good, bad = (tj.ones(2, 3), tj.tensor([0, 2])), (tj.ones(2, 3), tj.tensor([0, 3]))
    return around(jit, lambda x, y: F.cross_entropy(x, y), good, bad)


def class_out_of_range_with_weights(jit):
    good, bad = (tj.ones(2, 3), tj.tensor([0, 2])), (tj.ones(2, 3), tj.tensor([0, 3]))
    return around(jit, lambda x, y: F.nll_loss(x, y, tj.ones(3)), good, bad)


def class_that_has_no_place(jit):
    good, bad = (tj.tensor([0, 2]),), (tj.tensor([0, -3]),)
    return around(jit, lambda y: F.one_hot(y, 3), good, bad)


def probability_above_one(jit):
    good, bad = (tj.ones(2), tj.zeros(2)), (tj.ones(2), tj.tensor([0, 1.5]))
    return around(jit, lambda y, x: F.binary_cross_entropy(x, y), good, bad)


def result_that_nobody_reads(jit):
    def pick(x, i):
        x[i]
        return x

    good, bad = (tj.ones(3), tj.tensor([2])), (tj.ones(3), tj.tensor([3]))
    return around(jit, pick, good, bad)


def the_first_of_two_failures(jit):
    def pick(x, i, j):
        first = x.gather(0, i)
        return first + x[j]

    good = (tj.ones(3), tj.tensor([2]), tj.tensor([2]))
    return around(jit, pick, good, (tj.ones(3), tj.tensor([3]), tj.tensor([4])))


def mask_of_another_shape(jit):
    good, bad = (tj.ones(3), tj.ones(3) > 0), (tj.ones(3), tj.ones(2) > 0)
    return around(jit, lambda x, m: x[m].sum(), good, bad)


def integers_divided_by_zero(jit):
    good, bad = (tj.tensor([7, 8]), tj.tensor([2, 3])), (tj.tensor([7, 8]), tj.tensor([2, 0]))
    return around(jit, lambda a, b: a // b, good, bad)


def remainder_by_zero(jit):
    good, bad = (tj.tensor([7, 8]), tj.tensor([2, 3])), (tj.tensor([7, 8]), tj.tensor([0, 3]))
    return around(jit, lambda a, b: a % b, good, bad)


def python_float_divided_by_zero(jit):
    return around(jit, lambda x, s: x * (1.0 / s), (tj.ones(2), 4.0), (tj.ones(2), 0.0))


def negative_integer_power(jit):
    good, bad = (tj.tensor([2, 3]), 2), (tj.tensor([2, 3]), -1)
    return around(jit, lambda x, n: x**n, good, bad)


def reshape_to_another_count(jit):
    return around(jit, lambda x: x.reshape(2, 3), (tj.ones(6),), (tj.ones(8),))


def view_of_scattered_memory(jit):
    return around(jit, lambda x: x.view(6), (tj.ones(2, 3),), (tj.ones(3, 2).t(),))


def dimension_that_is_not_there(jit):
    return around(jit, lambda x, d: x.sum(d), (tj.ones(2, 2), 1), (tj.ones(2, 2), 2))


def dimension_of_smaller_input(jit):
    return around(jit, lambda x: x.softmax(1), (tj.ones(2, 2),), (tj.ones(2),))


def keyword_no_op_has(jit):
    def total(x, **options):
        return x.sum(**options)

    box = Box(calls=0)

    @jit
    def f(x, wrong):
        box.calls = box.calls + 1.0
        options = {"dims": 0} if wrong else {"dim": 0}
        return total(x, **options)

    return Failure(lambda: f(tj.ones(2), False), lambda: f(tj.ones(2), True), lambda: [box.calls])


def numel_beyond_64_bits(jit):
    def fill(x, n):
        return x + tj.zeros(n, n)

    return around(jit, fill, (tj.ones(1), 2), (tj.ones(1), 2**32))


def memory_that_is_not_there(jit):
    def fill(x, n):
        return x + tj.ones(n)

    return around(jit, fill, (tj.ones(1), 4), (tj.ones(1), 2**50))


def device_that_is_not_there(jit):
    good, bad = (tj.ones(2), "cpu"), (tj.ones(2), "cuda:99")
    return around(jit, lambda x, where: x.to(where), good, bad)


def memory_that_may_not_be_written(jit):
    def write(x):
        return x.add_(1)

    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    return around(jit, write, (tj.zeros(2),), (tj.from_numpy(frozen),))


def write_to_expanded_memory(jit):
    def write(x):
        return x.add_(tj.ones(2))

    return around(jit, write, (tj.zeros(2),), (tj.zeros(1).expand(2),))


def options_of_dropout(jit):
    return around(jit, lambda x, p: F.dropout(x, p), (tj.ones(4), 0.5), (tj.ones(4), 1.5))


def padding_that_takes_more_than_there_is(jit):
    return around(jit, lambda x, n: F.pad(x, (n, 4)), (tj.ones(3), -2), (tj.ones(3), -4))


def padding_that_takes_more_of_a_smaller_input(jit):
    return around(jit, lambda x: F.pad(x, (2, -2)), (tj.ones(3),), (tj.ones(1),))


PROGRAMS = [
    shapes_that_do_not_broadcast,
    masks_that_do_not_broadcast,
    sizes_of_a_product,
    operands_that_cannot_be_joined,
    dtype_of_a_write,
    dtype_of_a_product,
    dtype_of_an_index,
    a_text_as_operand,
    index_out_of_range,
    index_out_of_range_below,
    index_out_of_range_for_another_size,
    computed_index_out_of_range,
    index_written_before_it_is_used,
    number_index_out_of_range,
    embedding_out_of_range,
    index_select_out_of_range,
    gather_out_of_range,
    scatter_out_of_range,
    index_write_out_of_range,
    class_out_of_range,
    class_out_of_range_with_weights,
    class_that_has_no_place,
    probability_above_one,
    result_that_nobody_reads,
    the_first_of_two_failures,
    mask_of_another_shape,
    integers_divided_by_zero,
    remainder_by_zero,
    python_float_divided_by_zero,
    negative_integer_power,
    reshape_to_another_count,
    view_of_scattered_memory,
    dimension_that_is_not_there,
    dimension_of_smaller_input,
    keyword_no_op_has,
    numel_beyond_64_bits,
    memory_that_is_not_there,
    device_that_is_not_there,
    memory_that_may_not_be_written,
    write_to_expanded_memory,
    options_of_dropout,
    padding_that_takes_more_than_there_is,
    padding_that_takes_more_of_a_smaller_input,
]
