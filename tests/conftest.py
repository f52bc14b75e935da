"""Hooks of pytest for all tests."""

from __future__ import annotations

import os

os.environ.setdefault("TRACEJIT_TRACEBACKS", "full")  # a failing test shows where we failed

import pytest

from tests.shares import mark_the_rest


@pytest.hookimpl(tryfirst=True)  # before cases are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_the_rest(items)
