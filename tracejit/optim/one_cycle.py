"""One-cycle schedule: up to a peak and down again within one training run, batch by batch.

In: an optimizer and the number of steps. Out: new rates, and momenta that move the other way. Users
reach it through `optim.lr_scheduler`. PyTorch's formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracejit.jit.capture.scalars import applied
from tracejit.optim.cyclic import moves_beta, set_momentum
from tracejit.optim.scheduler import (
    LRScheduler,
    _warn_get_lr_called_within_step,
    check_optimizer,
    for_each_group,
)


class OneCycleLR(LRScheduler):
    """Schedule up from max_lr / div_factor to max_lr, then down to that start / final_div_factor,
    batch by batch.

    optimizer         the optimizer whose groups' "lr" is set
    max_lr            largest rate; a number, or a list with one for each group
    total_steps       number of batches; None (default): epochs * steps_per_epoch
    pct_start         share of the steps that go up; default 0.3
    anneal_strategy   "cos" (default) or "linear"
    cycle_momentum    True (default): momentum (or the first beta) moves the other way, from
                      max_momentum (0.95) to base_momentum (0.85)
    div_factor, final_div_factor  max_lr over the first rate, and the first over the last; default
                      25 and 1e4
    three_phase       True: down to the start first, then to the last rate; default False
    last_epoch        -1 (default): starts anew; else continues after that epoch

    Raises TypeError for what is no Optimizer; ValueError for an unknown `anneal_strategy`, options
    out of range, no way to know the number of steps, or a step beyond it. The source is Smith and
    Topin, "Super-convergence" (2018).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.zeros(1))
    >>> optimizer = tracejit.optim.SGD([p], lr=1.0, momentum=0.9)
    >>> schedule = tracejit.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.9505]
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            _require_positive("total_steps", total_steps)
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            _require_positive("epochs", epochs)
            _require_positive("steps_per_epoch", steps_per_epoch)
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        peaks = for_each_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks):
                start = peak / div_factor
                group.update(initial_lr=start, max_lr=peak, min_lr=start / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = moves_beta(optimizer)
            most = for_each_group(optimizer, "max_momentum", max_momentum)
            least = for_each_group(optimizer, "base_momentum", base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(optimizer.param_groups, most, least):
                    set_momentum(group, high, self.use_beta1)
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps "
                f"is {self.total_steps}"
            )
        ends = [phase["end_step"] for phase in self._schedule_phases]
        # With three phases and pct_start above 0.5 the ends do not rise.
        k = next((k for k, end in enumerate(ends) if self.last_epoch <= end), len(ends) - 1)
        begin = ends[k - 1] if k else 0.0
        part = (self.last_epoch - begin) / (ends[k] - begin)
        phase = self._schedule_phases[k]
        if self.cycle_momentum:
            for group in self._groups:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._anneal_func(first, last, part), self.use_beta1)
        return [
            self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part)
            for group in self._groups
        ]

    def _anneal_func(self, start: float, end: float, pct: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * pct + start
        return end + (start - end) / 2.0 * (applied("cos", math.pi * pct) + 1)


def _phases(steps: int, rise: float, three: bool) -> list[dict[str, Any]]:
    """Return the last step of each phase, and the names of its first and last rate and momentum."""
    # the first step is number 0
    up = _phase(float(rise * steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [up, _phase(steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    middle = float(2 * rise * steps) - 2
    return [
        up,
        _phase(middle, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        _phase(steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]


def _phase(end: float, *names: str) -> dict[str, Any]:
    keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end, **dict(zip(keys, names))}


def _require_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
