"""Identity of a variable that is one of two tensors: `if c: y = x * 2 else: y = x` in a recording.

In: a tensor of the program's. Out: the tensor that has its gradient, history, hooks, attributes and
memory. Called wherever one of these is read or changed. Ops do not call it: elements alone matter
to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.views import canonical


def resolve_identity(x: Any, outputs: Sequence[Any] | None = None) -> Any:
    """Return the very tensor that x is. If values decide that, the tracer computes them now.

    `outputs`: resolve x only if gradients of these depend on it.
    """
    if active.tracer is not None:
        active.tracer.identify(x, outputs)
    return x if x._view is None else canonical(x)
