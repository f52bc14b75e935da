"""Communication hooks of DistributedDataParallel; PyTorch's `ddp_comm_hooks`.

In: the name of a hook and a module. Out: the module averages its gradients by it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from tracejit.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    powerSGD_hook,
)
from tracejit.distributed.errors import refuse

__all__ = ["DDPCommHookType", "default_hooks", "register_ddp_comm_hook"]


class _Hook:
    """Registers one hook with a module; every object is a member of its own."""

    def __init__(self, hook: Callable[..., Any], rank: int | None = None) -> None:
        self.hook, self.rank = hook, rank

    def __call__(self, model: Any, state: Any) -> None:
        if self.rank is not None:
            state = powerSGD_hook.PowerSGDState(state, self.rank, 1000)
        model.register_comm_hook(state, self.hook)


def _per_tensor(state: Any, bucket: Any) -> NoReturn:
    refuse("quantization_pertensor_hook")


def _per_channel(state: Any, bucket: Any) -> NoReturn:
    refuse("quantization_perchannel_hook")


class DDPCommHookType(Enum):
    """Communication hooks by name. Those that quantize are refused when they run.

    >>> DDPCommHookType["FP16_COMPRESS"].value.hook is default_hooks.fp16_compress_hook
    True
    """

    ALLREDUCE = _Hook(default_hooks.allreduce_hook)
    FP16_COMPRESS = _Hook(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _Hook(default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Hook(_per_tensor)
    QUANTIZE_PER_CHANNEL = _Hook(_per_channel)
    POWER_SGD = _Hook(powerSGD_hook.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Hook(powerSGD_hook.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Hook(powerSGD_hook.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Hook(powerSGD_hook.batched_powerSGD_hook, 2)
    NOOP = _Hook(debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a DistributedDataParallel module average its gradients by a hook.

    comm_hook_type  a `DDPCommHookType`
    model           the module, which has no hook yet
    state           a group, or None for the default one

    Raises RuntimeError if there is a hook already.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> model = tracejit.nn.parallel.DistributedDataParallel(tracejit.nn.Linear(2, 1))
    >>> register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model)
    >>> model(tracejit.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    comm_hook_type.value(model, state)
