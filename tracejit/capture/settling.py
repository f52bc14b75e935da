"""Symbolic sizes and runtime floats of recordings that are over, as the plain numbers they were.

In: what a tape node, a view or an op call still holds. Out: the same, with what no longer belongs
to the recording at work replaced by its value in the call that made it. Called by the recorder,
and by the eager tape through `eager.recording.settled`.
"""

from __future__ import annotations

from typing import Any

from tracejit.capture.scalars import RuntimeNumber
from tracejit.eager import recording
from tracejit.eager.recording import active
from tracejit.ir.sizes import Size
from tracejit.ops.types import TensorType


def settled(x: Any) -> Any:
    """`x` with the numbers of ended recordings made plain; no guard is recorded."""
    kind = type(x)
    if kind is Size:
        recorder: Any = active.recorder
        return x if recorder is not None and recorder.graph.scope is x.scope else x.hint
    if issubclass(kind, RuntimeNumber):
        recorder = active.recorder
        return x if recorder is not None and recorder.root is x.recorder else x.hint
    if kind is tuple or kind is list:
        return kind([settled(y) for y in x])
    if kind is dict:
        return {k: settled(y) for k, y in x.items()}
    if kind is TensorType:
        return TensorType(x.dtype, settled(x.shape), x.device)
    return x


recording.install_settled(settled)
