"""RMSprop and Adagrad: steps scaled by the size of past gradients.

In: parameters with gradients. Out: parameters and running squares written in place. PyTorch's
formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, filled_like, require, require_rate, step_counter
from tracejit.sparse.rows import Rows


class RMSprop(Optimizer):
    """Division by the root of a running mean of squares: p <- p - lr * gradient / (sqrt(mean of
    squares) + eps).

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate; default 1e-2
    alpha             share of the mean of squares that each step keeps; default 0.99
    eps               added to the denominator; default 1e-8
    weight_decay      times p is added to the gradient; default 0
    momentum          share of the accumulated steps that stays; default 0
    centered          True: divides by the standard deviation instead
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `square_avg` of its shape, with momentum `momentum_buffer`,
    with centered `grad_avg`, and `step` (). Raises ValueError for negative options. The source is
    Hinton, "Neural networks for machine learning", lecture 6 (2012).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.RMSprop([p], lr=0.05)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.5000], requires_grad=True)
    """

    _begins_with = ("momentum",)
    _counters = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_rate(lr)
        require(eps >= 0, "epsilon value", eps)
        require(momentum >= 0, "momentum value", momentum)
        require(weight_decay >= 0, "weight_decay value", weight_decay)
        require(alpha >= 0, "alpha value", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        made = {
            "step": step_counter(p),
            "square_avg": tracejit.zeros_like(p),
        }
        if group["momentum"] > 0:
            made["momentum_buffer"] = tracejit.zeros_like(p)
        if group["centered"]:
            made["grad_avg"] = tracejit.zeros_like(p)
        return made

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        alpha, square = group["alpha"], state["square_avg"]
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        state["step"].copy_(state["step"] + 1)
        square.copy_(square * alpha + grad * grad * (1 - alpha))
        variance = square
        if group["centered"]:
            mean = state["grad_avg"]
            mean.copy_(mean + (grad - mean) * (1 - alpha))
            # E x^2 - (E x)^2
            variance = square - mean * mean
        change = grad / (variance.sqrt() + group["eps"])
        if "momentum_buffer" in state:
            buffer = state["momentum_buffer"]
            buffer.copy_(buffer * read_scalar(group, "momentum") + change)
            change = buffer
        p.copy_(p - change * read_scalar(group, "lr"))


class Adagrad(Optimizer):
    """Division by the root of the sum of squares: p <- p - lr / (1 + (step - 1) * lr_decay) *
    gradient / (sqrt(sum of squares) + eps).

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate; default 1e-2
    lr_decay          speed with which the rate falls; default 0
    weight_decay      times p is added to the gradient; default 0
    initial_accumulator_value  sum of squares at the start; default 0
    eps               added to the denominator; default 1e-10
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    foreach, fused    PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `sum` of its shape and `step` (), from the start. Sparse
    gradients write only their rows. Raises ValueError for negative options, RuntimeError for weight
    decay of sparse gradients. The source is Duchi, Hazan and Singer, "Adaptive subgradient methods"
    (2011).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Adagrad([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.7500], requires_grad=True)
    """

    _counters = ("step",)
    _refuses_without = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        require_rate(lr)
        require(lr_decay >= 0, "lr_decay value", lr_decay)
        require(weight_decay >= 0, "weight_decay value", weight_decay)
        require(
            initial_accumulator_value >= 0,
            "initial_accumulator_value value",
            initial_accumulator_value,
        )
        require(eps >= 0, "epsilon value", eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                # made at once, as in PyTorch: scripts read it before the first step
                self.state[p] = self._new_state(p, group)

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        start = self.defaults["initial_accumulator_value"]  # also of groups that have their own
        return {
            "step": step_counter(p),
            "sum": filled_like(p, start),
        }

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        step, total = state["step"], state["sum"]
        step.copy_(step + 1)
        total.copy_(total + grad * grad)
        rate = read_scalar(group, "lr") / (1 + (step.double() - 1) * group["lr_decay"])
        p.copy_(p - grad / (total.sqrt() + group["eps"]) * rate)

    def _check_gradient(self, grad: Any) -> None:
        """Sparse gradients are taken too."""

    def _update_rows(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Only rows that have a gradient are read and written."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        step, total = state["step"], state["sum"]
        step.copy_(step + 1)
        rate = read_scalar(group, "lr") / (1 + (step.double() - 1) * group["lr_decay"])
        # duplicates in a sparse gradient count once, as their sum
        rows = Rows(grad)
        rows.add_to(total, rows.values.pow(2))
        scales = rows.of(total).sqrt() + group["eps"]
        rows.add_to(p, -rows.values / scales * rate)
