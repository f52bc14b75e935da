"""Modules whose parameters are spread over processes: none is here.

In: nothing. Out: classes that packages ask of modules, refused when they are made.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NoReturn

from tracejit.distributed.errors import refuse
from tracejit.distributed.fsdp.api import *  # noqa: F403
from tracejit.distributed.unavailable import refused_class
from tracejit.nn.module import Module

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]


class OptimStateKeyType(Enum):
    """Names of parameters that FSDP may use in an optimizer's state.

    >>> OptimStateKeyType.PARAM_NAME.name
    'PARAM_NAME'
    """

    PARAM_NAME, PARAM_ID = auto(), auto()


FullyShardedDataParallel: Any = refused_class(
    "FullyShardedDataParallel", "Module whose parameters are spread over processes", Module
)
FSDPModule: Any = refused_class("FSDPModule", "Module that `fully_shard` has changed")
MixedPrecisionPolicy: Any = refused_class("MixedPrecisionPolicy", "Setting of FSDP")
OffloadPolicy: Any = refused_class("OffloadPolicy", "Setting of FSDP")
CPUOffloadPolicy: Any = refused_class("CPUOffloadPolicy", "Setting of FSDP", OffloadPolicy)


def fully_shard(module: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError: parameters are not spread over processes.

    >>> fully_shard(None)
    Traceback (most recent call last):
    NotImplementedError: fully_shard is not available in tracejit
    """
    refuse("fully_shard")
