"""Orthogonal matrices as functions of matrices without a constraint.

In: a module and the name of one of its matrices. Out: the module, its matrix orthogonal whatever
the optimizer does. Users reach it through `parametrizations.orthogonal`.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn.module import Module
from tracejit.nn.utils.parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """`base` (where there is one) times the image of a matrix, in its taller form."""

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = X.mT
        made = _reflected(X) if self.orthogonal_map == "householder" else self._rotated(X)
        if "base" in self._buffers:
            made = self.base @ made
        return made.mT if wide else made

    def _rotated(self, X: Any) -> Any:
        n, k = X.shape[-2:]
        lower = X.tril()
        if n != k:
            rest = tracejit.zeros((*X.shape[:-2], n, n - k), dtype=X.dtype, device=X.device)
            lower = tracejit.cat([lower, rest], -1)
        # both maps make an orthogonal matrix of a skew one
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            made = tracejit.linalg.matrix_exp(skew)
        else:
            one = tracejit.eye(n, dtype=X.dtype, device=X.device)
            made = tracejit.linalg.solve(one - skew / 2, one + skew / 2)
        return made[..., :k]

    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        if wide:
            Q = Q.mT
        n, k = Q.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            X = _reflectors(Q)
        else:
            rest = tracejit.randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            whole, R = tracejit.linalg.qr(tracejit.cat([Q, rest], -1))
            # with a positive diagonal QR is unique: its first k columns are Q itself
            self.base = whole * R.diagonal(0, -2, -1).sgn().unsqueeze(-2)
            # its image is the identity: the maps ignore the diagonal, reflections take its sign
            X = -tracejit.eye(n, k, dtype=Q.dtype, device=Q.device)
            X = X.expand(tuple(Q.shape)).contiguous()
        return X.mT if wide else X


def _reflected(X: Any) -> Any:
    """Return the product of the reflections at the columns below the diagonal, times its signs."""
    n, k = X.shape[-2:]
    below = X.tril(-1)
    one = tracejit.eye(n, k, dtype=X.dtype, device=X.device)
    v = below + one
    # H1 H2 ... = 1 - V T V', and the inverse of T is the upper half of V'V, half its diagonal.
    inner = v.mT @ v
    upper = inner.triu(1) + tracejit.diag_embed(inner.diagonal(0, -2, -1) / 2)
    made = one - v @ tracejit.linalg.solve(upper, v[..., :k, :].mT)
    return made * X.detach().diagonal(0, -2, -1).trunc().unsqueeze(-2)


def _reflectors(Q: Any) -> Any:
    """Return the columns of Householder's QR decomposition, with signs on the diagonal."""
    result = Q.detach().clone()
    k = Q.shape[-1]
    for j in range(k):
        column = result[..., j:, j].clone()
        rest = column[..., 1:].norm(dim=-1, keepdim=True)
        first = column[..., :1]
        plain = rest == 0
        size = (first * first + rest * rest).sqrt()
        # the sign with which `first - beta` loses no digits
        beta = tracejit.where(plain, first, tracejit.where(first < 0, size, -size))
        scale = tracejit.where(plain, 1, first - beta)
        v = tracejit.cat([tracejit.ones_like(first), column[..., 1:] / scale], -1).unsqueeze(-1)
        tau = tracejit.where(plain, 0, (beta - first) / tracejit.where(plain, 1, beta))
        right = result[..., j:, j:]
        right = right - tau.unsqueeze(-1) * v @ (v.mT @ right)
        result[..., j:, j:] = right
        result[..., j + 1 :, j] = v[..., 1:, 0]
        sign = tracejit.where(plain, -1, 1) * beta.sign()
        result[..., j, j] = sign[..., 0]
    return result


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Make a matrix (..., m, n) orthogonal: its columns, or where it is wide its rows.

    orthogonal_map      "matrix_exp", "cayley" or "householder"; None: the first for square
                        and complex matrices, else the last
    use_trivialization  with a matrix to start from, which is not trained: the tensor's own
                        orthogonal factor

    >>> import tracejit
    >>> nn = tracejit.nn
    >>> Q = nn.utils.parametrizations.orthogonal(nn.Linear(2, 3)).weight
    >>> tracejit.allclose(Q.T @ Q, tracejit.eye(2), atol=1e-5)
    True

    Raises ValueError for a name that is no matrix of the module, and another map.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, tracejit.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(
            "Expected a matrix or batch of matrices. "
            f"Got a tensor of {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
