"""The older names of mixed precision on the CPU; PyTorch's `torch.cpu.amp`."""

from __future__ import annotations

import warnings

from tracejit import amp
from tracejit.ops.types import bfloat16, dtype


def _deprecated(name: str) -> None:
    warnings.warn(f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use "
                  f"`torch.amp.{name}('cpu', args...)` instead.", FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """`amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True):
        _deprecated("autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cpu", ...)`."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale=init_scale, growth_factor=growth_factor,
                         backoff_factor=backoff_factor, growth_interval=growth_interval,
                         enabled=enabled)
