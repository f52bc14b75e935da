"""Identity of a variable that is one of two tensors: `if c: y = x * 2 else: y = x` in a recording.

In: a tensor of the program's. Out: the tensor whose gradient, history, hooks, attributes and memory
it has. Called wherever one of these is read or changed; what an op computes does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.views import canonical


def resolve_identity(x: Any, outputs: Sequence[Any] | None = None) -> Any:
    """Return the very tensor that x is; where values decide it, a recording computes them now.

    `outputs`: only if gradients of these depend on it.
    """
    if active.tracer is not None:
        active.tracer.identify(x, outputs)
    return x if x._view is None else canonical(x)
