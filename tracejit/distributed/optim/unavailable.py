"""Optimizers of PyTorch's that are refused when they are made.

In: nothing. Out: classes that programs may ask of an optimizer.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.distributed.errors import refuse
from tracejit.optim import Optimizer


class DistributedOptimizer(Optimizer):
    """Optimizer of parameters elsewhere: NotImplementedError when it is made.

    >>> DistributedOptimizer(None, [])
    Traceback (most recent call last):
    NotImplementedError: DistributedOptimizer is not available in tracejit
    """

    def __init__(self, optimizer_class: Any, params_rref: Any, *args: Any, **kwargs: Any) -> None:
        refuse("DistributedOptimizer")


def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: there are no functional optimizers.

    >>> as_functional_optim(object)
    Traceback (most recent call last):
    NotImplementedError: as_functional_optim is not available in tracejit
    """
    refuse("as_functional_optim")
