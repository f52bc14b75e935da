"""Hints of breaks and of loops that stay Python, applied: no break is left, the result stays."""

from __future__ import annotations

import functools
import importlib

import pytest

from tests.errors.apart import outcomes
from tests.errors.entries import ENTRIES
from tests.errors.pairs import PAIRS, check
from tests.errors.test_errors import FAMILIES
from tracejit.jit.capture import hints
from tracejit.jit.capture.hints import hint_for

TABLES = ("pairs_branches", "pairs_calls", "pairs_loops")
for table in TABLES:
    importlib.import_module(f"tests.errors.{table}")

# The reason names an error of the user's own, which no other way of writing mends.
NO_CURE = ("its body raises ",)


cured = functools.cache(check)  # Pair -> the hint that it shows


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.reason)
def test_hint_cures_its_break(pair):
    cured(pair)


def test_hints_between_processes_cure_their_breaks():
    assert {name: text for name, text in outcomes().items() if name != "hints" and text} == {}
    assert len(outcomes()["hints"]) == 3


def test_every_hint_is_applied():
    given = {text.partition("\nhint: ")[2] for entry in ENTRIES if _breaks(entry)
             for text in entry.texts} - {""}
    known = {hint for hint, _ in hints.CURES} | given
    assert known - set(map(cured, PAIRS)) - set(outcomes()["hints"]) == set()


def test_every_break_has_a_hint():
    assert FAMILIES  # they are imported
    without = [text for entry in ENTRIES if _breaks(entry) for text in entry.texts
               if "\nhint: " not in text and not hint_for(text)]
    assert [text for text in without if not any(kind in text for kind in NO_CURE)] == []


def _breaks(entry):
    return entry.check.__qualname__.startswith(("breaks.", "logged."))
