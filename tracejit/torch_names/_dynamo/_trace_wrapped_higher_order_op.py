"""PyTorch's `torch._dynamo._trace_wrapped_higher_order_op`, as far as masks of attention name it.

In: nothing. Out: a context that changes nothing.
"""

from __future__ import annotations

from typing import Any


class TransformGetItemToIndex:
    """Context in which indexing by 0-dim tensors works under `vmap`: it does without, too.

    >>> with TransformGetItemToIndex():
    ...     pass
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass
