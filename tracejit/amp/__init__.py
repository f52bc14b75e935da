"""Mixed precision: `autocast` and `GradScaler`; PyTorch's `torch.amp`."""

from tracejit.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from tracejit.amp.grad_scaler import GradScaler
from tracejit.core.ops import sealing as _sealing

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_sealing.seal_all(globals())
