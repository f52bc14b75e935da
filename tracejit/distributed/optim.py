"""Optimizers of several processes; PyTorch's `torch.distributed.optim`: refused when they are made.

In: nothing. Out: classes that programs may ask of an optimizer.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed import refuse
from tracejit.optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer):
    """Optimizer whose state is spread over processes: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse(type(self).__name__)


class DistributedOptimizer(ZeroRedundancyOptimizer):
    """Optimizer of parameters elsewhere: NotImplementedError when it is made."""


class PostLocalSGDOptimizer(ZeroRedundancyOptimizer):
    """Optimizer that averages over processes: NotImplementedError when it is made."""
