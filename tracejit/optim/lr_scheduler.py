"""Learning rate schedules: each `step()` sets `lr` in the optimizer's groups for the next epoch or
batch.

In: an optimizer. Out: new numbers in `optimizer.param_groups`; compiled steps take them as inputs,
so a schedule never recompiles. PyTorch's formulas, which build on the present rate where they can:
schedules chain. `step(epoch)` takes the closed forms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import sealing as _sealing
from tracejit.jit.capture.scalars import applied
from tracejit.optim.combined_schedules import ChainedScheduler, SequentialLR
from tracejit.optim.cyclic import CosineAnnealingWarmRestarts, CyclicLR
from tracejit.optim.one_cycle import OneCycleLR
from tracejit.optim.plateau import ReduceLROnPlateau
from tracejit.optim.scheduler import (  # noqa: F401 (PyTorch has them here)
    EPOCH_DEPRECATION_WARNING,
    FunctionLR,
    LRScheduler,
    _enable_get_lr_call,
    _initial_mode,
    _LRScheduler,
    _param_groups_val_list,
    _update_param_group_val,
    _warn_get_lr_called_within_step,
)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
]


class LambdaLR(FunctionLR):
    """Schedule of a function: the initial rate times `lr_lambda(epoch)`.

    optimizer   the optimizer whose groups' "lr" is set
    lr_lambda   function of the epoch's number, an int, that returns a factor; or one function for
                each group
    last_epoch  -1 (default): starts anew; else continues after that epoch

    The state dict leaves functions out, unless they are objects with a state of their own. Raises
    ValueError for another number of functions than groups.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.125]
    """

    def __init__(
        self,
        optimizer: Any,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * f(self.last_epoch) for f, base in pairs]


class MultiplicativeLR(FunctionLR):
    """Schedule of a function: in each epoch the rate is multiplied by `lr_lambda(epoch)`.

    optimizer   the optimizer whose groups' "lr" is set
    lr_lambda   function of the epoch's number, an int, that returns a factor; or one function for
                each group
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Raises ValueError for another number of functions than groups, TypeError for what is no
    function.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.125]
    """

    def __init__(
        self,
        optimizer: Any,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        for given in lr_lambda if isinstance(lr_lambda, (list, tuple)) else (lr_lambda,):
            if not callable(given):
                raise TypeError(f"lr_lambda should be a function, but got {type(given).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self._is_initial:
            return self._unchanged()
        pairs = zip(self.lr_lambdas, self._groups, strict=True)
        return [group["lr"] * f(self.last_epoch) for f, group in pairs]


class StepLR(LRScheduler):
    """Schedule of stairs: the rate is multiplied by `gamma` every `step_size` epochs.

    optimizer   the optimizer whose groups' "lr" is set
    step_size   number of epochs on one stair, a positive int
    gamma       factor of each stair; default 0.1
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Rates are initial rate * gamma^(epoch // step_size). Raises TypeError for an object that is no
    `Optimizer`, KeyError for a `last_epoch` without initial rates.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1]
    """

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._unchanged()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Schedule of stairs of any length: the rate is multiplied by `gamma` at each epoch in
    `milestones`.

    optimizer   the optimizer whose groups' "lr" is set
    milestones  numbers of epochs; one that is there twice counts twice
    gamma       factor of each stair; default 0.1
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Raises TypeError for an object that is no `Optimizer`, KeyError for a `last_epoch` without
    initial rates.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.01]
    """

    def __init__(
        self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        # Compared one by one: a captured step then depends on the answers, not on the epoch.
        times = next((n for at, n in self.milestones.items() if at == self.last_epoch), 0)
        return self._times(self.gamma**times) if times else self._unchanged()

    def _get_closed_form_lr(self) -> list[Any]:
        times = sum(n for at, n in self.milestones.items() if at <= self.last_epoch)
        return [base * self.gamma**times for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Schedule of `factor` times the initial rate for the first `total_iters` epochs, then the
    initial rate: a simple warmup.

    optimizer    the optimizer whose groups' "lr" is set
    factor       number from 0 to 1; default 1/3
    total_iters  number of epochs with that factor; default 5
    last_epoch   -1 (default): starts anew; else continues after that epoch

    Raises ValueError for a factor not between 0 and 1.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(
        self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self.last_epoch == 0:
            return self._times(self.factor)
        if self.last_epoch != self.total_iters:
            return self._unchanged()
        # schedules chain: the factor is divided out, not the rate set
        return self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Schedule along a line: from `start_factor` to `end_factor` times the initial rate in
    `total_iters` equal steps, then constant.

    optimizer     the optimizer whose groups' "lr" is set
    start_factor  factor of the first epoch, above 0 and at most 1; default 1/3
    end_factor    factor at the end, from 0 to 1; default 1
    total_iters   number of steps; default 5
    last_epoch    -1 (default): starts anew; else continues after that epoch

    Raises ValueError for factors that are not between 0 and 1, or a start at 0.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.875]
    """

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

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        gap = self.end_factor - self.start_factor
        # the ratio of two neighbouring values: other schedules' changes stay
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * gap
        return self._times(1.0 + gap / before)

    def _get_closed_form_lr(self) -> list[Any]:
        gap = self.end_factor - self.start_factor
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + gap * part) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Schedule down to zero in `total_iters` epochs: the initial rate times (1 - epoch /
    total_iters)^power, then zero.

    optimizer    the optimizer whose groups' "lr" is set
    total_iters  number of epochs; default 5
    power        power of the polynomial; default 1, a line
    last_epoch   -1 (default): starts anew; else continues after that epoch

    Raises TypeError for an object that is no `Optimizer`, KeyError for a `last_epoch` without
    initial rates.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4, power=2.0)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.0625]
    """

    def __init__(
        self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._times((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1.0 - part) ** self.power for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Schedule that multiplies the rate by `gamma` every epoch: initial rate * gamma^epoch.

    optimizer   the optimizer whose groups' "lr" is set
    gamma       factor of each epoch, a number
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Raises TypeError for an object that is no `Optimizer`, KeyError for a `last_epoch` without
    initial rates.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.125]
    """

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self._is_initial:
            return self._unchanged()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Schedule along a cosine from the initial rate to `eta_min` in `T_max` epochs, and back:
    eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2.

    optimizer   the optimizer whose groups' "lr" is set
    T_max       number of epochs of half a period
    eta_min     least rate; default 0
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Raises TypeError for an object that is no `Optimizer`, KeyError for a `last_epoch` without
    initial rates. The source is Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm
    restarts" (2017).

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1464]
    """

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self._is_initial:
            return self._unchanged()
        # resumed in the middle: there is no rate before to build on
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        # the height before was 0: no ratio to it
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [
                group["lr"] + (base - self.eta_min) * (1 - applied("cos", math.pi / self.T_max)) / 2
                for base, group in zip(self.base_lrs, self._groups, strict=True)
            ]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in self._groups]

    def _get_closed_form_lr(self) -> list[Any]:
        height = self._height(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def _height(self, epoch: int) -> float:
        return 1 + applied("cos", math.pi * epoch / self.T_max)

_sealing.seal_all(globals())
