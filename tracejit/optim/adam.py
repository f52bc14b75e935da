"""Adam and AdamW.

In: parameters with gradients. Out: parameters, moments (`exp_avg`, `exp_avg_sq`) and `step` written
in place. PyTorch's formulas; bias corrections are float64 arithmetic on the 0-dim `step`, never
Python numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

import tracejit
from tracejit.core.ops.optimizer_steps import adam_step
from tracejit.core.ops.record import apply
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim import at_once
from tracejit.optim.optimizer import (
    Optimizer,
    before_write,
    require_means,
    require_one_element,
    step_counter,
)


class Adam(Optimizer):
    """Adaptive moments: p <- p - lr * mean / (sqrt(mean of squares) + eps). Both means are
    corrected for their start at zero.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                learning rate, a number or a tensor of one element; default 1e-3
    betas             share of the mean, and of the mean of squares, that each step keeps; default
                      (0.9, 0.999)
    eps               added to the denominator; default 1e-8
    weight_decay      times p is added to the gradient; default 0
    amsgrad           True: divides by the largest mean of squares seen
    decoupled_weight_decay  True: shrinks p instead, as `AdamW` does
    maximize          True: ascends; default False
    differentiable    True: the step itself is recorded for gradients; default False
    foreach, fused, capturable  PyTorch's ways to run a step, checked as there; not needed here

    The state of each parameter holds `exp_avg` and `exp_avg_sq` of its shape, with amsgrad
    `max_exp_avg_sq`, and `step` (). Raises ValueError for options out of range, RuntimeError in a
    step with sparse gradients. The sources are Kingma and Ba, "Adam" (2014), and Reddi, Kale and
    Kumar, "On the convergence of Adam and beyond" (2018).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.Adam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.5000], requires_grad=True)
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
        numbers = (lr, beta1, beta2, decay, group["eps"])
        if not (group["amsgrad"] or group.get("differentiable")) and at_once.may_run(
            (p, grad, state["exp_avg"], state["exp_avg_sq"]), numbers
        ):
            self._update_at_once(p, grad, group, state)
            return
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


    def _update_at_once(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]
                        ) -> None:
        """Do the same by one op on all elements, whose arithmetic is that of `_update`."""
        lr, decay, beta1, beta2 = map(float, (group["lr"], group["weight_decay"], *group["betas"]))
        step = state["step"]
        step.copy_(step + 1)
        step_size, correction = _corrected(step.item(), lr, beta1, beta2)
        decoupled = bool(group["decoupled_weight_decay"])
        tensors = p, grad, state["exp_avg"], state["exp_avg_sq"]
        numbers = (1 - lr * decay, decay, 1 - beta1, beta2, 1 - beta2, correction,
                   float(group["eps"]), step_size)
        kinds = {"decayed": decay != 0 and decoupled, "added": decay != 0 and not decoupled}
        if at_once.update(adam_step, tensors, numbers, kinds, (0, 2, 3)):
            return
        found = apply(adam_step, (*tensors, *numbers), kinds)
        for old, new in zip((state["exp_avg"], state["exp_avg_sq"], p), (*found[1:], found[0])):
            old.copy_(new)


@functools.lru_cache(maxsize=64)
def _corrected(count: float, lr: float, beta1: float, beta2: float) -> tuple[float, float]:
    """Return the step size and the root's correction, computed as `_update` does: by NumPy."""
    number = np.asarray(count)
    return (float(lr / (1 - np.power(beta1, number))),
            float(np.sqrt(1 - np.power(beta2, number))))


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly: p <- p * (1 - lr * weight_decay)
    first.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr, betas, eps, amsgrad, maximize  as in `Adam`
    weight_decay      share, times lr, by which p shrinks; default 0.01

    The state is that of `Adam`, and so are the errors. The source is Loshchilov and Hutter,
    "Decoupled weight decay regularization" (2019).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.AdamW([p], lr=0.5, weight_decay=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.2500], requires_grad=True)
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
