"""sin, cos and tan of float64 arguments so large that reducing them takes many bits of pi.

In and out: one NumPy scalar (plain Python) or one LLVM value; straight-line text in the subset of
`vector_math_intrinsics`. Called, out of line, by `vector_math_trigonometric`.

x = m 2^s with an integer m. Only 192 bits of 2/pi matter for x 2/pi modulo 4. Bits before them make
multiples of 4. Bits behind them are below the precision that is left for the float64 closest to a
multiple of pi/2 (about 2^-62).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tracejit.jit.lowering.vector_math_near import cos_near_zero_float64, sin_near_zero_float64
from tracejit.jit.lowering.vector_math_outlined import outlined

# 64 zeros, then the binary digits of 2/pi
TWO_OVER_PI = np.array([
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
], np.uint64)  # fmt: skip
HALF_PI = np.float64(1.5707963267948966)
HALF_PI_TOP = np.float64(1.5707963109016418)  # 26 bits of it
HALF_PI_REST = np.float64(1.5893254773528196e-08)
UNIT_32, UNIT_64 = np.float64(2.0**-32), np.float64(2.0**-64)
UNIT_96, UNIT_128 = np.float64(2.0**-96), np.float64(2.0**-128)
LOW_32 = np.uint64(0xFFFFFFFF)
ALL_64 = np.uint64(0xFFFFFFFFFFFFFFFF)


def joined(a, b, shift):
    """Return the 64 bits that start `shift` bits into the pair."""
    return (a << shift) | ((b >> np.uint64(1)) >> (np.uint64(63) - shift))


def high_product(m, w):
    """Return the upper 64 bits of m w, for m below 2^53."""
    low, high = m & LOW_32, m >> np.uint64(32)
    below = high * (w & LOW_32) + ((low * (w & LOW_32)) >> np.uint64(32))
    middle = low * (w >> np.uint64(32)) + (below & LOW_32)
    return high * (w >> np.uint64(32)) + (below >> np.uint64(32)) + (middle >> np.uint64(32))


def turned(bits):
    """Return x 2/pi modulo 4 for |x|, given as bits, in fixed point: two bits before the point, 126
    behind."""
    exponent = bits >> np.uint64(52)
    first = exponent - np.uint64(1013) if exponent > np.uint64(1013) else np.uint64(0)
    word, shift = np.int64(first >> np.uint64(6)), first & np.uint64(63)
    a, b = TWO_OVER_PI[word], TWO_OVER_PI[word + np.int64(1)]
    c, d = TWO_OVER_PI[word + np.int64(2)], TWO_OVER_PI[word + np.int64(3)]
    m = (bits & np.uint64(0x000FFFFFFFFFFFFF)) | np.uint64(0x0010000000000000)
    w0, w1, w2 = joined(a, b, shift), joined(b, c, shift), joined(c, d, shift)
    low = m * w1 + high_product(m, w2)
    carry = np.uint64(low < m * w1)
    return m * w0 + high_product(m, w1) + carry, low


def reduced(x):
    """Return |x| as (r, k): |x| = k pi/2 + r modulo 2 pi, |r| <= pi/4; k's low two bits count."""
    high, low = turned(np.float64(abs(x)).view(np.uint64))
    fraction_high = (high << np.uint64(2)) | (low >> np.uint64(62))
    fraction_low = low << np.uint64(2)
    up = (fraction_high >> np.uint64(63)) != np.uint64(0)
    k = (high >> np.uint64(62)) + np.uint64(up)
    flip = ALL_64 if up else np.uint64(0)
    p = np.float64((fraction_high ^ flip) >> np.uint64(32)) * UNIT_32
    q = np.float64((fraction_high ^ flip) & LOW_32) * UNIT_64
    rest = np.float64((fraction_low ^ flip) >> np.uint64(32)) * UNIT_96
    rest = rest + np.float64((fraction_low ^ flip) & LOW_32) * UNIT_128
    tail = q + rest
    f = p + tail
    lost = ((p - f) + tail) + ((q - tail) + rest)
    top = np.uint64(np.float64(f).view(np.uint64) & np.uint64(0xFFFFFFFFF8000000)).view(np.float64)
    r = top * HALF_PI_TOP + ((f - top) * HALF_PI_TOP + (f * HALF_PI_REST + lost * HALF_PI))
    nan_if_infinite = x - x
    return (-r if up else r) + nan_if_infinite, np.int64(k)


def signed(y, x):
    """Return y, with its sign turned where x is negative."""
    sign = np.uint64(np.float64(x).view(np.uint64) & np.uint64(0x8000000000000000))
    return np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)


@outlined
def sin_far_float64(x):
    r, k = reduced(x)
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    y = cos_near_zero_float64(r) if swap else sin_near_zero_float64(r)
    return signed(-y if np.int64(k & np.int64(2)) != np.int64(0) else y, x)


@outlined
def cos_far_float64(x):
    r, k = reduced(x)
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    y = sin_near_zero_float64(r) if swap else cos_near_zero_float64(r)
    turned_round = np.int64(np.int64(k >> np.int64(1)) ^ k)
    return -y if np.int64(turned_round & np.int64(1)) != np.int64(0) else y


@outlined
def tan_far_float64(x):
    r, k = reduced(x)
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    s, c = sin_near_zero_float64(r), cos_near_zero_float64(r)
    return signed((-c if swap else s) / (s if swap else c), x)
