"""Interpreters that the package cannot run on are refused in one line when it is imported."""

import subprocess
import sys

import pytest

BUILDS = {"built without the lock": "sys.abiflags = 't'",
          "run without the lock": "sys._is_gil_enabled = lambda: False"}


def imported(before):
    code = f"import sys; {before}; import tracejit; print('imported')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("build", BUILDS)
def test_free_threaded_builds_are_told_what_is_missing(build):
    found = imported(BUILDS[build])
    assert found.returncode == 1
    last = found.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: tracejit needs CPython with its global interpreter lock")


def test_builds_with_the_lock_are_taken():
    assert imported("sys._is_gil_enabled = lambda: True").stdout == "imported\n"
