"""Tensors handed to other libraries; PyTorch's `torch.utils.dlpack`.

In: a tensor, or another library's object. Out: a capsule, or a tensor, over the same memory.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.construction import from_dlpack  # noqa: F401
from tracejit.core.ops import sealing as _sealing


def to_dlpack(tensor: Any) -> Any:
    """Return a capsule that another library's `from_dlpack` takes, once.

    >>> import tracejit
    >>> type(to_dlpack(tracejit.ones(2))).__name__
    'PyCapsule'
    """
    return tensor.detach().__dlpack__()


_sealing.seal_all(globals())
