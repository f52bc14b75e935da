"""Parts of spread tensors; PyTorch's `torch.distributed.tensor._utils`: refused by name."""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.distributed.errors import refuse


def compute_local_shape_and_global_offset(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: no tensor is spread."""
    refuse("compute_local_shape_and_global_offset")
