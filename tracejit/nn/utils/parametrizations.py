"""Parametrizations that layers are often given: weight norm, spectral norm, orthogonal matrices.

In: a module and the name of one of its tensors. Out: the module, its tensor computed from others.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.module import Module
from tracejit.nn.utils.orthogonal import orthogonal
from tracejit.nn.utils.parametrize import register_parametrization
from tracejit.nn.utils.spectral_norm import (
    as_matrix,
    check_iterations,
    default_dim,
    random_direction,
)
from tracejit.nn.utils.weight_norm import norm_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a tensor as its lengths along `dim` (None: one length), `original0`, times its
    direction, `original1`.

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    tracejit.Size([2, 1])

    Raises ValueError for a name that is no tensor of the module.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def renamed(state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Take states saved with `nn.utils.weight_norm`."""
        old = [f"{prefix}{name}_{letter}" for letter in "gv"]
        if all(key in state_dict for key in old):
            for k, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{k}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(renamed)
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        count = weight.dim()
        if not -count <= dim < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{count}, {count - 1}] but "
                f"got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim if dim >= 0 else dim + count
        self.eps = eps
        if count > 1:
            self.n_power_iterations = n_power_iterations
            with tracejit.no_grad():
                matrix = as_matrix(weight, self.dim)
                rows, columns = matrix.shape
                self.register_buffer("_u", random_direction(weight, rows, eps))
                self.register_buffer("_v", random_direction(weight, columns, eps))
                # as often as in PyTorch, so that the first call is near the singular vectors
                self._iterate(matrix, 15)

    def _iterate(self, matrix: Any, count: int) -> None:
        with tracejit.no_grad():
            for _ in range(count):
                u = F.normalize(tracejit.mv(matrix, self._v), dim=0, eps=self.eps)
                self._u.copy_(u)
                v = F.normalize(tracejit.mv(matrix.mH, self._u), dim=0, eps=self.eps)
                self._v.copy_(v)

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # copies: the next iteration overwrites what backward needs
        u, v = self._u.clone(), self._v.clone()
        return weight / tracejit.vdot(u, tracejit.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a tensor by its largest singular value, which power iteration follows.

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
    >>> 0.8 < tracejit.linalg.svdvals(layer.weight)[0].item() < 1.2
    True

    Raises ValueError for a name that is no tensor of the module, or where nothing is iterated.
    """
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    return register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )


def _tensor_of(module: Module, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, tracejit.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight
