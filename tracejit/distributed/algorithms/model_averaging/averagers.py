"""Averagers: give all processes the means of their parameters now and then.

In: parameters after a step of an optimizer. Out: the same tensors, with the means every `period`
steps. Called by programs and by `PostLocalSGDOptimizer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tracejit.distributed import groups
from tracejit.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters in some steps; a base for averagers of your own.

    process_group  the default one if None

    `step` counts the calls of `average_parameters`, which derived classes write.

    >>> issubclass(PeriodicModelAverager, ModelAverager)
    True
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = groups.world() if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, if this step is one in which to do so."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps after `warmup_steps`.

    period         number of steps from one average to the next
    warmup_steps   number of steps at the start without an average; default 0
    process_group  the default one if None

    Raises ValueError for a period below 1 and a negative number of steps.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> averager, layer = PeriodicModelAverager(period=4), tracejit.nn.Linear(2, 1)
    >>> layer(tracejit.ones(1, 2)).sum().backward()
    >>> averager.average_parameters(layer.parameters())
    >>> averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step; average parameters that have a gradient, if it is time.

        params  parameters, or an optimizer's groups
        """
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
