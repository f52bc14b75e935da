"""Step that is made if a value says so.

In: a bool tensor, a function and its arguments. Out: what the function returns, or None. Called by
`GradScaler.step`. Captured, this file is read like the user's, so that its branch is a region.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def step_where(finite: Any, step: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """`step(*args, **kwargs)` if the tensor is true."""
    if finite:
        return step(*args, **kwargs)
    return None
