"""Schedules made of schedules: one after the other, or all at once.

In: schedules of one optimizer. Out: the rates they set. Users reach them through
`optim.lr_scheduler`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tracejit.optim.plateau import ReduceLROnPlateau
from tracejit.optim.scheduler import (
    LRScheduler,
    _update_param_group_val,
    copied,
)


class _Combined(LRScheduler):
    """Base class of both. The state dict holds those of the schedules."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer, with the state dicts of the schedules."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)

    def _note_rates(self, groups: list[dict[str, Any]]) -> None:
        self._last_lr = [copied(group["lr"]) for group in groups]


class SequentialLR(_Combined):
    """Schedule of schedules one after the other: the next begins at each epoch in `milestones`.

    optimizer   the optimizer whose groups' "lr" is set
    schedulers  schedules of this optimizer, in order
    milestones  epochs at which the next schedule begins: one less than schedules
    last_epoch  epoch before the first one that counts; default -1

    Raises ValueError for no schedules, schedules of another optimizer or that need a metric. So
    does any number of milestones but one less than schedules. Raises TypeError for an object that
    is no schedule.

    >>> import tracejit
    >>> from tracejit.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> first, then = ConstantLR(optimizer, 0.5), ExponentialLR(optimizer, 0.1)
    >>> schedule = SequentialLR(optimizer, [first, then], milestones=[2])
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Any,
        schedulers: list[Any],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check(type(self).__name__, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            # each schedule has changed the rates when it was made
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        # milestone 0 makes the second schedule begin at once
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the step that schedules make when they are made."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for inner in scheduler._schedulers:
                self.recursive_undo(inner)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[k]
        # a schedule begins at its own epoch 0, whatever it did when it was made
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Schedule that applies every schedule at each step, one on top of the other: their factors
    multiply.

    schedulers  schedules of one optimizer
    optimizer   optimizer of the schedules; None (default): that of the first

    Raises ValueError for no schedules, schedules of another optimizer or that need a metric;
    TypeError for an object that is no schedule.

    >>> import tracejit
    >>> from tracejit.optim.lr_scheduler import ChainedScheduler, ExponentialLR, StepLR
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = ChainedScheduler([ExponentialLR(optimizer, 0.5), StepLR(optimizer, 2, 0.1)])
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.025]
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        _check(type(self).__name__, schedulers, optimizer)
        self._schedulers, self.optimizer = list(schedulers), optimizer
        self._note_rates(optimizer.param_groups)

    def step(self) -> None:  # type: ignore[override]
        """Step each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._note_rates(self._schedulers[-1].optimizer.param_groups)


def _check(name: str, schedulers: Sequence[Any], optimizer: Any) -> None:
    for k, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {k} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                f"kwargs to be specified when calling `step`, but got one at index {k} in the "
                "given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got "
                f"scheduler {type(scheduler).__name__} at index {k} has {scheduler.optimizer}, "
                f"which is different from {type(optimizer).__name__}."
            )
