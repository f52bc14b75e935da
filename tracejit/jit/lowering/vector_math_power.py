"""pow, sqrt and rsqrt over typed scalars, float32 and float64.

In and out: one or two NumPy scalars (plain Python) or numba values. Straight-line text in the
subset of `vector_math_intrinsics`; `vector_math` registers the public names. Error bounds are in
docs/numerics.md.

float32 powers go through float64. float64 powers carry the logarithm as an unevaluated sum of two
numbers; the functions marked `uncontracted` rely on every single rounding.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,union-attr"

from __future__ import annotations

import numpy as np

from tracejit.jit.lowering.vector_math_exponential import (
    LN2_HIGH_64,
    LN2_LOW_64,
    LOG2_E_64,
    ROUND_64,
    expm1_near_zero_float64,
    scale_float64,
)
from tracejit.jit.lowering.vector_math_logarithm import (
    INFINITY_32,
    INFINITY_64,
    NAN_32,
    NAN_64,
    split_float64,
)

# ln 2 in two parts, the first of 42 bits
LN2_42 = np.float64(0.6931471805598903)
LN2_REST = np.float64(5.497923018708371e-14)


def sqrt_float32(x):
    return np.sqrt(x)


def sqrt_float64(x):
    return np.sqrt(x)


def rsqrt_float32(x):
    return np.float32(1.0) / np.sqrt(x)


def rsqrt_float64(x):
    return np.float64(1.0) / np.sqrt(x)


def pow_edges_float32(x, y, magnitude):
    """Return x^y, given |x|^y: with signs, NaN where x < 0 has no power, and the two constants."""
    whole = np.floor(y) == y
    half = y * np.float32(0.5)
    odd = whole and np.floor(half) != half
    negative = np.int32(np.float32(x).view(np.int32)) < np.int32(0)
    z = -magnitude if negative and odd else magnitude
    z = NAN_32 if x < np.float32(0.0) and (not whole) and x > -INFINITY_32 else z
    return np.float32(1.0) if y == np.float32(0.0) or x == np.float32(1.0) else z


def pow_edges_float64(x, y, magnitude):
    """Return x^y, given |x|^y: with signs, NaN where x < 0 has no power, and the two constants."""
    whole = np.floor(y) == y
    half = y * np.float64(0.5)
    odd = whole and np.floor(half) != half
    negative = np.int64(np.float64(x).view(np.int64)) < np.int64(0)
    z = -magnitude if negative and odd else magnitude
    z = NAN_64 if x < np.float64(0.0) and (not whole) and x > -INFINITY_64 else z
    return np.float64(1.0) if y == np.float64(0.0) or x == np.float64(1.0) else z


def pow_float32(x, y):
    a = np.float64(abs(x))
    k, f = split_float64(a)
    s = f / (f + np.float64(2.0))
    z = s * s
    p = np.float64(0.2828943745715255)
    p = p * z + np.float64(0.31990618475532295)
    p = p * z + np.float64(0.4122092382250214)
    p = p * z + np.float64(0.5770779425301307)
    p = p * z + np.float64(0.9617966941126749)
    p = p * z + np.float64(2.8853900817778504)
    log2 = p * s + k
    log2 = log2 if a < INFINITY_64 else a
    log2 = -INFINITY_64 if a == np.float64(0.0) else log2
    w = np.float64(y) * log2
    w = np.float64(0.0) if a == np.float64(1.0) else w
    w = np.float64(-160.0) if w < np.float64(-160.0) else w
    w = np.float64(130.0) if w > np.float64(130.0) else w
    rounded = w + ROUND_64
    r = w - (rounded - ROUND_64)
    q = np.float64(1.531646291400144e-05)
    q = q * r + np.float64(0.0001546973142963155)
    q = q * r + np.float64(0.0013333422640018043)
    q = q * r + np.float64(0.009618025605000684)
    q = q * r + np.float64(0.05550410976116169)
    q = q * r + np.float64(0.2402265121357756)
    q = q * r + np.float64(0.693147180535024)
    q = q * r + np.float64(1.0)
    return pow_edges_float32(x, y, np.float32(scale_float64(q, rounded)))


def two_sum(a, b):
    """Return a + b as rounded sum and rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def split_in_half(a):
    """Return a as two numbers of at most 26 bits each."""
    t = a * np.float64(134217729.0)
    high = t - (t - a)
    return high, a - high


def two_product(a, b):
    """Return a * b as rounded product and rounding error, without a fused multiply-add."""
    p = a * b
    a_high, a_low = split_in_half(a)
    b_high, b_low = split_in_half(b)
    error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return p, error


def log_as_pair(k, f):
    """Return k ln 2 + log(1 + f) as a sum of two numbers, to about 2^-68."""
    below, below_low = two_sum(f, np.float64(2.0))
    s = f / below
    back, back_error = two_product(s, below)
    s_low = (((f - back) - back_error) - s * below_low) / below
    z, z_low = two_product(s, s)
    z_low = z_low + (s + s) * s_low
    p = np.float64(0.11989539012594277)
    p = p * z + np.float64(0.11674755489608872)
    p = p * z + np.float64(0.13336320517414832)
    p = p * z + np.float64(0.15384556790619194)
    p = p * z + np.float64(0.18181818871490554)
    p = p * z + np.float64(0.222222222175269)
    p = p * z + np.float64(0.2857142857144515)
    p = p * z + np.float64(0.3999999999999998)
    # 2/3 + z p, times z s, plus 2 s
    c, c_low = two_sum(np.float64(0.6666666666666666), z * p)
    c_low = c_low + np.float64(3.700743415417188e-17)
    d, d_low = two_product(c, z)
    d_low = d_low + (c * z_low + c_low * z)
    e, e_low = two_product(d, s)
    e_low = e_low + (d * s_low + d_low * s)
    high, low = two_sum(s + s, e)
    low = low + (e_low + (s_low + s_low))
    total, total_low = two_sum(k * LN2_42, high)
    return total, total_low + (low + k * LN2_REST)


def pow_float64(x, y):
    a = abs(x)
    k, f = split_float64(a)
    log, log_low = log_as_pair(k, f)
    log = log if a < INFINITY_64 else a
    log = -INFINITY_64 if a == np.float64(0.0) else log
    log_low = log_low if a < INFINITY_64 and a > np.float64(0.0) else np.float64(0.0)
    # beyond this the result is 0, 1 or infinite, and the exact product would overflow
    e = np.float64(1e20) if y > np.float64(1e20) else y
    e = np.float64(-1e20) if e < np.float64(-1e20) else e
    product, product_low = two_product(log, e)
    product = product if abs(log) < INFINITY_64 else log * y
    w = product
    w = np.float64(0.0) if a == np.float64(1.0) else w
    w = np.float64(-746.0) if w < np.float64(-746.0) else w
    w = np.float64(710.0) if w > np.float64(710.0) else w
    low = product_low + log_low * e if abs(product) < np.float64(1000.0) else np.float64(0.0)
    rounded = w * LOG2_E_64 + ROUND_64
    n = rounded - ROUND_64
    r = w - n * LN2_HIGH_64
    r = r + (low - n * LN2_LOW_64)
    magnitude = scale_float64(expm1_near_zero_float64(r) + np.float64(1.0), rounded)
    return pow_edges_float64(x, y, magnitude)


for _function in (two_sum, split_in_half, two_product, log_as_pair):
    _function.uncontracted = True
