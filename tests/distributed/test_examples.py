"""Examples of docstrings whose results are the same in any number of processes, run in two.

The run of all docstrings has one process, which has nobody to send to.
"""

from __future__ import annotations

import doctest
import inspect

import pytest

import tracejit.distributed as dist

SAME_IN_ANY_NUMBER = (
    "P2POp", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "irecv", "isend",
    "monitored_barrier", "recv", "recv_object_list", "send", "send_object_list",
)  # fmt: skip


def run_example(text: str) -> tuple[int, str]:
    """Run an example in the group that is there; return the number of its parts, and failures."""
    parts = doctest.DocTestParser().get_doctest(text, {}, "example", None, None)
    parts.examples = [one for one in parts.examples if "process_group(" not in one.source]
    told: list[str] = []
    doctest.DocTestRunner().run(parts, out=told.append)
    return len(parts.examples), "".join(told)


@pytest.mark.parametrize("name", SAME_IN_ANY_NUMBER)
def test_example_runs_in_two_processes(two, name):
    text = inspect.getdoc(getattr(dist, name))
    for count, told in two(run_example, text):
        assert count > 1
        assert told == ""


def test_a_wrong_example_is_noticed(two):
    found = two(run_example, ">>> import tracejit.distributed as dist\n>>> dist.get_rank()\n0\n")
    assert [bool(told) for _, told in found] == [False, True]
