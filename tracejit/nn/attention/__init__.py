"""Multi-head attention as a layer.

In: queries (L, N, E), keys (S, N, kdim) and values (S, N, vdim), or with the batch first, or
without one; masks. Out: (L, N, E), and the weights (N, L, S) where they are wanted.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.attention_backends import SDPBackend, sdpa_kernel  # noqa: F401
from tracejit.nn.init import constant_, xavier_normal_, xavier_uniform_
from tracejit.nn.linear import Linear
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter

WARN_FOR_UNFUSED_KERNELS = False  # there is one kernel, which is never missed


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch uses behind its attention."""


class MultiheadAttention(Module):
    """Attention softmax(q @ k.T / sqrt(E / heads)) @ v, in `num_heads` parts between projections.

    embed_dim, num_heads  features E, and the heads that divide them
    dropout           probability of the weights, in training; default 0
    bias              False: no biases of the projections; default True
    add_bias_kv       True: one more key and value that is learnt
    add_zero_attn     True: one more key and value that is zero
    kdim, vdim        sizes of keys and values; None (default): E
    batch_first       True: (N, L, E) instead of (L, N, E)

    Parameters: `in_proj_weight` (3 * E, E), or with kdim or vdim three of their own, `in_proj_bias`
    (3 * E,), and those of `out_proj`, a `Linear`. Inputs: query (L, N, E), key (S, N, kdim), value
    (S, N, vdim), or each without N. `key_padding_mask` (N, S) and `attn_mask` (L, S) or (N *
    num_heads, L, S) hide where they are True or -inf. A call returns the output (L, N, E) and the
    weights (N, L, S), None without `need_weights`. Raises ValueError for sizes below 1,
    AssertionError where the heads do not divide E. The source is Vaswani et al., "Attention is all
    you need" (2017).

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
        # registered as None: programs ask for PyTorch's names
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
        alone = query is key and key is value
        if batched and self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
            # one object still: the function then projects all three by one product
            if alone:
                key = value = query
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal)  # fmt: skip
        return (out.transpose(0, 1) if batched and self.batch_first else out), weights
