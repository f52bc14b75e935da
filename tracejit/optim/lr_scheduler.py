"""Learning rate schedules: each `step()` sets `lr` in the optimizer's groups for the next epoch or
batch.

In: an optimizer. Out: new numbers in `optimizer.param_groups`; compiled steps take them as inputs,
so a schedule never recompiles. PyTorch's formulas, which build on the present rate where they can:
schedules chain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.capture.scalars import applied
from tracejit.optim.one_cycle import OneCycleLR
from tracejit.optim.plateau import ReduceLROnPlateau
from tracejit.optim.scheduler import LRScheduler

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "StepLR",
]


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`: one function, or one for each group."""

    def __init__(
        self,
        optimizer: Any,
        lr_lambda: Callable[[int], float] | Sequence[Callable],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        del state["lr_lambdas"]
        return state


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [group["lr"] * self.gamma if due else group["lr"] for group in self._groups]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch in `milestones`."""

    def __init__(
        self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        # Compared one by one: a captured step then depends on the answers, not on the epoch.
        times = next((n for at, n in self.milestones.items() if at == self.last_epoch), 0)
        return [group["lr"] * self.gamma**times for group in self._groups]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` epochs, then the initial rate."""

    def __init__(
        self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = 1.0
        if self.last_epoch == self.total_iters:
            times = 1 / self.factor
        elif self.last_epoch == 0:
            times = self.factor
        return [group["lr"] * times for group in self._groups]


class LinearLR(LRScheduler):
    """From `start_factor` to `end_factor` times the initial rate, in `total_iters` equal steps."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or "
                "equal to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [group["lr"] * self.start_factor for group in self._groups]
        if self.last_epoch > self.total_iters:
            return [group["lr"] for group in self._groups]
        gap = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * gap
        return [group["lr"] * (1.0 + gap / before) for group in self._groups]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [group["lr"] * (self.gamma if self.last_epoch else 1) for group in self._groups]


class CosineAnnealingLR(LRScheduler):
    """Along a cosine from the initial rate to `eta_min` in `T_max` epochs, and back."""

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [group["lr"] for group in self._groups]
        if self._step_count == 1:
            return [
                self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2
                for base in self.base_lrs
            ]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [
                group["lr"] + (base - self.eta_min) * (1 - applied("cos", math.pi / self.T_max)) / 2
                for base, group in zip(self.base_lrs, self._groups)
            ]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in self._groups]

    def _height(self, epoch: int) -> float:
        return 1 + applied("cos", math.pi * epoch / self.T_max)
