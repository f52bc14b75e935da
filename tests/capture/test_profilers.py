"""Profilers of the user's listen again after every recording, watched or not (C7)."""

from __future__ import annotations

import cProfile
import sys

import pytest

import tracejit as tj

CALLS = 6


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
