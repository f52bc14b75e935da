"""RAdam: Adam that takes plain momentum steps until its second moment can be trusted.

In: parameters with gradients. Out: parameters, moments (`exp_avg`, `exp_avg_sq`) and `step` written
in place. PyTorch's formulas. `step`, a tensor, decides between the two kinds of steps. Both are
computed and one is selected, so that a captured training step is one program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, before_write, require_means, step_counter


class RAdam(Optimizer):
    """Adam that rectifies its steps by the variance of the adaptive rate, once that is finite.
    Before, it steps along the mean alone.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate, a number; default 1e-3
    betas             share of the mean, and of the mean of squares, that each step keeps; default
                      (0.9, 0.999)
    eps               added to the denominator; default 1e-8
    weight_decay      times p is added to the gradient; default 0
    decoupled_weight_decay  True: shrinks p instead, as `AdamW` does
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `exp_avg` and `exp_avg_sq` of its shape, and `step` (). Raises
    ValueError for options out of range. The source is Liu et al., "On the variance of the adaptive
    learning rate and beyond" (2020).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.RAdam([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.5
    """

    _counters = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_means(lr, betas, eps, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": step_counter(p),
                **{n: tracejit.zeros_like(p) for n in ("exp_avg", "exp_avg_sq")}}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, decay = read_scalar(group, "lr"), group["weight_decay"]
        beta1, beta2 = read_scalar(group, "betas")
        decayed = p
        if decay != 0 and group["decoupled_weight_decay"]:
            decayed = before_write(p, group) * (1 - lr * decay)
        elif decay != 0:
            grad = grad + p * decay
        step, mean, square = state["step"], state["exp_avg"], state["exp_avg_sq"]
        step.copy_(step + 1)
        mean.copy_(mean + (grad - mean) * (1 - beta1))
        square.copy_(square * beta2 + grad * grad * (1 - beta2))
        count = step.double()
        rate = lr / (1 - beta1**count)
        trusted, factor = _rectification(count, beta2)
        scale = tracejit.where(trusted, rate * factor, rate)
        # a plain momentum step has no denominator
        denominator = tracejit.where(trusted, square.sqrt() + group["eps"], 1.0)
        p.copy_(decayed - mean / denominator * scale)


def _rectification(count: Any, beta2: float) -> tuple[Any, Any]:
    """Return True if the step after `count` gradients is adaptive, and the factor of its rate."""
    longest = 2 / (1 - beta2) - 1
    correction = 1 - beta2**count
    length = longest - 2 * count * beta2**count / correction
    kept = length.clamp(min=5.0)  # shorter ones are not rectified: no root of a negative number
    ratio = (kept - 4) * (kept - 2) * longest / ((longest - 4) * (longest - 2) * kept)
    return length > 5.0, (ratio * correction).sqrt()
