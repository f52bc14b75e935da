"""The one-cycle schedule: up to a peak and down again within one training run, batch by batch.

In: an optimizer and the number of steps. Out: new rates, and momenta that move the other way.
Users reach it through `optim.lr_scheduler`. PyTorch's formulas.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from tracejit.capture.scalars import applied
from tracejit.optim.scheduler import LRScheduler


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to that start / final_div_factor, batch by
    batch.

    With `cycle_momentum`, momentum (or the first beta) moves the other way, from max_momentum to
    base_momentum. Raises ValueError for an unknown `anneal_strategy`, or no way to know the number
    of steps.
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
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self.total_steps = total_steps
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.phases = _one_cycle_phases(self.total_steps, pct_start, three_phase)
        peaks = (
            max_lr if isinstance(max_lr, (list, tuple)) else [max_lr] * len(optimizer.param_groups)
        )
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks):
                start = peak / div_factor
                group.update(initial_lr=start, max_lr=peak, min_lr=start / final_div_factor)
                if cycle_momentum:
                    group.update(max_momentum=max_momentum, base_momentum=base_momentum)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps "
                f"is {self.total_steps}"
            )
        ends = [end for end, _, _ in self.phases]
        k = min(bisect_left(ends, self.last_epoch), len(ends) - 1)
        begin = ends[k - 1] if k else 0.0
        part = (self.last_epoch - begin) / (ends[k] - begin)
        _, lrs, momenta = self.phases[k]
        if self.cycle_momentum:
            for group in self._groups:
                _set_momentum(group, self._between(group[momenta[0]], group[momenta[1]], part))
        return [self._between(group[lrs[0]], group[lrs[1]], part) for group in self._groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (applied("cos", math.pi * part) + 1)


def _one_cycle_phases(steps: int, rise: float, three: bool) -> list[tuple[float, tuple, tuple]]:
    """(last step, rates between which, momenta between which) of each phase."""
    up = (("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    down = (("max_lr", "initial_lr"), ("base_momentum", "max_momentum"))
    if three:
        rest = (("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))
        return [
            (float(rise * steps) - 1, *up),
            (float(2 * rise * steps) - 2, *down),
            (steps - 1, *rest),
        ]
    return [(float(rise * steps) - 1, *up), (steps - 1, ("max_lr", "min_lr"), down[1])]


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
