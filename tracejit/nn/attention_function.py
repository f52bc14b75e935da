"""Multi-head attention as a function of its weights: `nn.functional.multi_head_attention_forward`.

In: queries (L, N, E), keys (S, N, kdim) and values (S, N, vdim), or without N; weights; masks. Out:
(L, N, E), and the weights of values (N, L, S) where they are wanted. Called by
`nn.MultiheadAttention`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import tracejit
from tracejit.core.ops.composite import scaled_dot_product_attention
from tracejit.core.ops.dropout import dropout
from tracejit.core.ops.linalg import linear
from tracejit.core.ops.padding import pad
from tracejit.core.ops.softmax import softmax


def canonical(mask: Any, name: str, like: Any, other: Any = None, other_name: str = "") -> Any:
    """Return a mask as numbers to be added to scores: -inf where a bool mask is True.

    Warn where the other mask has another dtype.
    """
    if mask is None:
        return None
    if mask.dtype is not tracejit.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same "
                      "type for both instead.", stacklevel=3)
    if mask.dtype is tracejit.bool:
        return tracejit.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)
    return mask


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Return (result, weights or None) for (L, N, E) and (S, N, E). See `nn.MultiheadAttention`,
    whose weights these are.

    static_k, static_v  (N * num_heads, S, E / num_heads): keys and values that are not computed

    >>> import tracejit
    >>> x, eye, zero = tracejit.ones(3, 1, 2), tracejit.eye(2), tracejit.zeros(2)
    >>> w, b = tracejit.cat([eye, eye, eye]), tracejit.zeros(6)
    >>> out, weights = tracejit.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w, b, None, None, False, 0.0, eye, zero)
    >>> out.shape, weights.shape
    (tracejit.Size([3, 1, 2]), tracejit.Size([1, 3, 3]))
    """
    batched = query.dim() == 3
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D "
            "query tensor"
        )
    _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the "
                           "Transformer module method `generate_square_subsequent_mask` to create "
                           "this mask.")
    # with padding, or where weights are returned, the mask itself is added
    is_causal = is_causal and key_padding_mask is None and not need_weights
    if is_causal:
        attn_mask = None
    if query.shape[-1] != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got "
                             f"{query.shape[-1]}")
    if embed_dim_to_check % num_heads:
        raise AssertionError(f"embed_dim {embed_dim_to_check} not divisible by num_heads "
                             f"{num_heads}")
    _check_sizes(query, key, value, attn_mask, num_heads, use_separate_proj_weight)
    alone = query is key and key is value
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if alone:
        key = value = query
    length, batch, size = query.shape
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    more = 0
    if bias_k is not None and bias_v is not None:
        for static, what in ((static_k, "key"), (static_v, "value")):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {what}.")
        k = tracejit.cat([k, bias_k.repeat(1, batch, 1)])
        v = tracejit.cat([v, bias_v.repeat(1, batch, 1)])
        more += 1
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else static_k
    v = _heads(v, num_heads) if static_v is None else static_v
    if add_zero_attn:
        zeros = tracejit.zeros_like(k[:, :1])
        k, v = tracejit.cat([k, zeros], 1), tracejit.cat([v, zeros], 1)
        more += 1
    mask = _together(
        canonical(attn_mask, "attn_mask", q),
        canonical(key_padding_mask, "key_padding_mask", q, attn_mask, "attn_mask"),
        batch, k.shape[1], num_heads, more,
    )  # fmt: skip
    dropped = dropout_p if training else 0.0
    if need_weights:
        # q is scaled and not the product, as in PyTorch: it rounds alike
        scores = tracejit.bmm(q * math.sqrt(1.0 / (size // num_heads)), k.transpose(1, 2))
        found = softmax(scores if mask is None else scores + mask, -1)
        found = dropout(found, dropped) if dropped > 0.0 else found
        out = tracejit.bmm(found, v)
    else:
        found = None
        out = scaled_dot_product_attention(q, k, v, mask, dropped, is_causal)
    out = linear(out.transpose(0, 1).reshape((length, batch, size)), out_proj_weight, out_proj_bias)
    if found is not None:
        found = found.reshape((batch, num_heads, length, k.shape[1]))
        found = found.mean(1) if average_attn_weights else found
    if not batched:
        return out.squeeze(1), None if found is None else found.squeeze(0)
    return out, found


def _check_dims(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> None:
    """Raise AssertionError for batched queries with unbatched keys, values or padding, or the
    reverse."""
    n = query.dim()
    kind = "batched (3-D)" if n == 3 else "unbatched (2-D)"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {n}-D but "
                             f"found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if padding is not None and padding.dim() != n - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or "
                             f"{n - 1}-D but found {padding.dim()}-D tensor instead")
    if mask is None:
        return
    if mask.dim() not in (2, 3):
        raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
                             f"but found {mask.dim()}-D tensor instead")
    expected = (heads, query.shape[0], key.shape[0])
    if n == 2 and mask.dim() == 3 and tuple(mask.shape) != expected:
        raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")


def _check_sizes(query: Any, key: Any, value: Any, mask: Any, heads: int, apart: bool) -> None:
    """Raise AssertionError where keys and values do not fit each other. Raise RuntimeError for a
    mask that would have to be repeated to fit."""
    if apart and tuple(key.shape[:2]) != tuple(value.shape[:2]):
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                             f"{value.shape[:2]}")
    if not apart and tuple(key.shape) != tuple(value.shape):
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if mask is None:
        return
    batch = query.shape[1] if query.dim() == 3 else 1
    expected = (batch * heads, query.shape[0], key.shape[0])[-mask.dim():]
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should "
                           f"be {expected}.")


def _projected(query: Any, key: Any, value: Any, weights: Any, bias: Any) -> list[Any]:
    """Return queries, keys and values, each (length, N, embed_dim). `weights`: three, or all in
    one."""
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    if isinstance(weights, tuple):
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]
    if query is key and key is value:
        # one product for all three
        return list(linear(query, weights, bias).chunk(3, -1))
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights.chunk(3), biases)]


def _heads(x: Any, heads: int) -> Any:
    """Return (length, N, embed_dim) as (N * heads, length, head_dim)."""
    length, batch, size = x.shape
    return x.reshape((length, batch * heads, size // heads)).transpose(0, 1)


def _together(attn_mask: Any, padding: Any, batch: Any, keys: Any, heads: int, more: int) -> Any:
    """Return both masks as one that can be added to scores (N * heads, L, S). Raise AssertionError
    where the padding has other sizes than (N, S)."""
    if attn_mask is not None:
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.unsqueeze(0)
        # all queries see the keys that were added (bias_k, zeros): 0 in the mask
        attn_mask = pad(attn_mask, (0, more)) if more else attn_mask
    if padding is None:
        return attn_mask
    padding = pad(padding, (0, more)) if more else padding
    for k, size in enumerate((batch, keys)):
        if padding.shape[k] != size:
            raise AssertionError(f"Expected key_padded_mask.shape[{k}] to be {size}, but got "
                                 f"{padding.shape[k]}")
    each = padding.reshape((batch, 1, 1, keys)).expand(-1, heads, -1, -1)
    each = each.reshape((batch * heads, 1, keys))
    return each if attn_mask is None else attn_mask + each
