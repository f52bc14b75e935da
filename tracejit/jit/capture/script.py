"""`@script`: functions in the form that shows their control flow to the tracer.

In: a user's function. Out: the rewritten one, bound to the runtime of `control.py`. Called by the
jit for what is decorated, and by `calls.py` for what it calls.
"""

from __future__ import annotations

from typing import Any

from tracejit.jit.capture import control
from tracejit.jit.capture.source import convert


def rewritten(function: Any) -> Any:
    """Return the function with its control flow in sight; itself where its source cannot be had."""
    return convert(function, control)
