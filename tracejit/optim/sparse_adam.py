"""SparseAdam: Adam of those rows that a sparse gradient has.

In: parameters with sparse gradients, as those of `nn.Embedding(sparse=True)`. Out: their rows, and
those of the running means, written in place; other rows stay as they are. PyTorch's formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.jit.capture.scalars import read_scalar
from tracejit.optim.optimizer import Optimizer, require, require_rate
from tracejit.sparse.rows import Rows


class SparseAdam(Optimizer):
    """Adam for sparse gradients: means and parameters change only in rows that have a gradient.

    params    parameters: an iterable of tensors of any shape, of (name, tensor), or of dicts with
              options
    lr        learning rate, a number; default 1e-3
    betas     share of the mean, and of the mean of squares, that each step keeps; default (0.9,
              0.999)
    eps       added to the denominator; default 1e-8
    maximize  True: ascends; default False

    The state is that of `Adam`. Gradients come from `Embedding` with `sparse=True`. Raises
    ValueError for options out of range and complex parameters; RuntimeError in a step with dense
    gradients.

    >>> import tracejit
    >>> layer = tracejit.nn.Embedding(3, 2, sparse=True, _weight=tracejit.zeros(3, 2))
    >>> optimizer = tracejit.optim.SparseAdam(layer.parameters(), lr=0.5)
    >>> layer(tracejit.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> layer.weight.round(decimals=3).tolist()
    [[0.0, 0.0], [-0.5, -0.5], [0.0, 0.0]]
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

    def _check_gradient(self, grad: Any) -> None:
        """Raise RuntimeError for dense gradients."""
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )

    def _new_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": tracejit.zeros_like(p),
                "exp_avg_sq": tracejit.zeros_like(p)}  # fmt: skip

    def _update_rows(self, p: Any, grad: Any, group: dict[str, Any], state: dict[str, Any]) -> None:
        rows, (beta1, beta2) = Rows(grad), group["betas"]
        state["step"] += 1
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        held, new = (rows.of(mean), rows.of(square)), rows.values
        # as differences: `add_to` adds to the values that rows hold
        change = (new - held[0]) * (1 - beta1), (new * new - held[1]) * (1 - beta2)
        rows.add_to(mean, change[0])
        rows.add_to(square, change[1])
        step = state["step"]
        rate = read_scalar(group, "lr") * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        root = (change[1] + held[1]).sqrt() + group["eps"]
        rows.add_to(p, -rate * ((change[0] + held[0]) / root))
