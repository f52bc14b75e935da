"""Adafactor: steps scaled by row and column means of squared gradients, which take little memory.

In: parameters with gradients. Out: parameters and means written in place. PyTorch's formulas
(Shazeer and Stern 2018, with its own use of `lr` and of the first eps).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, require_one_element, should_be, step_counter


class Adafactor(Optimizer):
    """Adam with little memory: p <- p - step size * gradient / root of its mean square. For a
    matrix the mean square is the product of row and column means.

    params            parameters: an iterable of tensors of any shape, of (name, tensor), or of
                      dicts with options
    lr                the largest step relative to a parameter's size, and the rate of weight decay;
                      default 1e-2
    beta2_decay       mean squares keep 1 - step**beta2_decay of what they were; default -0.8
    eps               the least root mean square (None: the dtype's eps), and the least size of a
                      parameter
    d                 updates whose root mean square is larger are scaled down; default 1
    weight_decay      share, times lr, by which p shrinks; default 0
    foreach, maximize  as in `Adam`

    The state of a parameter (..., m, n) holds `row_var` (..., m, 1) and `col_var` (..., 1, n), of a
    vector `variance` of its shape, and `step` (). Raises ValueError for options out of range;
    RuntimeError, in the first step, for complex parameters. The source is Shazeer and Stern,
    "Adafactor" (2018).

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.ones(2, 2))
    >>> optimizer = tracejit.optim.Adafactor([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p[0, 0].item()
    0.75
    """

    _counters = ("step",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        require_one_element(lr)
        should_be(lr >= 0, "Learning rate", ">= 0", lr)
        should_be(beta2_decay <= 0, "beta2_decay", "<= 0", beta2_decay)
        should_be(eps[0] is None or eps[0] >= 0, "epsilon1", ">= 0", eps[0])
        should_be(eps[1] >= 0, "epsilon2", ">= 0", eps[1])
        should_be(d >= 1, "Clipping threshold d", ">= 1", d)
        should_be(weight_decay >= 0, "weight_decay", ">= 0", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        step = step_counter(p)
        if p.dim() < 2:
            return {"step": step, "variance": tracejit.zeros_like(p)}
        return {
            "step": step,
            "row_var": tracejit.zeros_like(p[..., :1]),
            "col_var": tracejit.zeros_like(p[..., :1, :]),
        }

    def _update_group(self, group: dict[str, Any]) -> None:
        if group.get("foreach"):
            self._refuse_empty(group)
        super()._update_group(group)

    def _refuse_empty(self, group: dict[str, Any]) -> None:
        """Raise ZeroDivisionError before PyTorch's foreach moves any parameter of the empty one's
        kind. Vectors and matrices of a dtype move together, in the order of their first."""
        kinds: dict[Any, list[Any]] = {}
        for p in group["params"]:
            if p.grad is not None:
                kinds.setdefault((p.dtype, p.dim() > 1), []).append(p)
        for k, alike in enumerate(kinds.values()):
            if any(p.numel() == 0 for p in alike):
                before = [p for each in [*kinds.values()][:k] for p in each]
                super()._update_group({**group, "params": before})
                for p in alike:
                    # PyTorch's foreach counts the step before it divides
                    self.state[p]["step"].add_(1)
                raise ZeroDivisionError("float division by zero")

    def _update(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        lr, (least, smallest) = read_scalar(group, "lr"), group["eps"]
        if least is None:
            least = tracejit.finfo(p.dtype).eps
        state["step"].copy_(state["step"] + 1)
        if p.numel() == 0:
            raise ZeroDivisionError("float division by zero")  # PyTorch's mean of no elements
        count = state["step"].double()
        fresh = count ** group["beta2_decay"]
        rate = 1 / count.sqrt()
        # `where`, not `min`: the step is known to the program only
        rate = tracejit.where(rate < lr, rate, lr)
        size = (p * p).mean().sqrt().clamp(min=smallest) * rate
        decayed = p if group["weight_decay"] == 0 else p * (1 - lr * group["weight_decay"])
        update = grad * self._variance(grad, fresh, least, state).clamp(min=least**2).rsqrt()
        excess = (update * update).mean().sqrt() / group["d"]
        p.copy_(decayed - update * (size / excess.clamp(min=1.0)))

    def _variance(self, grad: Any, fresh: Any, least: float, state: dict[str, Any]) -> Any:
        square = grad * grad
        if grad.dim() < 2:
            kept = state["variance"]
            kept.copy_(kept + (square - kept) * fresh)
            return kept
        rows, columns = state["row_var"], state["col_var"]
        rows.copy_(rows + (square.mean(-1, keepdim=True) - rows) * fresh)
        columns.copy_(columns + (square.mean(-2, keepdim=True) - columns) * fresh)
        # the product is of degree two in the squares: divided by their mean
        return rows * columns / rows.mean(-2, keepdim=True).clamp(min=least)
