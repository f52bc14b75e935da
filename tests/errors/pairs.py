"""Pairs of programs: one that breaks, and the same with the hint of that break applied.

In: functions with the decorators `before` and `after`. Out: `PAIRS`. Called by the tables of pairs
and by `test_hints.py`.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tracejit as tj
from tests.errors.control_flow import data
from tests.errors.entries import Capturing, plain
from tracejit import config

PAIRS: list[Pair] = []


@dataclass(eq=False)
class Pair:
    """Programs before and after a hint is applied.

    reason   part of the reason of the break
    given    makes their arguments
    loop     the reason is that of a loop that stays Python
    outside  the programs take `jit` first, and capture a part of themselves
    """

    reason: str
    given: Callable[[], tuple]
    loop: bool
    outside: bool
    before: Callable[..., Any]
    after: Callable[..., Any]

    def run(self, program: Callable, jit: Callable) -> Any:
        """Call a program, captured by `jit`, twice; return the second result."""
        tj.manual_seed(0)
        function = (lambda *args: program(jit, *args)) if self.outside else jit(program)
        with contextlib.redirect_stdout(io.StringIO()):
            function(*self.given())
            return function(*self.given())


def before(reason: str, given: Callable[[], tuple] = lambda: (data(),), *, loop: bool = False,
           outside: bool = False) -> Callable:
    """Register the first program of a pair."""

    def register(program: Callable) -> Callable:
        PAIRS.append(Pair(reason, given, loop, outside, program, program))
        return program

    return register


def after(program: Callable) -> Callable:
    """Register the second program of the pair that was begun last."""
    PAIRS[-1].after = program
    return program


def hints_of(pair: Pair) -> list[tuple[str, str]]:
    """Return reasons and hints of the breaks, or of the unrolled loops, of the first program."""
    jit = Capturing(tj.script)
    with config.override(mode="graph"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if pair.loop:
            return _logged(pair, jit)
        with contextlib.suppress(Exception):
            pair.run(pair.before, jit)
    return [(found.reason, found.hint) for found in jit.reported("breaks")]


def _logged(pair: Pair, jit: Callable) -> list[tuple[str, str]]:
    written = io.StringIO()
    with config.override(logs="breaks"), contextlib.redirect_stderr(written):
        pair.run(pair.before, jit)
    lines = [line for line in written.getvalue().splitlines() if "runs as Python: " in line]
    pieces = [line.partition("runs as Python: ")[2].partition("; hint: ") for line in lines]
    return [(reason.split(" (at ")[0], hint) for reason, _, hint in pieces]


def check(pair: Pair) -> str:
    """Check a pair: the hint of the break, no break after it, the same result. Return the hint."""
    given = hints_of(pair)
    reason, hint = next((found for found in given if pair.reason in found[0]), ("", ""))
    assert reason, f"{pair.reason!r} is not among {given}"
    assert hint, f"no hint for {reason!r}"
    jit = Capturing(tj.script)
    written = io.StringIO()
    with config.override(mode="graph", logs="breaks"), contextlib.redirect_stderr(written):
        result = pair.run(pair.after, jit)
    assert jit.reported("breaks") == []
    assert not pair.loop or "runs as Python" not in written.getvalue(), written.getvalue()
    assert same(result, pair.run(pair.before, plain)), (result, pair.run(pair.before, plain))
    return hint


def same(one: Any, other: Any) -> bool:
    """Return True if two results hold the same numbers."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    numbers = [x.tolist() if hasattr(x, "tolist") else x for x in (one, other)]
    return _close(*numbers)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return abs(one - other) <= 1e-5 * max(1.0, abs(one))
    return bool(one == other)
