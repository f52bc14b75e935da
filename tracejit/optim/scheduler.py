"""Base class of all schedules: initial rates, counting, the state dict.

In: an optimizer. Out: `lr` of its groups, set at each `step()` to the result of the subclass's
`get_lr()`. Users reach it through `optim.lr_scheduler`.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.optim.optimizer import Optimizer
from tracejit.optim.state import forget_steps, warn_of_order

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


class LRScheduler:
    """Base class of schedules of learning rates. A subclass defines `get_lr()`, which returns the
    rates of all groups from `last_epoch` and `base_lrs`.

    optimizer   the optimizer whose groups' "lr" is set
    last_epoch  -1 (default): starts anew; else continues after that epoch, from the groups'
                `initial_lr`

    Call `step()` after `optimizer.step()`, once in each epoch or batch, as the schedule counts.
    `get_last_lr()` returns a list of numbers, one for each group; `state_dict()` is a dict of plain
    values. Raises TypeError for an object that is no Optimizer, KeyError where no initial rates are
    known.

    >>> import tracejit
    >>> class Halving(tracejit.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = Halving(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for k, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{k}] when resuming "
                    "scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        forget_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    @property
    def _groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    def get_lr(self) -> list[Any]:
        """Return the rates of epoch `last_epoch`, one for each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """Return the rates set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch, after the optimizer's step; or (deprecated) to `epoch`."""
        warn_of_order(self)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                # chained forms build on the epoch before, which a jump has not seen
                rates = self.get_lr() if closed is None else closed()
        self._set(rates)

    def _set(self, rates: list[Any]) -> None:
        """Write the rates to the groups; a rate that is a tensor is written in place."""
        for group, rate in zip(self._groups, rates, strict=True):
            _update_param_group_val(group, "lr", rate)
        # copies: a rate that is a tensor is written in place later
        self._last_lr = self._unchanged()

    def _unchanged(self) -> list[Any]:
        return _param_groups_val_list(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self._groups]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """Older name of `LRScheduler`, from which programs derive schedules of their own.

    optimizer   the optimizer whose groups' "lr" is set
    last_epoch  -1 (default): starts anew; else continues after that epoch

    Methods and errors are those of `LRScheduler`.

    >>> from tracejit.optim.lr_scheduler import LRScheduler, _LRScheduler
    >>> issubclass(_LRScheduler, LRScheduler)
    True
    """


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError for an object that is no Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(rate: Any) -> Any:
    """Return a rate that no other code writes to."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def for_each_group(optimizer: Any, name: str, value: Any) -> list[Any]:
    """Return `value` for each group, or a list of them. Raise ValueError for a list of another
    length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {count}."
        )
    return [copied(v) for v in value]


@contextmanager
def _initial_mode(scheduler: LRScheduler) -> Iterator[None]:
    """Mark the steps inside as the schedule's first, which sets the initial rates."""
    scheduler._is_initial = True
    try:
        yield
    finally:
        scheduler._is_initial = False


class _enable_get_lr_call:
    """Allow calls of `get_lr()` inside, without a warning."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """Warn where other code than `step` called `get_lr()`."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use "
            "`get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


def _param_groups_val_list(optimizer: Any, key: str) -> list[Any]:
    """Return an option of each group, with tensors copied."""
    return [copied(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Set an option of a group; one that is a tensor is written in place."""
    if isinstance(param_group[key], Tensor):
        # captured steps hold the tensor itself
        param_group[key].fill_(val)
    else:
        param_group[key] = val


class FunctionLR(LRScheduler):
    """Base class of schedules with functions: one for all groups or one for each. The state dict
    leaves them out, unless they are objects with a state of their own."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]]
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer. Functions are left out; of other callables their
        attributes are kept."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else f.__dict__.copy()
            for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        kept = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(kept)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                function.__dict__.update(attributes)
