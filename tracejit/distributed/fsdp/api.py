"""Settings of FSDP; PyTorch's `torch.distributed.fsdp.api`.

In: nothing. Out: enumerations to compare with, and classes that are refused when they are made.
"""

from __future__ import annotations

from enum import Enum, auto

from tracejit.distributed.unavailable import refused_class

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """Parts of the training state that FSDP spreads over processes.

    >>> ShardingStrategy.FULL_SHARD.name
    'FULL_SHARD'
    """

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD = auto(), auto(), auto()
    HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = auto(), auto()


class BackwardPrefetch(Enum):
    """Moment at which FSDP fetches the next parameters.

    >>> [one.name for one in BackwardPrefetch]
    ['BACKWARD_PRE', 'BACKWARD_POST']
    """

    BACKWARD_PRE, BACKWARD_POST = auto(), auto()


class StateDictType(Enum):
    """Form in which FSDP saves.

    >>> StateDictType.FULL_STATE_DICT.name
    'FULL_STATE_DICT'
    """

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = auto(), auto(), auto()


_TEXT = "Setting of FSDP"
CPUOffload = refused_class("CPUOffload", _TEXT)
MixedPrecision = refused_class("MixedPrecision", _TEXT)
StateDictSettings = refused_class("StateDictSettings", _TEXT)
StateDictConfig = refused_class("StateDictConfig", _TEXT)
OptimStateDictConfig = refused_class("OptimStateDictConfig", _TEXT)
FullStateDictConfig = refused_class("FullStateDictConfig", _TEXT, StateDictConfig)
LocalStateDictConfig = refused_class("LocalStateDictConfig", _TEXT, StateDictConfig)
ShardedStateDictConfig = refused_class("ShardedStateDictConfig", _TEXT, StateDictConfig)
FullOptimStateDictConfig = refused_class("FullOptimStateDictConfig", _TEXT, OptimStateDictConfig)
LocalOptimStateDictConfig = refused_class("LocalOptimStateDictConfig", _TEXT, OptimStateDictConfig)
ShardedOptimStateDictConfig = refused_class(
    "ShardedOptimStateDictConfig", _TEXT, OptimStateDictConfig
)
