"""Loops that carry state are one node of the graph, not their iterations one by one."""

from __future__ import annotations

from itertools import product

import pytest

import tracejit as tj
from tests.capture import (
    programs_appended,
    programs_carried,
    programs_items,
    programs_local_functions,
)
from tests.capture.program_table import Counting
from tracejit.core.eager.conditional_grad import Condition, both, either, if_true

# Programs whose loops have iterations that a list or variable tells from copies of them.
UNROLLED = {
    # they read the row of the last iteration, a view of the caller's tensor
    "read_behind_the_loop", "read_by_a_closure", "read_after_an_error",
    # elements that share memory with more than the variable of their iteration
    "rows_that_overlap", "state_written_in_place", "state_written_after_the_append",
    "state_that_never_changes", "state_handed_on", "part_of_a_state_handed_on",
    "new_and_old_of_one_variable", "column_of_a_state", "detached_part", "part_without_gradients",
    "part_of_a_tensor_of_the_iteration", "row_of_the_input",
    # functions with effects, and those of an iteration that are called behind it
    "function_that_sets_a_variable", "function_made_in_each_iteration",
    "function_kept_behind_the_loop", "function_with_an_effect", "function_that_looks_at_its_frame",
    # items whose keys vary, or that a branch writes; lists that change their length
    "key_that_varies", "key_by_the_index", "key_that_is_counted", "item_deleted", "list_resized",
    "list_replaced_in_the_body", "items_until_a_break", "item_under_a_condition", "gradient_within",
    # the second loop reads the list by its index
    "elements_written_behind_the_loop",
}  # fmt: skip
PROGRAMS = [*programs_carried.PROGRAMS, *programs_appended.PROGRAMS, *programs_items.PROGRAMS,
            *programs_local_functions.PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_no_loop_is_unrolled(program):
    counting = Counting(lambda f, **options: tj.script(f, mode="graph", **options))
    program(counting)
    unrolled = [loop for f in counting.made for loop in f.report().unrolled]
    assert bool(unrolled) is (program.__name__ in UNROLLED), unrolled


def test_one_program_serves_all_lengths():
    @tj.script(mode="graph")
    def f(x):
        total = 0.0
        for row in x:
            total = total + (row * row).sum()
        return total

    for n in (20, 33, 2, 5000, 7):
        x = tj.ones(n, 3, requires_grad=True)
        y = f(x)
        y.backward()
        assert y.item() == 3 * n and x.grad.tolist() == [[2.0] * 3] * n
    assert f.report().compiles == 1
    assert f.graphs["captured"].count("for_loop(") == 1


class CountingFlag:
    """Stands for a flag: has a truth, and counts the ops that formulas make of it."""

    ops = 0

    def __init__(self, truth: bool):
        self.truth = truth

    def _made(self, truth: bool) -> CountingFlag:
        CountingFlag.ops += 1
        return CountingFlag(truth)

    def __or__(self, other: CountingFlag) -> CountingFlag:
        return self._made(self.truth or other.truth)

    def __and__(self, other: CountingFlag) -> CountingFlag:
        return self._made(self.truth and other.truth)

    def __invert__(self) -> CountingFlag:
        return self._made(not self.truth)


@pytest.mark.parametrize("join", [either, both])
def test_that_gradients_arrive_takes_one_op_a_flag(join):
    for values in product((False, True), repeat=4):
        flags = [CountingFlag(value) for value in values]
        CountingFlag.ops = 0
        found = join(*map(if_true, flags)).tensor()
        assert found.truth is (any if join is either else all)(values)
        assert CountingFlag.ops == len(flags) - 1


def test_every_formula_over_three_flags():
    rows = list(product((False, True), repeat=3))
    for chosen in range(1, (1 << len(rows)) - 1):
        holds = frozenset(row for k, row in enumerate(rows) if chosen >> k & 1)
        for values in rows:
            found = Condition(tuple(map(CountingFlag, values)), holds).tensor()
            assert found.truth is (values in holds)
