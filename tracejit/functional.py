"""PyTorch's `torch.functional`: the functions that it writes in Python, which the package has."""

from tracejit import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_tensors,
    cartesian_prod,
    einsum,
    meshgrid,
    norm,
    split,
    tensordot,
    unique,
    unique_consecutive,
)
from tracejit.core.ops import sealing as _sealing

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "cartesian_prod", "einsum",
    "meshgrid", "norm", "split", "tensordot", "unique", "unique_consecutive",
]  # fmt: skip

_sealing.seal_all(globals())
