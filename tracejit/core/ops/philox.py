"""Philox random arrays for eager mode: whole NumPy arrays, the same bits as kernels give.

In: seed and offset (each one uint64; an offset is used by one call only), a count, a dtype.
Out: a fresh one-dimensional array. Called by the eager random operators; the text that fixes the
bits is `philox_recipe`. Nothing here imports numba.

Work goes in chunks that stay in the cache, a block of four words at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops import philox_recipe as recipe

_CHUNK_BLOCKS = 4096
_WORD_UNIFORMS: dict[str, Callable[[Any], Any]] = {
    "float32": recipe.float32_from_word,
    "float16": recipe.float16_from_word,
    "bfloat16": recipe.bfloat16_from_word,
}
Words = tuple[Any, Any, Any, Any]


def philox_words_numpy(seed: int, offset: int, first: int, count: int) -> Words:
    """Return the four words of blocks first .. first + count - 1, as four uint64 arrays of `count`.

    >>> [hex(int(w[0])) for w in philox_words_numpy(0, 0, 0, 1)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    blocks = np.arange(first, first + count, dtype=np.uint64)
    words: Words = recipe.philox_words(np.uint64(seed), np.uint64(offset), blocks)
    return words


def _fill(
    seed: int, offset: int, n: int, dtype: Any, per_block: int, columns: Callable[..., list[Any]]
) -> np.ndarray[Any, Any]:
    """Return n elements. `columns` turns words into the arrays of elements 0, 1, ... of each
    block."""
    if n < 0:
        raise ValueError(f"expected a count of at least 0, got {n}")
    blocks = -(-n // per_block)
    out = np.empty((blocks, per_block), dtype)
    for first in range(0, blocks, _CHUNK_BLOCKS):
        count = min(_CHUNK_BLOCKS, blocks - first)
        parts = columns(*philox_words_numpy(seed, offset, first, count))
        for lane, part in enumerate(parts):
            out[first : first + count, lane] = part
    return out.reshape(-1)[:n]


def philox_uniform_numpy(
    seed: int, offset: int, n: int, dtype: Any = np.float32
) -> np.ndarray[Any, Any]:
    """Return n uniforms in [0, 1): of 24 bits, float64 of 53, float16 of 11, bfloat16 of 8.

    Raises TypeError for other dtypes.

    >>> philox_uniform_numpy(0, 0, 3)
    array([0.39904642, 0.88052016, 0.73571277], dtype=float32)
    """
    kind = np.dtype(dtype)
    if kind == np.float64:
        make = recipe.float64_from_words
        return _fill(seed, offset, n, kind, 2, lambda a, b, c, d: [make(a, b), make(c, d)])
    if kind.name not in _WORD_UNIFORMS:
        raise TypeError(f"expected a floating dtype, got {kind}")
    convert = _WORD_UNIFORMS[kind.name]
    return _fill(seed, offset, n, kind, 4, lambda *words: [convert(w) for w in words])


def philox_normal_numpy(
    seed: int, offset: int, n: int, dtype: Any = np.float32
) -> np.ndarray[Any, Any]:
    """Return n standard normals; float16 and bfloat16 are rounded from float32.

    Raises TypeError for other dtypes.

    >>> philox_normal_numpy(0, 0, 2).shape
    (2,)
    """
    kind = np.dtype(dtype)
    if kind == np.float64:
        return _fill(seed, offset, n, kind, 2, _normals_float64)
    if kind.name not in _WORD_UNIFORMS:
        raise TypeError(f"expected a floating dtype, got {kind}")
    return _fill(seed, offset, n, kind, 4, _normals_float32)


def _pair(radius: Any, angle: tuple[Any, Any], turn: Any) -> list[Any]:
    sine, cosine = angle
    quarter = turn >> np.uint64(30)
    ahead = recipe.coordinate(radius, sine, cosine, quarter + recipe.ONE)
    return [ahead, recipe.coordinate(radius, sine, cosine, quarter)]


def _normals_float32(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    first = _pair(recipe.radius_float32(a), recipe.angle_float32(b), b)
    return first + _pair(recipe.radius_float32(c), recipe.angle_float32(d), d)


def _normals_float64(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    return _pair(recipe.radius_float64(a, b), recipe.angle_float64(c, d), c)


def philox_exponential_numpy(
    seed: int, offset: int, n: int, dtype: Any = np.float32
) -> np.ndarray[Any, Any]:
    """Return n positive numbers, exponential of rate 1.

    float16 and bfloat16 are rounded from float32. Raises TypeError for other dtypes.

    >>> bool((philox_exponential_numpy(0, 0, 100) > 0).all())
    True
    """
    kind = np.dtype(dtype)
    if kind == np.float64:
        make = recipe.exponential_float64_from_words
        return _fill(seed, offset, n, kind, 2, lambda a, b, c, d: [make(a, b), make(c, d)])
    if kind.name not in _WORD_UNIFORMS:
        raise TypeError(f"expected a floating dtype, got {kind}")
    convert = recipe.exponential_float32_from_word
    return _fill(seed, offset, n, kind, 4, lambda *words: [convert(w) for w in words])


def philox_randint_numpy(
    seed: int, offset: int, n: int, low: int, high: int, dtype: Any = np.int64
) -> np.ndarray[Any, Any]:
    """Return n integers in low .. high - 1; the bias is below (high - low) / 2^64.

    Raises ValueError when the range is empty, or 2^64 wide or wider.

    >>> philox_randint_numpy(0, 0, 4, -2, 3)
    array([-1,  1,  2,  1])
    """
    if not 0 < high - low < 2**64:
        raise ValueError(f"expected low < high, less than 2^64 apart, got {low} and {high}")
    start, span = np.int64(low), np.uint64(high - low)

    def columns(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        make = recipe.integer_from_words
        return [make(a, b, start, span), make(c, d, start, span)]

    return _fill(seed, offset, n, np.dtype(dtype), 2, columns)


def philox_bernoulli_numpy(seed: int, offset: int, n: int, p: float) -> np.ndarray[Any, Any]:
    """Return n booleans, True with probability p (by 24-bit uniforms, one 32-bit word each).

    >>> philox_bernoulli_numpy(0, 0, 4, 0.5)
    array([ True, False, False, False])
    """
    return philox_uniform_numpy(seed, offset, n).astype(np.float64) < np.float64(p)
