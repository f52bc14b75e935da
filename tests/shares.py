"""What `make test` and its kind take a sample of: one in so many, always the same ones.

In: the name of a case, and one of how many runs. Out: its marks. `make test-full` runs all.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest


def share(name: str, one_in: int) -> list[Any]:
    """The marks of a case of which one in so many is for every run."""
    return [pytest.mark.full] if crc32(name.encode()) % one_in else []
