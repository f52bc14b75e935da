"""Muon: momentum steps whose matrices are made orthogonal first.

In: matrices with gradients. Out: matrices and `momentum_buffer`s written in place. PyTorch's
formulas (Jordan 2024; Liu et al. 2025); the orthogonal matrix is found with bfloat16's values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, require_one_element, should_be


class Muon(Optimizer):
    """Momentum made orthogonal, for matrices: p <- p * (1 - lr * weight_decay) - adjusted lr *
    orthogonal part of the momentum.

    params            parameters (rows, columns), as in `SGD`
    lr                learning rate; default 1e-3
    weight_decay      share, times lr, by which p shrinks; default 0.1
    momentum          share of the momentum that each step keeps; default 0.95
    nesterov          True (default): looks one step ahead
    ns_coefficients, ns_steps  the polynomial that makes singular values 1, and how often it is
                      applied
    eps               least norm that divides; default 1e-7
    adjust_lr_fn      "original" (or None): lr * sqrt(max(1, rows / columns)); "match_rms_adamw":
                      0.2 * lr * sqrt(max(rows, columns))

    The state of each parameter holds `momentum_buffer` of its shape. Raises ValueError for options
    out of range and parameters that are no matrices; RuntimeError, in the first step, for complex
    parameters. The source is Jordan et al., "Muon: an optimizer for hidden layers in neural
    networks" (2024).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.eye(2))
    >>> optimizer = tracejit.optim.Muon([p], lr=1.0, weight_decay=0.0)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p.shape, p.diagonal().abs().max().item() < 0.5
    (tracejit.Size([2, 2]), True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        require_one_element(lr)
        should_be(lr >= 0, "Learning rate", ">= 0", lr)
        should_be(momentum >= 0, "momentum", ">= 0", momentum)
        should_be(weight_decay >= 0, "weight decay", ">= 0", weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with "
                        f"size: {p.shape}"
                    )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": tracejit.zeros_like(p)}

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, momentum = read_scalar(group, "lr"), read_scalar(group, "momentum")
        buffer = state["momentum_buffer"]
        buffer.copy_(buffer + (grad - buffer) * (1 - momentum))
        update = grad + (buffer - grad) * momentum if group["nesterov"] else buffer
        turned = _orthogonal(
            update, group["ns_coefficients"], int(group["ns_steps"]), group["eps"]
        )
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1, rows / columns))
        decayed = p * (1 - lr * group["weight_decay"])
        # exact in the wider of both types, as in PyTorch's addition with a factor
        wide = tracejit.promote_types(p.dtype, tracejit.float32)
        p.copy_(decayed.to(wide) - turned.to(wide) * (lr * factor))


def _orthogonal(matrix: Any, coefficients: tuple, count: int, eps: float) -> Any:
    """Return the matrix with singular values near 1, by Newton-Schulz steps in bfloat16."""
    if count >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    high = matrix.shape[0] > matrix.shape[1]
    # the shorter side is iterated: x @ x.T is smaller
    if high:
        x = x.T
    # the iteration converges for singular values up to about 1
    x = x / x.norm().clamp(min=eps)
    for _ in range(count):
        gram = x @ x.T
        x = tracejit.addmm(x, tracejit.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if high else x
