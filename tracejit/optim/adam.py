"""Adam and AdamW.

In: parameters with gradients. Out: parameters, moments (`exp_avg`, `exp_avg_sq`) and `step` written
in place. PyTorch's formulas; bias corrections are float64 arithmetic on the 0-dim `step`, never
Python numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import (
    Optimizer,
    before_write,
    require_means,
    require_one_element,
    step_counter,
)


class Adam(Optimizer):
    """p <- p - lr * mean / (sqrt(mean of squares) + eps). Both means are corrected for their start
    at zero.

    lr            learning rate, a number
    betas         share of the mean, and of the mean of squares, that each step keeps
    eps           added to the denominator
    weight_decay  times p is added to the gradient (decoupled_weight_decay: shrinks p, as AdamW's)
    amsgrad       divides by the largest mean of squares seen
    maximize      ascends

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Adam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> round(p.item(), 4)
    0.5

    Raises ValueError for options out of range.
    """

    _counters = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        require_one_element(lr)
        if foreach and isinstance(lr, tracejit.Tensor) and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        require_means(lr, betas, eps, weight_decay)
        # PyTorch refuses a mixture of both kinds
        for kind in (float, tracejit.Tensor):
            if all(isinstance(beta, kind) for beta in betas):
                break
        else:
            raise ValueError("betas must be either both floats or both Tensors")
        if isinstance(betas[0], tracejit.Tensor) and foreach and not capturable:
            raise ValueError(
                "betas[0] as a Tensor is not supported for capturable=False and foreach=True"
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _check_gradient(self, grad: Any) -> None:
        if grad.is_sparse:
            raise RuntimeError(
                "Adam does not support sparse gradients, please consider SparseAdam instead"
            )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if group["amsgrad"] else ())
        return {"step": step_counter(p), **{name: tracejit.zeros_like(p) for name in names}}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, decay = read_scalar(group, "lr"), group["weight_decay"]
        beta1, beta2 = read_scalar(group, "betas")
        decayed = p
        if decay != 0 and group["decoupled_weight_decay"]:
            decayed = before_write(p, group) * (1 - lr * decay)
        elif decay != 0:
            grad = grad + before_write(p, group) * decay
        step, mean, square = state["step"], state["exp_avg"], state["exp_avg_sq"]
        step.copy_(step + 1)
        mean.copy_(mean + (grad - mean) * (1 - beta1))
        square.copy_(before_write(square, group) * beta2 + grad * grad * (1 - beta2))
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(tracejit.maximum(before_write(largest, group), square))
            square = largest
        # beta**step in float32 would lose digits of 1 - beta**step
        count = step.double()
        step_size = lr / (1 - beta1**count)
        denominator = square.sqrt() / (1 - beta2**count).sqrt() + group["eps"]
        p.copy_(decayed - mean / denominator * step_size)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p <- p * (1 - lr * weight_decay)
    first.

    Arguments as for Adam; `weight_decay` is 0.01 unless told.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
