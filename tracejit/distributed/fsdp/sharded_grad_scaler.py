"""Loss scaling of FSDP; PyTorch's `ShardedGradScaler`: refused when it is made.

In: nothing. Out: a class that packages ask of scalers.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed.unavailable import refused_class

__all__ = ["ShardedGradScaler"]

ShardedGradScaler: Any = refused_class("ShardedGradScaler", "Loss scaling of FSDP")
