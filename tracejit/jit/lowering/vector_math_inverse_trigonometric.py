"""asin, acos and atan over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names. Error bounds are in
docs/numerics.md.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tracejit.jit.lowering.vector_math_exponential import with_sign_float32, with_sign_float64

HALF_PI_64 = np.float64(1.5707963267948966)
HALF_PI_LOW_64 = np.float64(6.123233995736766e-17)
HALF_PI_32 = np.float32(1.5707963267948966)
HALF_PI_LOW_32 = np.float32(-4.371138828673793e-08)


def atan_float32(x):
    a = abs(x)
    far = a > np.float32(2.414213562373095)
    middle = a > np.float32(0.4142135623730951)
    above = a - np.float32(1.0) if middle else a
    above = -np.float32(1.0) if far else above
    below = a + np.float32(1.0) if middle else np.float32(1.0)
    t = above / (a if far else below)
    s = t * t
    p = np.float32(-0.06082489)
    p = p * s + np.float32(0.1059564)
    p = p * s + np.float32(-0.14243802)
    p = p * s + np.float32(0.19998488)
    p = p * s + np.float32(-0.33333316)
    share = np.float32(0.5) if middle else np.float32(0.0)
    share = np.float32(1.0) if far else share
    y = (p * s * t + share * HALF_PI_LOW_32) + t
    return with_sign_float32(y + share * HALF_PI_32, x)


def asin_tail_float32(s):
    """Return (asin(t) - t) / t, where s = t * t <= 1/4."""
    p = np.float32(0.042218573)
    p = p * s + np.float32(0.0241476)
    p = p * s + np.float32(0.0454771)
    p = p * s + np.float32(0.074952416)
    p = p * s + np.float32(0.16666754)
    return p * s


def asin_float32(x):
    a = abs(x)
    outer = a > np.float32(0.5)
    s = (np.float32(1.0) - a) * np.float32(0.5) if outer else a * a
    t = np.sqrt(s) if outer else a
    y = asin_tail_float32(s) * t + t
    y = HALF_PI_32 - (y + y - HALF_PI_LOW_32) if outer else y
    return with_sign_float32(y, x)


def acos_float32(x):
    a = abs(x)
    outer = a > np.float32(0.5)
    s = (np.float32(1.0) - a) * np.float32(0.5) if outer else a * a
    t = np.sqrt(s) if outer else x
    y = asin_tail_float32(s) * t
    inner = HALF_PI_32 - (t + (y - HALF_PI_LOW_32))
    twice = (t + y) + (t + y)
    pi, rest = HALF_PI_32 + HALF_PI_32, HALF_PI_LOW_32 + HALF_PI_LOW_32
    wide = twice if x > np.float32(0.0) else pi - (twice - rest)
    return wide if outer else inner


def atan_float64(x):
    a = abs(x)
    far = a > np.float64(2.414213562373095)
    middle = a > np.float64(0.4142135623730951)
    above = a - np.float64(1.0) if middle else a
    above = -np.float64(1.0) if far else above
    below = a + np.float64(1.0) if middle else np.float64(1.0)
    t = above / (a if far else below)
    s = t * t
    p = np.float64(0.015203503756566539)
    p = p * s + np.float64(-0.033482678365212966)
    p = p * s + np.float64(0.04503902563998962)
    p = p * s + np.float64(-0.052184912409123)
    p = p * s + np.float64(0.05877035292048559)
    p = p * s + np.float64(-0.0666622813568475)
    p = p * s + np.float64(0.07692282852029118)
    p = p * s + np.float64(-0.09090908148659933)
    p = p * s + np.float64(0.11111111088292401)
    p = p * s + np.float64(-0.1428571428538985)
    p = p * s + np.float64(0.19999999999997684)
    p = p * s + np.float64(-0.33333333333333326)
    share = np.float64(0.5) if middle else np.float64(0.0)
    share = np.float64(1.0) if far else share
    y = (p * s * t + share * HALF_PI_LOW_64) + t
    return with_sign_float64(y + share * HALF_PI_64, x)


def asin_tail_float64(s):
    """Return (asin(t) - t) / t, where s = t * t <= 1/4."""
    p = np.float64(0.032677007054419685)
    p = p * s + np.float64(-0.021077482360658272)
    p = p * s + np.float64(0.021763634757048154)
    p = p * s + np.float64(0.0036829860186469703)
    p = p * s + np.float64(0.010786543836107847)
    p = p * s + np.float64(0.011397773377449823)
    p = p * s + np.float64(0.013980961763328728)
    p = p * s + np.float64(0.017351600066915912)
    p = p * s + np.float64(0.022372215661581835)
    p = p * s + np.float64(0.030381942683578574)
    p = p * s + np.float64(0.044642857175121356)
    p = p * s + np.float64(0.07499999999970262)
    p = p * s + np.float64(0.16666666666666763)
    return p * s


def asin_float64(x):
    a = abs(x)
    outer = a > np.float64(0.5)
    s = (np.float64(1.0) - a) * np.float64(0.5) if outer else a * a
    t = np.sqrt(s) if outer else a
    y = asin_tail_float64(s) * t + t
    y = HALF_PI_64 - (y + y - HALF_PI_LOW_64) if outer else y
    return with_sign_float64(y, x)


def acos_float64(x):
    a = abs(x)
    outer = a > np.float64(0.5)
    s = (np.float64(1.0) - a) * np.float64(0.5) if outer else a * a
    t = np.sqrt(s) if outer else x
    y = asin_tail_float64(s) * t
    inner = HALF_PI_64 - (t + (y - HALF_PI_LOW_64))
    twice = (t + y) + (t + y)
    pi, rest = HALF_PI_64 + HALF_PI_64, HALF_PI_LOW_64 + HALF_PI_LOW_64
    wide = twice if x > np.float64(0.0) else pi - (twice - rest)
    return wide if outer else inner
