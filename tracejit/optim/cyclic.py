"""Schedules that come back to where they began: CyclicLR and CosineAnnealingWarmRestarts.

In: an optimizer. Out: new rates, and momenta that move the other way. PyTorch's formulas (Smith
2017; Loshchilov and Hutter 2017). Users reach them through `optim.lr_scheduler`.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from tracejit.jit.capture.scalars import applied
from tracejit.optim.scheduler import (
    LRScheduler,
    _update_param_group_val,
    _warn_get_lr_called_within_step,
    check_optimizer,
    for_each_group,
)


class CyclicLR(LRScheduler):
    """Schedule up from base_lr to max_lr in `step_size_up` steps, down in `step_size_down`, again
    and again. It counts batches.

    optimizer         the optimizer whose groups' "lr" is set
    base_lr, max_lr   least and largest rate; numbers, or lists with one for each group
    step_size_up      steps of the way up; default 2000
    step_size_down    steps of the way down; None (default): as many
    mode              "triangular" (default); "triangular2": half as high in each cycle;
                      "exp_range": times gamma ** steps
    gamma             factor of "exp_range"; default 1
    scale_fn          instead of a mode: how high, of the cycle's number or (scale_mode
                      "iterations") the number of steps
    cycle_momentum    True (default): momentum (or the first beta) moves the other way
    base_momentum, max_momentum  its bounds; default 0.8 and 0.9
    last_epoch        -1 (default): starts anew; else continues after that epoch

    Raises TypeError for what is no Optimizer; ValueError for lists of another length than there are
    groups, an unknown mode, and momentum to cycle where there is none. The source is Smith,
    "Cyclical learning rates for training neural networks" (2017).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.zeros(1))
    >>> optimizer = tracejit.optim.SGD([p], lr=1.0, momentum=0.9)
    >>> schedule = tracejit.optim.lr_scheduler.CyclicLR(optimizer, 1.0, 2.0, step_size_up=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [1.5]
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        bases = for_each_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, bases):
                _update_param_group_val(group, "lr", base)
        self.max_lrs = for_each_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momenta(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        # after the base class, which takes the groups' initial rates
        self.base_lrs = bases

    def _begin_momenta(self, base: Any, most: Any, last_epoch: int) -> None:
        self.use_beta1 = moves_beta(self.optimizer)
        self.base_momentums = for_each_group(self.optimizer, "base_momentum", base)
        self.max_momentums = for_each_group(self.optimizer, "max_momentum", most)
        if last_epoch != -1:
            return
        pairs = zip(self._groups, self.base_momentums, self.max_momentums)
        for group, least, highest in pairs:
            set_momentum(group, highest, self.use_beta1)
            group.update(max_momentum=highest, base_momentum=least)

    def scale_fn(self, x: float) -> float:
        """Return the relative height of cycle (or step) number `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        cycle = applied("floor", 1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums)
            for group, (least, most) in zip(self._groups, momenta, strict=True):
                set_momentum(group, most - (most - least) * part * scale, self.use_beta1)
        rates = zip(self.base_lrs, self.max_lrs)
        return [base + (most - base) * part * scale for base, most in rates]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer. A function is left out; of another callable its
        attributes are kept."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        kept = dict(state_dict)
        attributes = kept.pop("_scale_fn_custom")
        super().load_state_dict(kept)
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Schedule along a cosine from the initial rate to `eta_min`, then from the start again.

    optimizer   the optimizer whose groups' "lr" is set
    T_0         epochs of the first run, a positive int
    T_mult      each run is this many times as long as the one before; default 1
    eta_min     least rate; default 0
    last_epoch  -1 (default): starts anew; else continues after that epoch

    `step(epoch)` takes parts of epochs too. Raises ValueError for lengths that are no positive
    integers, and an eta_min that is no number. The source is Loshchilov and Hutter, "SGDR:
    stochastic gradient descent with warm restarts" (2017).

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        height = 1 + applied("cos", math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go on by one epoch, or to `epoch`, which may lie between two.

        Raises ValueError for a negative epoch.
        """
        if epoch is None:
            now = self.last_epoch + 1 if self.last_epoch >= 0 else 0
            self.T_cur = self.T_cur + 1 if self.last_epoch >= 0 else 0
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            now = math.floor(epoch)
            self._go_to(epoch)
        self.last_epoch = now
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
        else:
            # the number of whole runs before: their lengths are a geometric series
            runs = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            before = self.T_0 * (self.T_mult**runs - 1) / (self.T_mult - 1)
            self.T_cur, self.T_i = epoch - before, self.T_0 * self.T_mult**runs


def moves_beta(optimizer: Any) -> bool:
    """Return True if cycles of momentum move the first beta. Raise ValueError where there is
    neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], momentum: Any, first_beta: bool) -> None:
    """Set a group's momentum, or the first of its betas."""
    if first_beta:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
