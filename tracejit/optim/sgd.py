"""Stochastic gradient descent, with momentum, weight decay and Nesterov's variant.

In: parameters with gradients. Out: parameters and `momentum_buffer`s written in place. PyTorch's
formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.core.ops.optimizer_steps import sgd_momentum_step, sgd_step
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim import at_once
from tracejit.optim.optimizer import Optimizer, require, require_rate


class SGD(Optimizer):
    """Stochastic gradient descent: p <- p - lr * buffer, buffer <- momentum * buffer + (1 -
    dampening) * gradient.

    params          parameters: an iterable of tensors of any shape, of (name, tensor), or of dicts
                    with options
    lr              learning rate, a number; default 1e-3
    momentum        share of the buffer that stays; default 0: the plain gradient takes the buffer's
                    place
    dampening       share of the gradient left out; has no effect on the first step, as in PyTorch
    weight_decay    times p is added to the gradient; default 0
    nesterov        True: steps along gradient + momentum * buffer
    maximize        True: ascends; default False
    differentiable  True: the step itself is recorded for gradients; default False
    foreach, fused  PyTorch's ways to run a step, checked as there; not needed here

    With momentum the state of each parameter holds `momentum_buffer` of the same shape. Sparse
    gradients write only their rows. Raises ValueError for negative options, and for nesterov
    without momentum or with dampening. The source is Sutskever et al., "On the importance of
    initialization and momentum" (2013).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.tensor([1.0]))
    >>> optimizer = tracejit.optim.SGD([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    Parameter containing:
    tensor([0.5000], requires_grad=True)
    """

    _begins_with = ("momentum", "dampening")
    _unsaved = ("started",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        require_rate(lr)
        require(momentum >= 0, "momentum value", momentum)
        require(weight_decay >= 0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _refuse_foreach(self, group: dict[str, Any]) -> None:
        """PyTorch's foreach of this class runs on the tape."""

    def _keeps_state(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"] != 0)

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        if group["momentum"] == 0:
            return {}
        made = {"momentum_buffer": tracejit.zeros_like(p)}
        if group["dampening"] != 0 or group.get("differentiable"):
            # The first step is not dampened, and its gradient is a constant to the buffer: told
            # by a tensor, so that no step branches on it.
            made["started"] = tracejit.zeros((), dtype=p.dtype, device=p.device)
        return made

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        tensors = (p, grad, state["momentum_buffer"]) if "momentum_buffer" in state else (p, grad)
        numbers = group["weight_decay"], group["momentum"], group["lr"]
        other = group["dampening"] != 0 or "started" in state or group.get("differentiable")
        if not other and at_once.may_run(tensors, numbers) and self._updated_at_once(
            tensors, numbers, group
        ):
            return
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]
        if "momentum_buffer" in state:
            grad = self._with_momentum(grad, group, state)
        p.copy_(p - grad * read_scalar(group, "lr"))

    def _updated_at_once(
        self, tensors: tuple[Any, ...], numbers: tuple[Any, ...], group: dict[str, Any]
    ) -> bool:
        """Do the same by one op on all elements. Return False where nothing was done."""
        decay, momentum, rate = map(float, numbers)
        if len(tensors) == 3:
            kinds = {"decayed": decay != 0, "nesterov": bool(group["nesterov"])}
            return at_once.update(
                sgd_momentum_step, tensors, (decay, momentum, rate), kinds, (0, 2)
            )
        return at_once.update(sgd_step, tensors, (decay, rate), {"decayed": decay != 0}, (0,))

    def _check_gradient(self, grad: Any) -> None:
        """Take sparse gradients too."""

    def _update_rows(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Only rows that have a gradient are written; all of them where there is momentum."""
        if group["weight_decay"] != 0:
            grad = grad + p * group["weight_decay"]  # refused, as in PyTorch
        if "momentum_buffer" in state:
            self._update(p, grad.to_dense(), group, state)
        else:
            (grad * -read_scalar(group, "lr")).add_into(p)

    def _with_momentum(self, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> Any:
        momentum, dampening = read_scalar(group, "momentum"), group["dampening"]
        buffer, fresh = state["momentum_buffer"], grad
        if "started" in state:
            if group.get("differentiable"):
                fresh = tracejit.where(state["started"] == 0, grad.detach(), grad)
            fresh = fresh * (1 - state["started"] * dampening)
            state["started"].fill_(1)
        elif dampening != 0:
            fresh = grad * (1 - dampening)
        buffer.copy_(buffer * momentum + fresh)
        return grad + buffer * momentum if group["nesterov"] else buffer
