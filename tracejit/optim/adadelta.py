"""Adadelta and Rprop: steps whose size follows from the gradients alone.

In: parameters with gradients. Out: parameters and what is remembered of gradients, written in
place. Formulas: Zeiler (2012); Riedmiller and Braun (1993), as PyTorch writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, filled_like, require, require_rate, step_counter
from tracejit.optim.state import first_rate


class Adadelta(Optimizer):
    """p <- p - lr * gradient * sqrt(mean of squared steps + eps) / sqrt(mean of squares + eps).

    rho  how much of both means is kept in each step

    Raises ValueError for options out of range.
    """

    _counters = ("step",)
    _refuses_without = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_rate(lr)
        require(0 <= rho <= 1, "rho value", rho)
        require(eps >= 0, "epsilon value", eps)
        require(weight_decay >= 0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": step_counter(p),
                **{n: tracejit.zeros_like(p) for n in ("square_avg", "acc_delta")}}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        square, steps = state["square_avg"], state["acc_delta"]
        state["step"].copy_(state["step"] + 1)
        square.copy_(square * rho + grad * grad * (1 - rho))
        # steps of earlier updates only: this one is counted after it is used
        change = (steps + eps).sqrt() / (square + eps).sqrt() * grad
        steps.copy_(steps * rho + change * change * (1 - rho))
        p.copy_(p - change * read_scalar(group, "lr"))


class Rprop(Optimizer):
    """Steps grow by etas[1] while a gradient keeps its sign and shrink by etas[0] when it turns,
    within `step_sizes`. Only the signs of gradients count.

    Raises ValueError for options out of range.
    """

    _begins_with = ("lr",)
    _counters = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": step_counter(p),
            "prev": tracejit.zeros_like(p),
            "step_size": filled_like(p, first_rate(group)),
        }

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        before, size = state["prev"], state["step_size"]
        read_scalar(group, "lr")  # it does not matter here: a schedule may change it
        state["step"].copy_(state["step"] + 1)
        turned = grad * before
        smaller = tracejit.where(turned < 0, size * shrink, size)
        size.copy_(tracejit.where(turned > 0, size * grow, smaller).clamp(least, most))
        used = tracejit.where(turned < 0, 0, grad)  # a step that went too far is not taken again
        p.copy_(p - used.sign() * size)
        before.copy_(used)
