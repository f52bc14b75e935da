"""sin, cos and tan over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names. Error bounds are in
docs/numerics.md.

float32 reduces any finite argument: exact products of x with six pieces of 1 / (2 pi), each taken
modulo 1, are summed in float64. float64 subtracts k pi/2 in exact products up to 1e8. Larger
arguments go to `vector_math_far`, whose reduction by table would slow down every call.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tracejit.jit.lowering.vector_math_exponential import ROUND_64
from tracejit.jit.lowering.vector_math_far import (
    cos_far_float64,
    sin_far_float64,
    tan_far_float64,
)
from tracejit.jit.lowering.vector_math_near import (
    cos_near_zero_float32,
    cos_near_zero_float64,
    sin_near_zero_float32,
    sin_near_zero_float64,
)

FAR = np.float64(1e8)
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
    """Return y minus the nearest integer."""
    return y - np.rint(y)


def reduce_float32(a):
    """Return a >= 0 as (r, k): a = k pi/2 + r modulo 2 pi, |r| <= pi/4; k's low two bits count."""
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
    """Return 0 <= a <= 1e8 as (r, k): a = k pi/2 + r, |r| <= pi/4; k's low two bits count."""
    rounded = a * np.float64(0.6366197723675814) + ROUND_64
    k = rounded - ROUND_64
    r = a - k * QUARTER_1  # k and the pieces have so few bits that their products are exact
    r = r - k * QUARTER_2
    r = r - (k * QUARTER_3 + k * QUARTER_4)
    return r, np.float64(rounded).view(np.int64)


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
    y = np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)
    return sin_far_float64(x) if abs(x) > FAR else y


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
    y = -y if np.int64(turned & np.int64(1)) != np.int64(0) else y
    return cos_far_float64(x) if abs(x) > FAR else y


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
    y = np.uint64(np.float64(y).view(np.uint64) ^ sign).view(np.float64)
    return tan_far_float64(x) if abs(x) > FAR else y
