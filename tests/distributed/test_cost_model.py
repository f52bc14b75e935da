"""Tests of the cost model: its parts, and limits that can be worked out by hand."""

import doctest

import pytest

from bench import cost_model
from bench.cost_model import Link, Step, step_seconds

FAST = Link(0.0, float("inf"))


def test_its_examples():
    assert doctest.testmod(cost_model).failed == 0


def test_a_link_is_found_again():
    link = Link(7e-6, 3e9)
    points = [(n, link.all_reduce(n, 2)) for n in (4096, 2**26)]
    found = Link.measured(*points)
    assert found.latency == pytest.approx(7e-6) and found.bandwidth == pytest.approx(3e9)


@pytest.mark.parametrize("processes, rounds", [(2, 1), (3, 2), (8, 3), (1024, 10)])
def test_few_bytes_cost_a_latency_a_round(processes, rounds):
    assert Link(1e-5, 1e12).all_reduce(8, processes) == pytest.approx(rounds * 1e-5, rel=1e-3)


@pytest.mark.parametrize("processes", [2, 64, 1024])
def test_many_bytes_cross_at_most_twice(processes):
    seconds = Link(0.0, 1e9).all_reduce(1e9, processes)
    assert 1.0 <= seconds <= 2.0


def test_a_step_without_communication_costs_what_one_process_takes():
    assert step_seconds(Step(1.0, 2.0, 0.5, 10**9), FAST, FAST, 1024) == pytest.approx(3.5)


def test_hidden_communication_leaves_the_last_bucket():
    link, count = Link(0.0, 1e9), 4
    step = Step(1.0, 10.0, 0.0, count * cost_model.BUCKET)
    last = link.all_reduce(cost_model.BUCKET, 2)
    assert step_seconds(step, link, FAST, 2) == pytest.approx(11 + last)
    shared = Step(1.0, 10.0, 0.0, count * cost_model.BUCKET, hidden=0.0)
    assert step_seconds(shared, link, FAST, 2) == pytest.approx(11 + count * last)


def test_a_slow_network_hides_nothing_beyond_the_backward():
    step = Step(1.0, 1.0, 0.0, 8 * cost_model.BUCKET)
    slow = Link(0.0, 1e6)
    travels = slow.all_reduce(cost_model.BUCKET, 4) * 8
    seconds = step_seconds(step, FAST, slow, 4, per_host=1)
    assert 1.0 + travels <= seconds <= 2.0 + travels
