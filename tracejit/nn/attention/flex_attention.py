"""Attention with functions of scores and of places; PyTorch's `nn.attention.flex_attention`.

In: queries (B, H, L, E), keys (B, H, S, E), values (B, H, S, V), and functions of a score and its
place, or of a place. Out: (B, H, L, V). Called by models that write their masks as functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import tracejit
from tracejit.nn.attention.block_mask import BlockMask, of_mask

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_Mod = Callable[..., Any]


class AuxRequest(NamedTuple):
    """Results wanted beside the output: the logarithms of the sums, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Results that were requested beside the output, None for the others."""

    lse: Any = None
    max_scores: Any = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels. Results do not depend on them."""


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Show everything: True at each place."""
    return batch.new_ones(size=(), dtype=tracejit.bool)


def and_masks(*mask_mods: _Mod) -> _Mod:
    """Return the mask that shows what all of these show."""
    _callable(mask_mods)

    def both(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        shown = b.new_ones((), dtype=tracejit.bool)
        for mod in mask_mods:
            shown = shown & mod(b, h, q_idx, kv_idx)
        return shown

    return both


def or_masks(*mask_mods: _Mod) -> _Mod:
    """Return the mask that shows what any of these shows."""
    _callable(mask_mods)

    def either(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        shown = b.new_zeros((), dtype=tracejit.bool)
        for mod in mask_mods:
            shown = shown | mod(b, h, q_idx, kv_idx)
        return shown

    return either


def _callable(mods: tuple) -> None:
    if not all(callable(mod) for mod in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")


def _everywhere(mod: _Mod, scores: tuple, places: tuple) -> Any:
    """Call a function at each place, with the score there, if scores are given, and the place."""
    # the key's place is innermost, the batch outermost: the order of dimensions
    for level in (3, 2, 1, 0):
        dims = tuple(0 if level == k else None for k in range(4))
        mod = tracejit.vmap(mod, in_dims=(*(0 for _ in scores), *dims))
    return mod(*scores, *places)


def _places(sizes: tuple, device: Any) -> tuple:
    return tuple(tracejit.arange(n, device=device) for n in sizes)


def create_mask(mod_fn: _Mod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: Any = None) -> Any:
    """Make the mask (B, H, Q_LEN, KV_LEN) of a function of places. A function of scores gets score
    0 at each place.

    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(sizes, device)
    takes = getattr(mod_fn, "__code__", None)
    # five arguments: a function of scores
    if takes is not None and takes.co_argcount == 5:
        return _everywhere(mod_fn, (tracejit.zeros(sizes, device=device),), places)
    return _everywhere(mod_fn, (), places)


def create_block_mask(
    mask_mod: _Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the blocks of scores that a mask shows, in part or whole. None for B or H: the same in
    all.

    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, BLOCK_SIZE=2).to_dense()
    tensor([[[[1, 0],
              [1, 1]]]], dtype=tracejit.int32)
    """
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    shown = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    return of_mask(shown, mask_mod, sizes, separate_full_blocks)


def _checked(query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, others = query.size(1), key.size(1)
    if not enable_gqa and heads != others:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={others}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and heads % others:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={others}.")


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: _Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax of the scores, changed by `score_mod` and hidden by `block_mask`, @ value.

    score_mod   (score, batch, head, query's place, key's place) -> score
    block_mask  from `create_block_mask`: where it is False there is no attention
    scale       of the scores; None: 1 / sqrt(E)
    enable_gqa  several heads of the query share one of the keys and values

    Rows that see nothing are 0. With `return_lse`, also the logarithm of each row's sum.
    """
    _checked(query, key, value, enable_gqa)
    if enable_gqa and key.size(1) != query.size(1):
        times = query.size(1) // key.size(1)
        # neighbouring heads of the query share one of the keys
        key, value = (x.repeat_interleave(times, 1) for x in (key, value))
    # scores in half precision would overflow, and round too much
    working = tracejit.float64 if query.dtype is tracejit.float64 else tracejit.float32
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1))
    scores = (query @ key.transpose(-2, -1)).to(working) * scale
    places = _places(scores.shape, query.device)
    if score_mod is not None:
        scores = _everywhere(score_mod, (scores,), places).to(working)
    if block_mask is not None:
        shown = _everywhere(block_mask.mask_mod, (), places)
        scores = tracejit.where(shown, scores, -math.inf)
    lse = scores.logsumexp(-1)
    # softmax of a row that is -inf everywhere would be NaN
    nothing = (lse == -math.inf).unsqueeze(-1)
    weights = tracejit.softmax(scores.masked_fill(nothing, 0), -1).masked_fill(nothing, 0)
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None,
                              scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out
