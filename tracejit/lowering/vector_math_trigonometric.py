"""sin, cos and tan over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names. Error bounds are in
docs/numerics.md.

float32 reduces any finite argument: x / (2 pi) is summed, in float64, from exact products with six
pieces of 1 / (2 pi), each taken modulo 1. float64 subtracts k pi/2 in exact products up to 2^51;
above that neighbouring numbers are more than a quarter turn apart, and the result is NaN, as a
reduction by table would slow down every call.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tracejit.lowering.vector_math_exponential import ROUND_64

NAN_64 = np.float64(np.nan)
TURN_1 = np.float64(0.15915494272485375)
TURN_2 = np.float64(3.6704158115630214e-10)
TURN_3 = np.float64(5.690025167992954e-19)
TURN_4 = np.float64(1.4703036846932608e-27)
TURN_5 = np.float64(2.5867171752090537e-36)
TURN_6 = np.float64(9.458140970740169e-46)
QUARTER_1 = np.float64(1.5707963109016418)
QUARTER_2 = np.float64(1.5893254712295857e-08)
QUARTER_3 = np.float64(6.123233932053594e-17)
QUARTER_4 = np.float64(6.36831716351095e-25)
HALF_PI_64 = np.float64(1.5707963267948966)


def turns(y):
    """y minus the nearest integer."""
    return y - np.rint(y)


def reduce_float32(a):
    """a >= 0 as (r, k): a = k pi/2 + r modulo 2 pi, |r| <= pi/4; k's low two bits count."""
    x = np.float64(a)
    t = x * TURN_6 + turns(x * TURN_5)
    t = t + turns(x * TURN_4)
    t = t + turns(x * TURN_3)
    t = t + turns(x * TURN_2)
    quarters = (t + turns(x * TURN_1)) * np.float64(4.0)
    rounded = quarters + ROUND_64
    r = (quarters - (rounded - ROUND_64)) * HALF_PI_64
    return np.float32(r), np.int32(np.float64(rounded).view(np.int64))


def reduce_float64(a):
    """0 <= a < 2^51 as (r, k): a = k pi/2 + r, |r| <= pi/4; k's low two bits count."""
    x = a if a < np.float64(2251799813685248.0) else NAN_64
    rounded = x * np.float64(0.6366197723675814) + ROUND_64
    k = rounded - ROUND_64
    # 1.5 * 2^78 rounds to multiples of 2^26, so products of either part are exact
    big = np.float64(4.5335471823548594e23)
    high = (k + big) - big
    low = k - high
    r = x - high * QUARTER_1
    r = r - low * QUARTER_1
    r = r - high * QUARTER_2
    r = r - low * QUARTER_2
    r = r - high * QUARTER_3
    r = r - (low * QUARTER_3 + k * QUARTER_4)
    return r, np.float64(rounded).view(np.int64)


def sin_near_zero_float32(r):
    s = r * r
    p = np.float32(-0.00019516656)
    p = p * s + np.float32(0.008332173)
    p = p * s + np.float32(-0.16666655)
    return p * s * r + r


def cos_near_zero_float32(r):
    s = r * r
    p = np.float32(2.443773e-05)
    p = p * s + np.float32(-0.0013887362)
    p = p * s + np.float32(0.041666646)
    return p * (s * s) + (np.float32(1.0) - s * np.float32(0.5))


def sin_near_zero_float64(r):
    s = r * r
    p = np.float64(1.5896504885710328e-10)
    p = p * s + np.float64(-2.505075326388594e-08)
    p = p * s + np.float64(2.755731366205677e-06)
    p = p * s + np.float64(-0.00019841269829725213)
    p = p * s + np.float64(0.008333333333322316)
    p = p * s + np.float64(-0.16666666666666632)
    return p * s * r + r


def cos_near_zero_float64(r):
    s = r * r
    p = np.float64(-1.1359448538089819e-11)
    p = p * s + np.float64(2.0875719556290545e-09)
    p = p * s + np.float64(-2.755731432601625e-07)
    p = p * s + np.float64(2.4801587289394892e-05)
    p = p * s + np.float64(-0.001388888888887399)
    p = p * s + np.float64(0.0416666666666666)
    half = s * np.float64(0.5)
    w = np.float64(1.0) - half
    return w + (((np.float64(1.0) - w) - half) + p * (s * s))


def sin_float32(x):
    r, k = reduce_float32(abs(x))
    swap = np.int32(k & np.int32(1)) != np.int32(0)
    y = cos_near_zero_float32(r) if swap else sin_near_zero_float32(r)
    y = -y if np.int32(k & np.int32(2)) != np.int32(0) else y
    sign = np.uint32(np.float32(x).view(np.uint32) & np.uint32(0x80000000))
    return np.uint32(np.float32(y).view(np.uint32) ^ sign).view(np.float32)


def sin_float64(x):
    r, k = reduce_float64(abs(x))
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    y = cos_near_zero_float64(r) if swap else sin_near_zero_float64(r)
    y = -y if np.int64(k & np.int64(2)) != np.int64(0) else y
    sign = np.uint64(np.float64(x).view(np.uint64) & np.uint64(0x8000000000000000))
    return np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)


def cos_float32(x):
    r, k = reduce_float32(abs(x))
    swap = np.int32(k & np.int32(1)) != np.int32(0)
    y = sin_near_zero_float32(r) if swap else cos_near_zero_float32(r)
    turned = np.int32(np.int32(k >> np.int32(1)) ^ k)
    return -y if np.int32(turned & np.int32(1)) != np.int32(0) else y


def cos_float64(x):
    r, k = reduce_float64(abs(x))
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    y = sin_near_zero_float64(r) if swap else cos_near_zero_float64(r)
    turned = np.int64(np.int64(k >> np.int64(1)) ^ k)
    return -y if np.int64(turned & np.int64(1)) != np.int64(0) else y


def tan_float32(x):
    r, k = reduce_float32(abs(x))
    swap = np.int32(k & np.int32(1)) != np.int32(0)
    s, c = sin_near_zero_float32(r), cos_near_zero_float32(r)
    above = -c if swap else s
    y = above / (s if swap else c)
    sign = np.uint32(np.float32(x).view(np.uint32) & np.uint32(0x80000000))
    return np.uint32(np.float32(y).view(np.uint32) ^ sign).view(np.float32)


def tan_float64(x):
    r, k = reduce_float64(abs(x))
    swap = np.int64(k & np.int64(1)) != np.int64(0)
    s, c = sin_near_zero_float64(r), cos_near_zero_float64(r)
    above = -c if swap else s
    y = above / (s if swap else c)
    sign = np.uint64(np.float64(x).view(np.uint64) & np.uint64(0x8000000000000000))
    return np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)
