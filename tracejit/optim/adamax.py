"""Adamax and NAdam: Adam with the largest gradient instead of the mean square, and with Nesterov's
momentum.

In: parameters with gradients. Out: parameters and running means written in place. Formulas: Kingma
and Ba (2015), section 7.1, and Dozat (2016), as PyTorch writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.idioms import _get_scalar_dtype
from tracejit.optim.optimizer import (
    Optimizer,
    before_write,
    require,
    require_means,
    step_counter,
)


class Adamax(Optimizer):
    """Adam with the largest gradient instead of a mean of squares: p <- p - lr / (1 - beta1^step) *
    mean / largest. There `largest` is a decaying maximum of |gradient| + eps.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate; default 2e-3
    betas             share of the mean, and of the largest gradient, that each step keeps; default
                      (0.9, 0.999)
    eps               added to gradients in the maximum; default 1e-8
    weight_decay      times p is added to the gradient; default 0
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `exp_avg` and `exp_inf` of its shape, and `step` (). Raises
    ValueError for options out of range. The source is Kingma and Ba, "Adam" (2014), section 7.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Adamax([p], lr=0.25)
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
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        require_means(lr, betas, eps, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": step_counter(p),
                **{n: tracejit.zeros_like(p) for n in ("exp_avg", "exp_inf")}}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        beta1, beta2 = read_scalar(group, "betas")
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        step, mean, largest = state["step"], state["exp_avg"], state["exp_inf"]
        step.copy_(step + 1)
        mean.copy_(mean + (grad - mean) * (1 - beta1))
        largest.copy_(tracejit.maximum(largest * beta2, grad.abs() + group["eps"]))
        # corrects the mean for its start at zero; the maximum needs no correction
        rate = read_scalar(group, "lr") / (1 - beta1 ** step.double())
        p.copy_(p - mean / largest * rate)


class NAdam(Optimizer):
    """Adam that looks ahead, with Nesterov's momentum: the step mixes gradient and mean by momenta
    that grow: beta1 * (1 - 0.96^(step * momentum_decay) / 2).

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate; default 2e-3
    betas             share of the mean, and of the mean of squares, that each step keeps; default
                      (0.9, 0.999)
    eps               added to the denominator; default 1e-8
    weight_decay      times p is added to the gradient; default 0
    momentum_decay    speed with which momenta grow; default 4e-3
    decoupled_weight_decay  True: shrinks p instead, as `AdamW` does
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    capturable, foreach  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `exp_avg` and `exp_avg_sq` of its shape, `mu_product` and
    `step` (). Raises ValueError for options out of range. The source is Dozat, "Incorporating
    Nesterov momentum into Adam" (2016).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.NAdam([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.7359], requires_grad=True)
    """

    _counters = ("step", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        require_means(lr, betas, eps, weight_decay)
        require(momentum_decay >= 0, "momentum_decay value", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        made = {
            "step": step_counter(p),
            "mu_product": tracejit.ones((), dtype=_get_scalar_dtype(), device=p.device),
        }
        return {**made, **{n: tracejit.zeros_like(p) for n in ("exp_avg", "exp_avg_sq")}}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, decay = read_scalar(group, "lr"), group["weight_decay"]
        beta1, beta2 = read_scalar(group, "betas")
        moved = p
        if decay != 0 and group["decoupled_weight_decay"]:
            moved = before_write(p, group) * (1 - lr * decay)
        elif decay != 0:
            grad = grad + p * decay
        step, product = state["step"], state["mu_product"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        step.copy_(step + 1)
        count, fading = step.double(), group["momentum_decay"]
        # Dozat's schedule of the momentum, for this step and the following
        now = beta1 * (1 - 0.5 * 0.96 ** (count * fading))
        following = beta1 * (1 - 0.5 * 0.96 ** ((count + 1) * fading))
        product.copy_(product * now.to(product.dtype))  # a loaded state has the parameter's dtype
        mean.copy_(mean + (grad - mean) * (1 - beta1))
        square.copy_(square * beta2 + grad * grad * (1 - beta2))
        denominator = (square / (1 - beta2**count)).sqrt() + group["eps"]
        whole = product.double()
        moved = moved - grad / denominator * (lr * (1 - now) / (1 - whole))
        p.copy_(moved - mean / denominator * (lr * following / (1 - whole * following)))
