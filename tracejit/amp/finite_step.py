"""Step that is made if a value says so.

In: a bool tensor, a function and its arguments. Out: the function's result, or None. Called by
`GradScaler.step`. Captured, this file is read like the user's, so that its branch is a region.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def step_where(finite: Any, step: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """Call `step(*args, **kwargs)` if the tensor is true."""
    if finite:
        return step(*args, **kwargs)
    return None
