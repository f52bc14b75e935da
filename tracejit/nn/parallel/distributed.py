"""Modules in several processes: refused when they are made, for there is one process."""

from __future__ import annotations

from typing import Any

from tracejit.distributed import refuse
from tracejit.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Refused with NotImplementedError: there is one process."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        refuse("DistributedDataParallel")
