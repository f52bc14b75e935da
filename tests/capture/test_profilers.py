"""Profilers of the user's listen again after every recording, watched or not (C7)."""

from __future__ import annotations

import cProfile
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tracejit as tj

CALLS = 6
ROOT = Path(__file__).resolve().parents[2]


def seen_by_cprofile(run):
    with cProfile.Profile() as profile:
        run()
    return {getattr(entry.code, "co_name", None): entry.callcount for entry in profile.getstats()}


def seen_by_function(run):
    counts = {}

    def count(frame, event, argument):
        if event == "call":
            counts[frame.f_code.co_name] = counts.get(frame.f_code.co_name, 0) + 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counts


@pytest.mark.parametrize("seen", [seen_by_cprofile, seen_by_function])
def test_profilers_listen_after_each_recording(seen):
    def chosen(x, k):
        n = k
        if x.sum() > 0:
            n = k + 1
        return x * n

    def after():
        return captured.report().breaks

    captured, results = tj.script(chosen), []

    def run():
        for _ in range(CALLS):  # a number that no program holds: each call is recorded in parts
            results.append(captured(tj.ones(2), 2**63))
            after()

    assert seen(run)["after"] == CALLS
    assert [y.tolist() for y in results] == [chosen(tj.ones(2), 2**63).tolist()] * CALLS
    assert after()


# Nothing is collected meanwhile: Python 3.11's `profile` writes "Bad call" for any finalizer that
# the collector runs as a frame begins, since the frame's own event comes after it.
SCRIPT = """
import gc
import tracejit as tj

gc.disable()

state = []

@tj.script
def chosen(x, n):
    if x.sum() > 0:      # a branch of the program
        x = x + n
    if x.sum() > 1:      # its side has an effect: the trial of it is refused
        state.append(n)
    for row in x:
        x = x * 2 + row
    return x

@tj.script
def failing(x):
    if x.sum() > 100:
        raise ValueError("large")
    return float(x.sum()) + x

for k in range(3):
    print(chosen(tj.ones(3), k).tolist())
    try:
        print(failing(tj.ones(2) * 10 ** k).tolist())
    except ValueError as error:
        print(error)
print(state)
"""


def output(tmp_path, *command):
    script = tmp_path / "profiled.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command, str(script)], env=environment, cwd=tmp_path,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0 and "Error" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.full
def test_pythons_profilers_as_commands(tmp_path):
    plain = output(tmp_path)
    for module in ("profile", "cProfile"):
        found = output(tmp_path, "-m", module)
        assert found.startswith(plain) and "function calls" in found, module


def watched_by_trace(run):
    lines = []

    def trace(frame, event, argument):
        lines.append((event, frame.f_code.co_name))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    return lines


def watched_in_a_thread(run):
    names = []
    threading.setprofile(lambda frame, event, argument: names.append((event, frame.f_code.co_name)))
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)
    return names


def watched_by_monitoring(run):
    monitoring, names = sys.monitoring, []
    monitoring.use_tool_id(monitoring.PROFILER_ID, "test")
    start = monitoring.events.PY_START
    monitoring.register_callback(
        monitoring.PROFILER_ID, start, lambda code, at: names.append(("call", code.co_name))
    )
    monitoring.set_events(monitoring.PROFILER_ID, start)
    try:
        run()
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)
    return names


@pytest.mark.parametrize("watched", [
    watched_by_trace, watched_in_a_thread,
    pytest.param(watched_by_monitoring, marks=pytest.mark.skipif(
        not hasattr(sys, "monitoring"), reason="Python 3.12 has sys.monitoring")),
])  # fmt: skip
def test_debuggers_and_other_watchers_keep_watching(watched):
    def work(x, k):
        if x.sum() > k:
            x = x * 2
        for row in x:
            x = x + row
        return x

    def after():
        return 1

    captured, results = tj.script(work), []

    def run():
        for k in range(4):
            results.append(captured(tj.ones(2), k).tolist())
            after()

    assert watched(run).count(("call", "after")) == 4
    assert results == [work(tj.ones(2), k).tolist() for k in range(4)]
    assert captured.report().compiles >= 1


def test_a_profile_function_sees_calls_and_returns_in_pairs():
    def work(x, k):
        if x.sum() > k:
            x = x * 2
        return float(x.sum()) + x

    captured, depth, lowest = tj.script(work), [0], [0]

    def hook(frame, event, argument):
        depth[0] += {"call": 1, "c_call": 1}.get(event, -1)
        lowest[0] = min(lowest[0], depth[0])

    def run():
        for k in range(4):
            captured(tj.ones(2), k)

    sys.setprofile(hook)
    try:
        run()
    finally:
        sys.setprofile(None)
    assert (depth[0], lowest[0]) == (1, 0), "the call of setprofile has no end"
