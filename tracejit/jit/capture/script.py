"""Functions of `@script`, rewritten so that the tracer sees their control flow.

In: a user's function. Out: the rewritten one, bound to the runtime of `control.py`. Called by
`compiled_function` for decorated functions, and by `calls.py`, as `Tracer.adapt`, for those they
call.
"""

from __future__ import annotations

from typing import Any

from tracejit.jit.capture import control
from tracejit.jit.capture.source import convert


def rewritten(function: Any) -> Any:
    """Return the function with its control flow in sight; the function itself if its source cannot
    be read."""
    return convert(function, control)
