"""What all schedules share: initial rates, counting, the state dict.

In: an optimizer. Out: `lr` of its groups, set at each `step()` to what the subclass's `get_lr()`
says. Users reach it through `optim.lr_scheduler`.
"""

from __future__ import annotations

from typing import Any


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
                raise KeyError(
                    "param 'initial_lr' is not specified in "
                    f"param_groups[{k}] when resuming an optimizer"
                )
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
        return {
            key: value
            for key, value in self.__dict__.items()
            if key != "optimizer" and not callable(value)
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        self.__dict__.update(state_dict)
