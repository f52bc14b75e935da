"""SparseAdam: Adam of those elements that a sparse gradient has.

In: parameters. Out: nothing: gradients are dense here, and a dense gradient is an error, as in
PyTorch. The class is there for programs that choose an optimizer by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracejit.optim.optimizer import Optimizer, require, require_rate


class SparseAdam(Optimizer):
    """Adam for sparse gradients; arguments as for Adam.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.ones(1))
    >>> optimizer = tracejit.optim.SparseAdam([p])
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    Traceback (most recent call last):
    RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead

    Raises ValueError for options out of range; RuntimeError in a step with dense gradients.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        require_rate(lr)
        require(eps > 0, "epsilon value", eps)
        require(0 <= betas[0] < 1, "beta parameter at index 0", betas[0])
        require(0 <= betas[1] < 1, "beta parameter at index 1", betas[1])
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [[g, k] for g, group in enumerate(self.param_groups)
                  for k, p in enumerate(group["params"]) if p.is_complex()]
        if places:
            raise ValueError(f"Complex params at indices {places}: SparseAdam does not support "
                             "complex parameters")

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )
