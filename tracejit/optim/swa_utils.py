"""Averages of models along training: stochastic weight averaging and exponential moving averages.

In: a model in training. Out: a copy of it whose parameters are averages, and the schedule that goes
with it. PyTorch's formulas (Izmailov et al. 2018).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import applied
from tracejit.nn.batch_norm import _BatchNorm
from tracejit.nn.module import Module
from tracejit.optim.scheduler import (
    LRScheduler,
    _warn_get_lr_called_within_step,
    for_each_group,
)

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return an `avg_fn` for `AveragedModel` that keeps an exponential mean: decay * average + (1 -
    decay) * parameter.

    decay  share of the average that stays, from 0 to 1; default 0.999

    The function takes two tensors of the same shape and a count. Raises ValueError for a decay out
    of range.

    >>> import tracejit
    >>> mean = tracejit.optim.swa_utils.get_ema_avg_fn(0.5)
    >>> mean(tracejit.tensor([1.0]), tracejit.tensor([3.0]), 1)
    tensor([2.])
    """
    _check_decay(decay)

    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        with tracejit.no_grad():
            return ema_param * decay + current_param * (1 - decay)

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Return a `multi_avg_fn` for `AveragedModel` that keeps exponential means of lists, in place.

    decay  share of the averages that stays, from 0 to 1; default 0.999

    The function takes two lists of tensors of the same shapes and a count. Raises ValueError for a
    decay out of range.

    >>> import tracejit
    >>> means = [tracejit.tensor([1.0])]
    >>> tracejit.optim.swa_utils.get_ema_multi_avg_fn(0.5)(means, [tracejit.tensor([3.0])], 1)
    >>> means
    [tensor([2.])]
    """
    average = get_ema_avg_fn(decay)

    def ema_update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        for kept, current in zip(ema_param_list, current_param_list):
            # parameters require grad: they are written through a detached alias
            kept.detach().copy_(average(kept, current, None))

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return an `avg_fn` for `AveragedModel` that keeps equal means of all models: average +
    (parameter - average) / (count + 1).

    The function takes two tensors of the same shape and a count of models before.

    >>> import tracejit
    >>> mean = tracejit.optim.swa_utils.get_swa_avg_fn()
    >>> mean(tracejit.tensor([1.0]), tracejit.tensor([3.0]), 1)
    tensor([2.])
    """

    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        with tracejit.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Return a `multi_avg_fn` for `AveragedModel` that keeps equal means of lists, in place.

    The function takes two lists of tensors of the same shapes and a count of models before.

    >>> import tracejit
    >>> means = [tracejit.tensor([1.0])]
    >>> tracejit.optim.swa_utils.get_swa_multi_avg_fn()(means, [tracejit.tensor([3.0])], 1)
    >>> means
    [tensor([2.])]
    """
    average = get_swa_avg_fn()

    def swa_update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        for kept, current in zip(averaged_param_list, current_param_list):
            kept.detach().copy_(average(kept, current, num_averaged))

    return swa_update


class AveragedModel(Module):
    """Copy of a model, `module`, whose parameters are averages of those seen.

    model         model that is copied
    device        where the copy lives; None (default): where the model is
    avg_fn        (average, parameter, how many were averaged) -> average, tensors of the same shape
    multi_avg_fn  the same of lists, in place; neither: equal averages
    use_buffers   True: buffers are averaged too, instead of copied; default False

    `update_parameters(model)` adds a model to the averages; `n_averaged` () counts them. A call
    runs the copy. The functions are called for the first model as well, whose parameters are taken
    as they are. Raises AssertionError where both functions are given. The source is Izmailov et
    al., "Averaging weights leads to wider optima and better generalization" (2018).

    >>> import tracejit
    >>> model = tracejit.nn.Linear(1, 1)
    >>> average = tracejit.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = tracejit.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (3.0, 3)
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tracejit.tensor(0, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take a model's parameters into the averages."""
        pairs = [(a.detach(), b.detach()) for a, b in zip(self._averaged(self.module),
                                                          self._averaged(model))]  # fmt: skip
        count = self.n_averaged
        # Whether it is the first is asked of no tensor: captured steps do not depend on it.
        if self.multi_avg_fn is not None:
            self.multi_avg_fn(
                [average for average, _ in pairs],
                [p.to(average.device) for average, p in pairs],
                count,
            )
        average_of = self.avg_fn or get_swa_avg_fn()
        for average, p in pairs:
            p = p.to(average.device)
            new = average if self.multi_avg_fn is not None else average_of(average, p, count)
            average.copy_(tracejit.where(count == 0, p, new))
        if not self.use_buffers:
            for kept, buffer in zip(self.module.buffers(), model.buffers()):
                kept.detach().copy_(buffer.detach())
        count.copy_(count + 1)

    def _averaged(self, model: Module) -> Iterable[Any]:
        buffers = model.buffers() if self.use_buffers else ()
        return itertools.chain(model.parameters(), buffers)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms anew, over the data of a loader.

    loader  batches: tensors (N, *), or lists and tuples that begin with one
    device  where batches go first; None: where they are

    >>> import tracejit
    >>> model = tracejit.nn.BatchNorm1d(2)
    >>> tracejit.optim.swa_utils.update_bn([tracejit.tensor([[0.0, 2.0], [2.0, 4.0]])], model)
    >>> model.running_mean
    tensor([1., 3.])
    """
    with tracejit.no_grad():
        momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
        if not momenta:
            return
        training = model.training
        model.train()
        for module in momenta:
            module.reset_running_stats()
            # None: a plain mean over all batches
            module.momentum = None
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """Schedule from the present rate to `swa_lr` in `anneal_epochs`, then constant: for averages of
    weights at the end of training.

    optimizer        the optimizer whose groups' "lr" is set
    swa_lr           rate at the end; a number, or a list with one for each group
    anneal_epochs    number of epochs of the way; default 10
    anneal_strategy  "cos" (default) or "linear"
    last_epoch       -1 (default): starts anew; else continues after that epoch

    Raises ValueError for another strategy, and epochs that are no integer from 0 on. The source is
    Izmailov et al. (2018), as for `AveragedModel`.

    >>> import tracejit
    >>> optimizer = tracejit.optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0)
    >>> schedule = tracejit.optim.swa_utils.SWALR(optimizer, 0.1, 2, "linear")
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1]
    """

    def __init__(
        self,
        optimizer: Any,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_each_group(optimizer, "swa_lr", swa_lr)
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        # the end is reached: the start can no longer be computed from the present rate
        if before == 1:
            return [group["swa_lr"] * now + group["swa_lr"] * (1 - now) for group in self._groups]
        found = []
        for group in self._groups:
            # the rate at the start, from the present one: other schedules' changes stay
            start = (group["lr"] - group["swa_lr"] * before) / (1 - before)
            found.append(group["swa_lr"] * now + start * (1 - now))
        return found

    def _part(self, step: int) -> float:
        """Return the share of the way that is done after a step."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - applied("cos", math.pi * t)) / 2
