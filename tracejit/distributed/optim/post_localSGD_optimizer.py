"""PostLocalSGDOptimizer: steps of an optimizer, and means of the parameters now and then.

In: an optimizer and an averager. Out: an optimizer. Called by programs that use
`post_localSGD_hook`.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Optimizer whose parameters an averager averages after each step.

    optim     the optimizer of this process
    averager  such as `PeriodicModelAverager`; its count of steps is saved too

    Each process trains alone between the averages. Use it with `post_localSGD_hook`, so that
    gradients are no longer averaged over all processes.

    >>> import tracejit
    >>> import tracejit.distributed as dist
    >>> from tracejit.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> dist.init_process_group(rank=0, world_size=1, store=dist.HashStore())
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
    >>> optimizer = PostLocalSGDOptimizer(tracejit.optim.SGD([p], lr=0.25), averager)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.item(), averager.step
    (0.5, 1)
    >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of the optimizer."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state, and the averager's count as "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state of `state_dict`; the count is 0 where it is missing, with a warning."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. "
                          "Setting step counter to 0.", stacklevel=2)  # fmt: skip
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:
        """Take a step, and let the averager do its part."""
        found = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(self.param_groups)
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to the optimizer."""
        self.optim.add_param_group(param_group)
