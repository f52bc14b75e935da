"""ASGD: gradient descent with a decaying rate, and the average of the parameters beside it.

In: parameters with gradients. Out: parameters, their average `ax`, and the rates of the next step
(`eta`, `mu`) written in place. PyTorch's formulas (Polyak and Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.idioms import _get_scalar_dtype
from tracejit.optim.optimizer import Optimizer, before_write, require, require_rate
from tracejit.optim.state import first_rate


class ASGD(Optimizer):
    """Averaged stochastic gradient descent: p <- p * (1 - lambd * eta) - eta * gradient, and the
    mean of all p from step t0 on. The rate eta is lr / (1 + lambd * lr * step)^alpha.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate of the first step; default 1e-2
    lambd             decay of parameters and of the rate; default 1e-4
    alpha             power with which eta falls; default 0.75
    t0                the step from which on parameters are averaged, into `state[p]["ax"]`; default
                      1e6
    weight_decay      times p is added to the gradient; default 0
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `ax` of its shape, `eta`, `mu` and `step` (). Raises
    ValueError for a negative rate or weight decay. The source is Polyak and Juditsky, "Acceleration
    of stochastic approximation by averaging" (1992).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.ASGD([p], lr=0.25, lambd=0.0)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.5000], requires_grad=True)
    """

    _begins_with = ("lr",)
    _counters = ("step", "eta", "mu")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        require_rate(lr)
        require(weight_decay >= 0, "weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        options = {"dtype": _get_scalar_dtype(), "device": p.device}
        return {
            "step": tracejit.zeros((), **options),
            "eta": tracejit.full((), first_rate(group), **options),
            "mu": tracejit.ones((), **options),
            "ax": tracejit.zeros_like(p),
        }

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, lambd = read_scalar(group, "lr"), group["lambd"]
        step, average = state["step"], state["ax"]
        eta = before_write(state["eta"], group).double()
        mu = before_write(state["mu"], group).double()
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        step.copy_(step + 1)
        p.copy_(p * (1 - lambd * eta) - grad * eta)
        # mu is 1 until step t0: the average is the parameter itself, without rounding
        average.copy_(tracejit.where(mu == 1, p, average + (p - average) * mu))
        count = step.double()
        rated = step if group.get("foreach") else count  # PyTorch's foreach computes in the step's
        # Both are as exact as the step, also where a loaded state has them in another dtype. They
        # are constants to backward.
        rate = lr / (1 + lambd * lr * rated) ** group["alpha"]
        state["eta"].copy_(rate.detach().to(step.dtype).reshape(()))
        state["mu"].copy_((1 / (count - group["t0"]).clamp(min=1.0)).to(step.dtype))
