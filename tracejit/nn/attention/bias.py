"""Causal masks by their kind and size, which attention makes where it needs them; PyTorch's
`torch.nn.attention.bias`.

In: to which corner the diagonal is aligned, the numbers of queries and keys. Out: masks, or the
word that attention is causal. `scaled_dot_product_attention` asks a mask `as_argument`.
"""

from __future__ import annotations

import enum
import warnings
from typing import Any

import tracejit

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Corner of the mask where its diagonal starts or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """Causal mask for `scaled_dot_product_attention`, as its `attn_mask`.

    UPPER_LEFT   query i looks at the keys up to i, as with `is_causal=True`
    LOWER_RIGHT  the last query looks at all keys, the one before at all but the last

    The object is no tensor: it prints as one, and attention makes the mask. Raises AssertionError
    for a variant that is no `CausalVariant`.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        # the first queries would look at no key
        if variant == CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn("Lower right causal bias will produce NaNs in the output when "
                          "seq_len_q > seq_len_kv!", stacklevel=2)

    def as_argument(self, device: Any) -> tuple[Any, bool]:
        """Return the `attn_mask` and `is_causal` that mean the same."""
        # in a square mask both corners mean the same diagonal
        if self.variant == CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv:
            return None, True
        return self._materialize(device), False

    def _materialize(self, device: Any = None) -> Any:
        """Return the mask as a tensor: True where a query looks at a key."""
        lower_right = self.variant == CausalVariant.LOWER_RIGHT
        diagonal = self.seq_len_kv - self.seq_len_q if lower_right else 0
        whole = tracejit.ones(self.seq_len_q, self.seq_len_kv, dtype=tracejit.bool, device=device)
        return whole.tril(diagonal)

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Make the mask of `size` (queries, keys) whose diagonal begins in the upper left corner.

    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """Make the mask of `size` (queries, keys) whose diagonal ends in the lower right corner.

    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))


def _two(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size
