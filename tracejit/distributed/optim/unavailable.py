"""Optimizers of PyTorch's that are refused when they are made.

In: nothing. Out: classes that programs may ask of an optimizer.
"""

from __future__ import annotations

from typing import Any

from tracejit.distributed.errors import refuse
from tracejit.optim import Optimizer


class DistributedOptimizer(Optimizer):
    """Optimizer of parameters elsewhere: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("DistributedOptimizer")


class PostLocalSGDOptimizer(Optimizer):
    """Optimizer that averages over processes: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("PostLocalSGDOptimizer")
