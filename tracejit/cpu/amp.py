"""Older names of mixed precision on the CPU; PyTorch's `torch.cpu.amp`."""

from __future__ import annotations

from tracejit.amp import older_names
from tracejit.core.ops.types import bfloat16


class autocast(older_names.autocast):
    """`amp.autocast("cpu", ...)`."""

    place, half = "cpu", bfloat16


class GradScaler(older_names.GradScaler):
    """`amp.GradScaler("cpu", ...)`."""

    place = "cpu"
