"""Multi-head attention as a layer.

In: queries (L, N, E), keys (S, N, kdim) and values (S, N, vdim), or with the batch first, or
without one; masks. Out: (L, N, E), and the weights (N, L, S) where they are wanted.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.attention_backends import SDPBackend, sdpa_kernel  # noqa: F401
from tracejit.nn.init import constant_, xavier_normal_, xavier_uniform_
from tracejit.nn.linear import Linear
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """The `Linear` that PyTorch has behind its attention: the same under another name."""


def added(mask: Any, name: str, like: Any) -> Any:
    """A mask as numbers to be added to scores: -inf where a bool mask says to leave out."""
    if mask is None:
        return None
    if mask.dtype is tracejit.bool:
        return tracejit.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


class MultiheadAttention(Module):
    """softmax(q @ k.T / sqrt(E / heads)) @ v in `num_heads` parts, between projections.

    dropout       of the weights, in training
    add_bias_kv   one more key and value that is learnt; add_zero_attn: one that is zero
    kdim, vdim    sizes of keys and values; None: `embed_dim`
    batch_first   (N, L, E) instead of (L, N, E)

    `forward` takes masks that are True (or -inf, added to the scores) where attention may not go:
    `key_padding_mask` (N, S), `attn_mask` (L, S) or (N * num_heads, L, S).

    >>> import tracejit
    >>> attention = tracejit.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = tracejit.rand(3, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (tracejit.Size([3, 5, 8]), tracejit.Size([3, 5, 5]))
    """

    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim),
        }
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(tracejit.empty(shapes["in_proj_weight"], **kind))
            absent = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        else:
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                setattr(self, name, Parameter(tracejit.empty(shapes[name], **kind)))
            absent = ["in_proj_weight"]
        for name in absent:
            self.register_parameter(name, None)
        if bias:
            self.in_proj_bias = Parameter(tracejit.empty(3 * embed_dim, **kind))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        if add_bias_kv:
            self.bias_k = Parameter(tracejit.empty((1, 1, embed_dim), **kind))
            self.bias_v = Parameter(tracejit.empty((1, 1, embed_dim), **kind))
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        names = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        for weight in (getattr(self, name) for name in names):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                xavier_normal_(extra)

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        """Queries, keys and values, each (length, N, embed_dim)."""
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        if query is key and key is value and self._qkv_same_embed_dim:
            together = F.linear(query, self.in_proj_weight, self.in_proj_bias)
            return list(together.chunk(3, -1))
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _heads(self, x: Any) -> Any:
        """(length, N, embed_dim) as (N * heads, length, head_dim)."""
        length, batch, _ = x.shape
        return x.reshape((length, batch * self.num_heads, self.head_dim)).transpose(0, 1)

    def _mask(self, attn_mask: Any, padding: Any, batch: Any, more: int) -> Any:
        """Both masks as one that can be added to scores (N * heads, L, S)."""
        if attn_mask is not None:
            if attn_mask.dim() == 2:
                attn_mask = attn_mask.unsqueeze(0)
            attn_mask = F.pad(attn_mask, (0, more)) if more else attn_mask
        if padding is None:
            return attn_mask
        padding = F.pad(padding, (0, more)) if more else padding
        keys = padding.shape[1]
        each = padding.reshape((batch, 1, 1, keys)).expand(-1, self.num_heads, -1, -1)
        each = each.reshape((batch * self.num_heads, 1, keys))
        return each if attn_mask is None else attn_mask + each

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        batched = query.dim() == 3
        if query.dim() not in (2, 3):
            raise AssertionError(
                f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D "
                "query tensor"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        alone = query is key and key is value
        if not batched:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if alone:
            key = value = query
        length, batch, _ = query.shape
        q, k, v = self._projected(query, key, value)
        more = 0
        if self.bias_k is not None:
            k = tracejit.cat([k, self.bias_k.expand(-1, batch, -1)])
            v = tracejit.cat([v, self.bias_v.expand(-1, batch, -1)])
            more += 1
        q, k, v = map(self._heads, (q, k, v))
        if self.add_zero_attn:
            zeros = tracejit.zeros_like(k[:, :1])
            k, v = tracejit.cat([k, zeros], 1), tracejit.cat([v, zeros], 1)
            more += 1
        mask = self._mask(
            added(attn_mask, "attn_mask", q), added(key_padding_mask, "key_padding_mask", q),
            batch, more,
        )  # fmt: skip
        dropped = self.dropout if self.training else 0.0
        if need_weights:
            scores = tracejit.bmm(q * math.sqrt(1.0 / self.head_dim), k.transpose(1, 2))
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            weights = F.dropout(weights, dropped) if dropped > 0.0 else weights
            out = tracejit.bmm(weights, v)
        else:
            weights = None
            out = F.scaled_dot_product_attention(q, k, v, mask, dropped)
        out = out.transpose(0, 1).reshape((length, batch, self.embed_dim))
        out = self.out_proj(out)
        if weights is not None:
            weights = weights.reshape((batch, self.num_heads, length, k.shape[1]))
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return out.squeeze(1), None if weights is None else weights.squeeze(0)
        return (out.transpose(0, 1) if self.batch_first else out), weights
