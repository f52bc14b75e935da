"""log, log1p, log2 and log10 over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names, `vector_math_power` uses
`split_float64`. Error bounds are in docs/numerics.md.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tracejit.jit.lowering.vector_math_exponential import (
    LN2_HIGH_32,
    LN2_HIGH_64,
    LN2_LOW_32,
    LN2_LOW_64,
    LOG2_E_32,
    LOG2_E_64,
)

INFINITY_32 = np.float32(np.inf)
INFINITY_64 = np.float64(np.inf)
NAN_32 = np.float32(np.nan)
NAN_64 = np.float64(np.nan)
LOG10_E_32 = np.float32(0.4342944819032518)
LOG10_E_64 = np.float64(0.4342944819032518)
LOG10_2_HIGH_32 = np.float32(0.301025390625)
LOG10_2_LOW_32 = np.float32(4.605038981195e-06)
LOG10_2_HIGH_64 = np.float64(0.30102999566383914)
LOG10_2_LOW_64 = np.float64(1.42050232272661e-13)


def split_float32(x):
    """Return x > 0 as (k, m - 1) with x = 2^k m and m between sqrt(1/2) and sqrt(2)."""
    tiny = x < np.float32(1.17549435e-38)
    z = x * np.float32(8388608.0) if tiny else x
    bits = np.float32(z).view(np.int32)
    k = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))
    m = np.int32(bits - np.int32(k << np.int32(23))).view(np.float32)
    shift = np.float32(23.0) if tiny else np.float32(0.0)
    return np.float32(k) - shift, m - np.float32(1.0)


def split_float64(x):
    """Return x > 0 as (k, m - 1) with x = 2^k m and m between sqrt(1/2) and sqrt(2)."""
    tiny = x < np.float64(2.2250738585072014e-308)
    z = x * np.float64(4503599627370496.0) if tiny else x
    bits = np.float64(z).view(np.int64)
    k = np.int64(np.int64(bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52))
    m = np.int64(bits - np.int64(k << np.int64(52))).view(np.float64)
    shift = np.float64(52.0) if tiny else np.float64(0.0)
    return np.float64(np.int32(k)) - shift, m - np.float64(1.0)


def log1p_tail_float32(f):
    """Return log(1 + f) - f for 1 + f between sqrt(1/2) and sqrt(2)."""
    p = np.float32(0.06915583)
    p = p * f + np.float32(-0.11789883)
    p = p * f + np.float32(0.11872915)
    p = p * f + np.float32(-0.12384331)
    p = p * f + np.float32(0.14218664)
    p = p * f + np.float32(-0.16669253)
    p = p * f + np.float32(0.20002227)
    p = p * f + np.float32(-0.24999987)
    p = p * f + np.float32(0.3333331)
    s = f * f
    return p * (s * f) - s * np.float32(0.5)


def log1p_tail_float64(f):
    """Return log(1 + f) - f for 1 + f between sqrt(1/2) and sqrt(2)."""
    half = f * f * np.float64(0.5)
    s = f / (f + np.float64(2.0))
    z = s * s
    p = np.float64(0.14796094196395118)
    p = p * z + np.float64(0.1531403690647703)
    p = p * z + np.float64(0.1818356482691241)
    p = p * z + np.float64(0.222221985642097)
    p = p * z + np.float64(0.285714287424682)
    p = p * z + np.float64(0.3999999999941435)
    p = p * z + np.float64(0.6666666666666734)
    return s * (half + p * z) - half


def log_edges_float32(x, y):
    """Return y, the logarithm of x, made right for x negative, zero, infinite or NaN."""
    y = y if x < INFINITY_32 else x
    y = -INFINITY_32 if x == np.float32(0.0) else y
    return NAN_32 if x < np.float32(0.0) else y


def log_edges_float64(x, y):
    """Return y, the logarithm of x, made right for x negative, zero, infinite or NaN."""
    y = y if x < INFINITY_64 else x
    y = -INFINITY_64 if x == np.float64(0.0) else y
    return NAN_64 if x < np.float64(0.0) else y


def log_float32(x):
    k, f = split_float32(x)
    y = (log1p_tail_float32(f) + k * LN2_LOW_32) + f
    return log_edges_float32(x, y + k * LN2_HIGH_32)


def log_float64(x):
    k, f = split_float64(x)
    y = (log1p_tail_float64(f) + k * LN2_LOW_64) + f
    return log_edges_float64(x, y + k * LN2_HIGH_64)


def log2_float32(x):
    k, f = split_float32(x)
    y = (log1p_tail_float32(f) + f) * LOG2_E_32
    return log_edges_float32(x, y + k)


def log2_float64(x):
    k, f = split_float64(x)
    y = (log1p_tail_float64(f) + f) * LOG2_E_64
    return log_edges_float64(x, y + k)


def log10_float32(x):
    k, f = split_float32(x)
    y = (log1p_tail_float32(f) + f) * LOG10_E_32 + k * LOG10_2_LOW_32
    return log_edges_float32(x, y + k * LOG10_2_HIGH_32)


def log10_float64(x):
    k, f = split_float64(x)
    y = (log1p_tail_float64(f) + f) * LOG10_E_64 + k * LOG10_2_LOW_64
    return log_edges_float64(x, y + k * LOG10_2_HIGH_64)


def log1p_float32(x):
    u = x + np.float32(1.0)
    lost = x - (u - np.float32(1.0))
    k, f = split_float32(u)
    y = (log1p_tail_float32(f) + (k * LN2_LOW_32 + lost / u)) + f
    y = log_edges_float32(u, y + k * LN2_HIGH_32)
    return x if abs(x) < np.float32(1e-8) else y


def log1p_float64(x):
    u = x + np.float64(1.0)
    lost = x - (u - np.float64(1.0))
    k, f = split_float64(u)
    y = (log1p_tail_float64(f) + (k * LN2_LOW_64 + lost / u)) + f
    y = log_edges_float64(u, y + k * LN2_HIGH_64)
    return x if abs(x) < np.float64(1e-17) else y
