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
    """Steps in the units of the parameter: p <- p - lr * gradient * sqrt(mean of squared steps +
    eps) / sqrt(mean of squares + eps).

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                factor of steps; default 1
    rho               share of both means that each step keeps; default 0.9
    eps               added under both roots; default 1e-6
    weight_decay      times p is added to the gradient; default 0
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `square_avg` and `acc_delta` of its shape, and `step` ().
    Raises ValueError for options out of range. The source is Zeiler, "ADADELTA: an adaptive
    learning rate method" (2012).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Adadelta([p], eps=1e-2)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.6877], requires_grad=True)
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
    """Resilient backpropagation: steps of each element grow by etas[1] while its gradient keeps its
    sign, and shrink by etas[0] when it turns. Only the signs of gradients count.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                size of the first steps; default 1e-2
    etas              factors, the first below 1 and the second above; default (0.5, 1.2)
    step_sizes        least and largest step; default (1e-6, 50)
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `prev` and `step_size` of its shape, and `step` (). It is for
    gradients of whole data sets. Raises ValueError for options out of range. The source is
    Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Rprop([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.7500], requires_grad=True)
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
