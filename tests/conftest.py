"""Hooks of pytest for all tests."""

from __future__ import annotations

import os
import re
from pathlib import Path

os.environ.setdefault("TRACEJIT_TRACEBACKS", "full")  # a failing test shows where we failed

import pytest

from tests.shares import mark_the_rest

WHOLLY_ORACLE = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.oracle", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files whose tests would all be deselected: making their cases takes long."""
    asked = config.getoption("-m")
    if collection_path.suffix != ".py" or "oracle" not in asked:
        return None
    text = collection_path.read_text()
    if "not oracle" in asked:
        return True if WHOLLY_ORACLE.search(text) else None
    return None if "oracle" in text else True


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_the_rest(items)
