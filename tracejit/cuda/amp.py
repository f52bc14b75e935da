"""Older names of mixed precision on CUDA devices; PyTorch's `torch.cuda.amp`."""

from __future__ import annotations

from typing import Any

from tracejit import amp
from tracejit.amp import older_names
from tracejit.core.ops.types import dtype, float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(older_names.autocast):
    """`amp.autocast("cuda", ...)`."""

    place, half = "cuda", float16


class GradScaler(older_names.GradScaler):
    """`amp.GradScaler("cuda", ...)`."""

    place = "cuda"


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """`amp.custom_fwd` for CUDA devices."""
    older_names.warn_of("cuda", "custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`amp.custom_bwd` for CUDA devices."""
    older_names.warn_of("cuda", "custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
