"""A check that native functions keep counts of references and memory level.

In: a function that calls them so many times, and objects whose references count. Called by the
tests of native eager functions.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any


def assert_level(run: Callable[[int], Any], watched: Sequence[Any]) -> None:
    """Run 500 times. Fail if references to the objects, or the memory in use, grow with that."""
    run(50)
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    tracemalloc.start()
    run(10)
    start = tracemalloc.get_traced_memory()[0]
    run(500)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    moved = [sys.getrefcount(x) - count for x, count in zip(watched, before)]
    assert all(abs(count) < 200 for count in moved), moved  # a call that leaks makes it 500
    assert grown < 8000
