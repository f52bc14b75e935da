"""No result depends on which size came first."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.runtime.sizes_in_order import programs


def results(order, step):
    command = [sys.executable, "-m", "tests.runtime.sizes_in_order", order, str(step)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("step", [25, pytest.param(1, marks=pytest.mark.full)])
def test_bits_do_not_depend_on_which_size_came_first(step):
    up, down = results("up", step), results("down", step)
    assert up.keys() == down.keys() and len(up) == 4 * len(programs()[::step])
    assert [name for name in up if up[name] != down[name]] == []


def test_there_are_200_programs():
    assert len(programs()) >= 200
