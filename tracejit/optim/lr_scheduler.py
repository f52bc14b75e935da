"""Learning rate schedules: each `step()` sets `lr` in the optimizer's groups for the next epoch or batch.

In: an optimizer. Out: new numbers in `optimizer.param_groups`; compiled steps take them as inputs, so a schedule
never recompiles. PyTorch's formulas, which build on the present rate where they can: schedules chain.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.optim.plateau import ReduceLROnPlateau

__all__ = ["ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
           "MultiStepLR", "OneCycleLR", "ReduceLROnPlateau", "StepLR"]  # fmt: skip


class LRScheduler:
    """The common part of schedules; a subclass defines `get_lr()`.

    last_epoch  -1: starts anew; else continues after that epoch, from the groups' `initial_lr`
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in "
                               f"param_groups[{k}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    @property
    def _groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    def get_lr(self) -> list[float]:
        """The rates of epoch `last_epoch`, one for each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates set last."""
        return self._last_lr

    def step(self) -> None:
        """Go on by one epoch."""
        self._step_count += 1
        self.last_epoch += 1
        for group, lr in zip(self._groups, self.get_lr()):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self._groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; functions are left out too."""
        return {key: value for key, value in self.__dict__.items()
                if key != "optimizer" and not callable(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`: one function, or one for each group."""

    def __init__(self, optimizer: Any, lr_lambda: Callable[[int], float] | Sequence[Callable],
                 last_epoch: int = -1) -> None:
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

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [group["lr"] * self.gamma if due else group["lr"] for group in self._groups]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch in `milestones`."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = self.milestones.get(self.last_epoch, 0)
        return [group["lr"] * self.gamma**times for group in self._groups]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` epochs, then the initial rate."""

    def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = {0: self.factor, self.total_iters: 1 / self.factor}.get(self.last_epoch, 1.0)
        return [group["lr"] * times for group in self._groups]


class LinearLR(LRScheduler):
    """From `start_factor` to `end_factor` times the initial rate, in `total_iters` equal steps."""

    def __init__(self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or "
                             "equal to 1.")
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

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [group["lr"] for group in self._groups]
        if self._step_count == 1:
            return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2
                    for base in self.base_lrs]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [group["lr"] + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
                    for base, group in zip(self.base_lrs, self._groups)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in self._groups]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to that start / final_div_factor, batch by batch.

    With `cycle_momentum`, momentum (or the first beta) moves the other way, from max_momentum to base_momentum.
    Raises ValueError for an unknown `anneal_strategy`, or no way to know the number of steps.
    """

    def __init__(self, optimizer: Any, max_lr: float | Sequence[float], total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float = 0.85, max_momentum: float = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError("anneal_strategy must be one of 'cos' or 'linear', instead got "
                             f"{anneal_strategy}")
        self.total_steps = total_steps if total_steps is not None else epochs * steps_per_epoch
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.phases = _one_cycle_phases(self.total_steps, pct_start, three_phase)
        peaks = max_lr if isinstance(max_lr, (list, tuple)) else [max_lr] * len(optimizer.param_groups)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks):
                start = peak / div_factor
                group.update(initial_lr=start, max_lr=peak, min_lr=start / final_div_factor)
                if cycle_momentum:
                    group.update(max_momentum=max_momentum, base_momentum=base_momentum)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"Tried to step {self.last_epoch} times. The specified number of total steps "
                             f"is {self.total_steps}")
        begin = 0.0
        for end, lrs, momenta in self.phases:
            if self.last_epoch <= end or end == self.phases[-1][0]:
                part = (self.last_epoch - begin) / (end - begin)
                break
            begin = end
        if self.cycle_momentum:
            for group in self._groups:
                _set_momentum(group, self._between(group[momenta[0]], group[momenta[1]], part))
        return [self._between(group[lrs[0]], group[lrs[1]], part) for group in self._groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _one_cycle_phases(steps: int, rise: float, three: bool) -> list[tuple[float, tuple, tuple]]:
    """(last step, rates between which, momenta between which) of each phase."""
    up = (("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    down = (("max_lr", "initial_lr"), ("base_momentum", "max_momentum"))
    if three:
        rest = (("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))
        return [(float(rise * steps) - 1, *up), (float(2 * rise * steps) - 2, *down), (steps - 1, *rest)]
    return [(float(rise * steps) - 1, *up), (steps - 1, ("max_lr", "min_lr"), down[1])]


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
