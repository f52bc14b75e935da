"""Ranks that tests of one file share. They end with it: other tests count the processes left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.distributed.ranks import Ranks


@pytest.fixture(scope="module")
def two() -> Iterator[Ranks]:
    """Two processes in one group."""
    ranks = Ranks(2)
    yield ranks
    ranks.stop()


@pytest.fixture(scope="module")
def four() -> Iterator[Ranks]:
    """Four processes in one group: more than there may be cores."""
    ranks = Ranks(4)
    yield ranks
    ranks.stop()


@pytest.fixture(scope="module")
def with_gloo() -> Iterator[Ranks]:
    """Two processes in one group, and in one of PyTorch's over gloo."""
    pytest.importorskip("torch")
    ranks = Ranks(2, with_torch=True)
    yield ranks
    ranks.stop()
