"""Checks of result sizes before results are computed.

In: the types of an op's results. Out: nothing, or PyTorch's errors. Called by the dispatcher.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.memory.limits import OutOfMemory, refusal
from tracejit.core.ops import shapes
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import check_numel, check_storage
from tracejit.core.ops.types import TensorType


def check_memory(types: Any) -> None:
    """Raise an error for a result that no memory holds, before it is computed."""
    for kind in (types,) if type(types) is TensorType else types:
        shapes.check_memory(kind.shape, kind.dtype.itemsize)


def out_of_memory(types: Any, error: MemoryError) -> OutOfMemory:
    """Make the error for results that could not be allocated. If values decide their sizes, it has
    the array library's text."""
    kinds = (types,) if type(types) is TensorType else types
    if any(None in kind.shape for kind in kinds):
        return OutOfMemory(f"DefaultCPUAllocator: can't allocate memory: {error}")
    return refusal(sum(math.prod(kind.shape) * kind.dtype.itemsize for kind in kinds))


def check_counts(op: Op, types: Any) -> None:
    """Raise RuntimeError for results with more elements than can be counted."""
    for kind in (types,) if type(types) is TensorType else types:
        if None in kind.shape:
            continue  # values decide how many
        if op.views:
            check_numel(kind.shape)
        else:
            check_storage(kind.shape, kind.dtype.itemsize)
