"""Tensors spread over processes; PyTorch's `torch.distributed.tensor`: no tensor here is one.

In: nothing. Out: a class that programs may ask of tensors.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed.errors import refuse


class DTensor:
    """Tensor spread over processes: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("DTensor")
