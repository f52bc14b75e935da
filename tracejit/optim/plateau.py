"""Schedule that watches a metric: it lowers the rate when the metric has stopped improving.

In: an optimizer, and a metric at each `step`. Out: new numbers in `optimizer.param_groups`.
PyTorch's formulas. Users reach it through `optim.lr_scheduler`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tracejit.optim.scheduler import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _update_param_group_val,
    check_optimizer,
)


class ReduceLROnPlateau(LRScheduler):
    """Schedule that multiplies the rate by `factor` when the metric given to `step` has not
    improved for more than `patience` epochs.

    optimizer  the optimizer whose groups' "lr" is set
    mode       "min" (default) or "max": the direction in which the metric improves
    factor     factor of the rate, below 1; default 0.1
    patience   epochs without improvement that are borne; default 10
    threshold  least improvement that counts: relative (`threshold_mode="rel"`) or absolute ("abs");
               default 1e-4
    cooldown   epochs after a reduction in which nothing is counted; default 0
    min_lr     least rate; one number, or one for each group; default 0
    eps        smaller changes are not made; default 1e-8

    `step(metric)` takes a number or a tensor (). Raises ValueError for a factor from 1 on, unknown
    modes and another number of `min_lr` than groups.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        check_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.default_min_lr: float | None = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._unchanged()
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forget the metrics seen."""
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Return True if epochs are not counted, soon after a reduction of the rate."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of this epoch's metric, a number or a 0-dim tensor."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._unchanged()

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            limit = best * (1 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return a > limit if sign > 0 else a < limit

    def _reduce_lr(self) -> None:
        if len(self._groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(self._groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}), usually due to a new param group being added to the "
                    "optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(self._groups)
        for group, least in zip(self._groups, self.min_lrs):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                _update_param_group_val(group, "lr", rate)
