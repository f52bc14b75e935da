"""Older names of mixed precision, with the device in their place: `cuda.amp.autocast`.

In: a device, and the dtype of half precision there. Out: bases of the classes in `cuda/amp.py` and
`cpu/amp.py`. They warn, and are `tracejit.amp`'s for that device.
"""

from __future__ import annotations

import warnings

from tracejit import amp
from tracejit.core.ops.types import dtype


def warn_of(device: str, name: str) -> None:
    """Warn of an older name, for the caller's caller."""
    warnings.warn(f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
                  f"`torch.amp.{name}('{device}', args...)` instead.", FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """`amp.autocast(place, ...)`; `half` is the dtype unless another is given."""

    place: str
    half: dtype

    def __init__(self, enabled: bool = True, dtype: dtype | None = None,
                 cache_enabled: bool = True):
        warn_of(self.place, "autocast")
        super().__init__(self.place, enabled=enabled, dtype=dtype or self.half,
                         cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`amp.GradScaler(place, ...)`."""

    place: str

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        warn_of(self.place, "GradScaler")
        super().__init__(self.place, init_scale=init_scale, growth_factor=growth_factor,
                         backoff_factor=backoff_factor, growth_interval=growth_interval,
                         enabled=enabled)
