"""Ops written in other ops: the helper that makes a composite's record, and attention.

In: a body in ops, how the result's type follows, gradient rules where the body's own would be
unstable or wasteful. Out: a record of kind "composite": one node in graphs, opened by lowering;
eager mode runs the body. `activations.py`, `softmax.py`, `normalization.py` and `losses.py` use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import (
    CPP_NAMES,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    bool_,
    dtype,
    float32,
    float64,
)


def composite(name: str, operands: Sequence[str], body: Callable[..., Any], *,
              infer: Callable[..., Any] | None = None, node_name: str | None = None,
              outputs: tuple[str, ...] = ("out",), may_fail: bool = False, fused: str = "",
              joint: Callable[..., Any] | None = None, eager: Callable[..., Any] | None = None,
              **rules: Callable[..., Any]) -> Op:
    """Make the record of an op whose meaning is `body(*operands, **attributes)`, written in ops.

    infer  None: the result has the type of the first operand. rules  operand name -> gradient rule
    eager  the same over arrays, with the bits of the body
    """
    return Op(name, "composite", tuple(operands), infer=infer or like_first, body=body, rules=rules,
              node_name=node_name, outputs=outputs, may_fail=may_fail, fused=fused,
              joint=joint, eager=eager)


def like_first(input: Any, *others: Any, **attributes: Any) -> TensorType:
    """Return the type of the first operand."""
    return TensorType(input.dtype, tuple(input.shape), input.device)


def has_fused_types(op: Op, operands: Sequence[Any]) -> bool:
    """Return True if eager mode runs a fused op on such tensors or values as one program."""
    floats = [x.dtype for x in operands if hasattr(x, "dtype") and x.dtype.category >= FLOATING]
    return bool(op.fused and floats) and all(d is float32 or d is float64 for d in floats)


def widened(x: Any) -> Any:
    """Return `x` in the dtype its sums are computed in: float32 for halves."""
    wide = widened_dtype(x.dtype)
    return x if wide is x.dtype else convert(x, wide)


def widened_dtype(d: dtype) -> dtype:
    """Return the dtype that sums of elements of this one are computed in."""
    return float32 if d.category == FLOATING and d.itemsize == 2 else d


def must_float(name: str, d: dtype) -> None:
    """Raise NotImplementedError unless `d` is a floating point dtype."""
    if d.category != FLOATING:
        raise NotImplementedError(f"\"{name}\" not implemented for '{SCALAR_NAMES[d.name]}'")


# A gradient that does not depend on `grad`, in a node that reads `grad`: graphs then show which
# gradient it belongs to.
follow = composite("follow", ("input", "grad"), lambda input, grad: input.clone(),
                   input=lambda grad: grad)


@autocasts(cpu="lower", cuda="lower")
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None,
                                 dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: float | None = None, enable_gqa: bool = False) -> Any:
    """Return softmax(query @ key.T * scale + mask) @ value over the last two dimensions.

    query (*, L, E), key (*, S, E), value (*, S, V); `attn_mask` broadcasts to (*, L, S): bool (True
    takes part) or additive, or a `nn.attention.bias`. `scale` None: 1 / sqrt(E). A query that may
    look at no key gives zeros. With `enable_gqa` key and value may have fewer heads (third
    dimension from the end): each serves several consecutive heads of the query.

    RuntimeError if both a mask and `is_causal` are given, for dtypes that differ, for fewer than
    two dimensions, and for a mask of other numbers. The source is Vaswani et al., "Attention is all
    you need" (2017).

    >>> import tracejit
    >>> x = tracejit.eye(2)
    >>> tracejit.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    from tracejit.core.ops.dropout import dropout
    from tracejit.core.ops.linalg import matmul
    from tracejit.core.ops.pointwise_logic import where
    from tracejit.core.ops.softmax import softmax

    if hasattr(attn_mask, "as_argument"):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        attn_mask, is_causal = attn_mask.as_argument(query.device)
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                           "when is_causal=True")
    _must_attend(query, key, value, attn_mask)
    if dropout_p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    result = query.dtype
    query, key, value = map(widened, (query, key, value))
    if enable_gqa:
        key, value = (_for_heads(query, x) for x in (key, value))
    factor = scale if scale is not None else 1 / math.sqrt(query.shape[-1])
    scores = matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        attn_mask = causal_mask(query, query.shape[-2], key.shape[-2])
    seeing = None
    if attn_mask is not None and not is_causal:
        seeing = attn_mask if attn_mask.dtype is bool_ else attn_mask != -math.inf
        seeing = seeing.any(-1, True)
    if attn_mask is not None:
        masked = attn_mask.dtype is bool_
        scores = where(attn_mask, scores, -math.inf) if masked else scores + attn_mask
    if seeing is not None:
        scores = where(seeing, scores, 0.0)
    weights = softmax(scores, -1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    attended = matmul(weights, value)
    return convert(attended if seeing is None else where(seeing, attended, 0.0), result)


def _must_attend(query: Any, key: Any, value: Any, mask: Any) -> None:
    dims = [len(x.shape) for x in (query, key, value)]
    if min(dims) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but "
                           "got query.dim: {} key.dim: {} and value.dim: {} instead.".format(*dims))
    names = [CPP_NAMES[x.dtype.name] for x in (query, key, value)]
    if len(set(names)) > 1:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got "
                           "query.dtype: {} key.dtype: {} and value.dtype: {} instead."
                           .format(*names))
    if mask is not None and mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, "
                           f"but got attn_mask.dtype: {CPP_NAMES[mask.dtype.name]} and  "
                           f"query.dtype: {names[0]} instead.")


def _for_heads(query: Any, shared: Any) -> Any:
    """Repeat keys or values, once for each head of the query that looks at them."""
    from tracejit.core.ops.indexing import repeat_interleave

    heads, given = query.size(-3), shared.size(-3)
    if heads % given:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in "
                           f"query, got {heads} and {given}")
    return repeat_interleave(shared, heads // given, -3)


def causal_mask(like: Any, rows: Any, columns: Any) -> Any:
    """Return a bool (rows, columns) tensor: True at and below the diagonal."""
    from tracejit.core.ops.creation import iota

    return iota(columns, like) <= iota(rows, like).unsqueeze(-1)
