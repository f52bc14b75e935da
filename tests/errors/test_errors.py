"""Each program of the tables gives its messages, and they point at its marked lines."""

from __future__ import annotations

import importlib

import pytest

from tests.errors.entries import ENTRIES

FAMILIES = ("backward", "cache", "capture", "collectives", "config", "control_flow", "corners",
            "guards", "loops", "names", "runtime", "saving", "unread")
for family in FAMILIES:
    importlib.import_module(f"tests.errors.{family}")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_program_gives_its_messages(entry):
    entry.check(entry)
