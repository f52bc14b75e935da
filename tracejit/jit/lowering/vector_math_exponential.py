"""exp, exp2, expm1, sigmoid, tanh, sinh and cosh over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names. Polynomials are minimax fits
made for this file; error bounds are in docs/numerics.md.

Adding 1.5 * 2^(mantissa bits) rounds to the nearest integer. The integer then sits in the low bits
of the sum, so no float-to-integer conversion (undefined for NaN) is needed.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

ROUND_32 = np.float32(12582912.0)
ROUND_64 = np.float64(6755399441055744.0)
LOG2_E_32 = np.float32(1.4426950408889634)
LOG2_E_64 = np.float64(1.4426950408889634)
# ln 2 in two parts: the first has so few bits that its product with any exponent is exact
LN2_HIGH_32 = np.float32(0.693359375)
LN2_LOW_32 = np.float32(-2.1219444005469058e-4)
LN2_HIGH_64 = np.float64(0.6931471803691238)
LN2_LOW_64 = np.float64(1.9082149292705877e-10)


def scale_float32(x, rounded):
    """Return x times 2^k, k the integer held by `rounded`, in two factors so that denormals come
    out."""
    bits = np.float32(rounded).view(np.int32)
    half = np.int32(bits >> np.int32(1))
    rest = np.int32(bits - half)
    one = np.int32(1065353216)
    first = np.int32(np.int32(half << np.int32(23)) + one).view(np.float32)
    second = np.int32(np.int32(rest << np.int32(23)) + one).view(np.float32)
    return x * first * second


def scale_float64(x, rounded):
    """Return x times 2^k, k the integer held by `rounded`, in two factors so that denormals come
    out."""
    bits = np.float64(rounded).view(np.int64)
    half = np.int64(bits >> np.int64(1))
    rest = np.int64(bits - half)
    one = np.int64(4607182418800017408)
    first = np.int64(np.int64(half << np.int64(52)) + one).view(np.float64)
    second = np.int64(np.int64(rest << np.int64(52)) + one).view(np.float64)
    return x * first * second


def with_sign_float32(magnitude, x):
    """Return `magnitude` (not negative) with the sign of x, -0.0 included."""
    sign = np.uint32(np.float32(x).view(np.uint32) & np.uint32(0x80000000))
    bits = np.float32(magnitude).view(np.uint32)
    return np.uint32(bits | sign).view(np.float32)


def with_sign_float64(magnitude, x):
    """Return `magnitude` (not negative) with the sign of x, -0.0 included."""
    sign = np.uint64(np.float64(x).view(np.uint64) & np.uint64(0x8000000000000000))
    bits = np.float64(magnitude).view(np.uint64)
    return np.uint64(bits | sign).view(np.float64)


def expm1_near_zero_float32(r):
    """Return e^r - 1 for |r| <= ln(2) / 2."""
    p = np.float32(0.0013947597)
    p = p * r + np.float32(0.008367247)
    p = p * r + np.float32(0.041666266)
    p = p * r + np.float32(0.16666538)
    p = p * r + np.float32(0.5)
    return p * (r * r) + r


def expm1_near_zero_float64(r):
    """Return e^r - 1 for |r| <= ln(2) / 2."""
    p = np.float64(2.5100472505694996e-08)
    p = p * r + np.float64(2.7620201591031547e-07)
    p = p * r + np.float64(2.7557268276905696e-06)
    p = p * r + np.float64(2.4801521057868204e-05)
    p = p * r + np.float64(0.00019841269863171557)
    p = p * r + np.float64(0.0013888888917367081)
    p = p * r + np.float64(0.008333333333330039)
    p = p * r + np.float64(0.041666666666623824)
    p = p * r + np.float64(0.16666666666666669)
    p = p * r + np.float64(0.5)
    return p * (r * r) + r


def exp_float32(x):
    z = np.float32(-104.0) if x < np.float32(-104.0) else x
    z = np.float32(89.0) if z > np.float32(89.0) else z
    rounded = z * LOG2_E_32 + ROUND_32
    k = rounded - ROUND_32
    r = z - k * LN2_HIGH_32
    r = r - k * LN2_LOW_32
    return scale_float32(expm1_near_zero_float32(r) + np.float32(1.0), rounded)


def exp_float64(x):
    z = np.float64(-746.0) if x < np.float64(-746.0) else x
    z = np.float64(710.0) if z > np.float64(710.0) else z
    rounded = z * LOG2_E_64 + ROUND_64
    k = rounded - ROUND_64
    r = z - k * LN2_HIGH_64
    r = r - k * LN2_LOW_64
    return scale_float64(expm1_near_zero_float64(r) + np.float64(1.0), rounded)


def exp2_float32(x):
    z = np.float32(-151.0) if x < np.float32(-151.0) else x
    z = np.float32(129.0) if z > np.float32(129.0) else z
    rounded = z + ROUND_32
    r = z - (rounded - ROUND_32)
    p = np.float32(0.00015453163)
    p = p * r + np.float32(0.0013390863)
    p = p * r + np.float32(0.009618083)
    p = p * r + np.float32(0.05550357)
    p = p * r + np.float32(0.2402265)
    p = p * r + np.float32(0.6931472)
    return scale_float32(p * r + np.float32(1.0), rounded)


def exp2_float64(x):
    z = np.float64(-1076.0) if x < np.float64(-1076.0) else x
    z = np.float64(1025.0) if z > np.float64(1025.0) else z
    rounded = z + ROUND_64
    r = z - (rounded - ROUND_64)
    p = np.float64(4.4573861091062733e-10)
    p = p * r + np.float64(7.073860118032423e-09)
    p = p * r + np.float64(1.0178046468540006e-07)
    p = p * r + np.float64(1.3215434817275035e-06)
    p = p * r + np.float64(1.5252733867524815e-05)
    p = p * r + np.float64(0.00015403530458078888)
    p = p * r + np.float64(0.0013333558146379051)
    p = p * r + np.float64(0.009618129107593333)
    p = p * r + np.float64(0.05550410866482174)
    p = p * r + np.float64(0.24022650695910133)
    p = p * r + np.float64(0.6931471805599453)
    return scale_float64(p * r + np.float64(1.0), rounded)


def expm1_float32(x):
    z = np.float32(-18.0) if x < np.float32(-18.0) else x
    z = np.float32(89.0) if z > np.float32(89.0) else z
    rounded = z * LOG2_E_32 + ROUND_32
    k = rounded - ROUND_32
    r = z - k * LN2_HIGH_32
    r = r - k * LN2_LOW_32
    # half of 2^k, as 2^128 is not a float
    bits = np.int32(np.float32(rounded).view(np.int32) << np.int32(23))
    s = np.int32(bits + np.int32(1056964608)).view(np.float32)
    y = expm1_near_zero_float32(r) * s + (s - np.float32(0.5))
    return x if abs(x) < np.float32(1e-8) else y + y


def expm1_float64(x):
    z = np.float64(-38.0) if x < np.float64(-38.0) else x
    z = np.float64(710.0) if z > np.float64(710.0) else z
    rounded = z * LOG2_E_64 + ROUND_64
    k = rounded - ROUND_64
    r = z - k * LN2_HIGH_64
    r = r - k * LN2_LOW_64
    bits = np.int64(np.float64(rounded).view(np.int64) << np.int64(52))
    s = np.int64(bits + np.int64(4602678819172646912)).view(np.float64)
    y = expm1_near_zero_float64(r) * s + (s - np.float64(0.5))
    return x if abs(x) < np.float64(1e-17) else y + y


def sigmoid_float32(x):
    e = exp_float32(-abs(x))
    above = np.float32(1.0) if x >= np.float32(0.0) else e
    below = e + np.float32(1.0)
    lost = e - (below - np.float32(1.0))
    y = above / below
    # where e is small, 1 / below is near 1, and the sum's rounding error can be divided out
    return y - y * lost


def sigmoid_float64(x):
    e = exp_float64(-abs(x))
    above = np.float64(1.0) if x >= np.float64(0.0) else e
    below = e + np.float64(1.0)
    lost = e - (below - np.float64(1.0))
    y = above / below
    # where e is small, 1 / below is near 1, and the sum's rounding error can be divided out
    return y - y * lost


def tanh_float32(x):
    a = abs(x)
    a = np.float32(9.1) if a > np.float32(9.1) else a
    z = a + a
    rounded = z * LOG2_E_32 + ROUND_32
    k = rounded - ROUND_32
    r = z - k * LN2_HIGH_32
    r = r - k * LN2_LOW_32
    bits = np.int32(np.float32(rounded).view(np.int32) << np.int32(23))
    scale = np.int32(bits + np.int32(1056964608)).view(np.float32)  # 2^k / 2
    h = scale * expm1_near_zero_float32(r) + (scale - np.float32(0.5))  # (e^2a - 1) / 2
    ratio = h / (h + np.float32(1.0))
    better = h - h * ratio  # near zero the ratio's own error counts little
    return with_sign_float32(better if a < np.float32(0.3) else ratio, x)


def tanh_float64(x):
    a = abs(x)
    large = np.float64(1.0) - np.float64(2.0) / (exp_float64(a + a) + np.float64(1.0))
    s = a * a
    p = np.float64(-1.6107548330841832e-05)
    p = p * s + np.float64(7.721918396772767e-05)
    p = p * s + np.float64(-0.0002286332449322167)
    p = p * s + np.float64(0.0005863524855650644)
    p = p * s + np.float64(-0.0014549704763414859)
    p = p * s + np.float64(0.003591991570737652)
    p = p * s + np.float64(-0.008863221319267454)
    p = p * s + np.float64(0.02186948760196539)
    p = p * s + np.float64(-0.05396825393248232)
    p = p * s + np.float64(0.13333333333264916)
    p = p * s + np.float64(-0.33333333333332876)
    small = p * s * a + a
    return with_sign_float64(small if a < np.float64(0.625) else large, x)


def half_exp_float32(a):
    """Return e^a / 2 for a >= 0, finite as far as sinh and cosh are."""
    z = np.float32(90.0) if a > np.float32(90.0) else a
    rounded = z * LOG2_E_32 + ROUND_32
    k = rounded - ROUND_32
    r = z - k * LN2_HIGH_32
    r = r - k * LN2_LOW_32
    return scale_float32(expm1_near_zero_float32(r) + np.float32(1.0), rounded - np.float32(1.0))


def sinh_float32(x):
    a = abs(x)
    h = half_exp_float32(a)
    large = h - np.float32(0.25) / h
    s = a * a
    p = np.float32(2.8174395e-06)
    p = p * s + np.float32(0.00019836066)
    p = p * s + np.float32(0.0083333505)
    p = p * s + np.float32(0.16666667)
    small = p * s * a + a
    return with_sign_float32(small if a < np.float32(1.0) else large, x)


def half_exp_float64(a):
    """Return e^a / 2 for a >= 0, finite as far as sinh and cosh are."""
    z = np.float64(711.0) if a > np.float64(711.0) else a
    rounded = z * LOG2_E_64 + ROUND_64
    k = rounded - ROUND_64
    r = z - k * LN2_HIGH_64
    r = r - k * LN2_LOW_64
    return scale_float64(expm1_near_zero_float64(r) + np.float64(1.0), rounded - np.float64(1.0))


def sinh_float64(x):
    a = abs(x)
    h = half_exp_float64(a)
    large = h - np.float64(0.25) / h
    s = a * a
    p = np.float64(7.759312002665668e-13)
    p = p * s + np.float64(1.6057240348552043e-10)
    p = p * s + np.float64(2.505212339845191e-08)
    p = p * s + np.float64(2.7557319155337582e-06)
    p = p * s + np.float64(0.00019841269841437678)
    p = p * s + np.float64(0.008333333333333139)
    p = p * s + np.float64(0.16666666666666669)
    small = p * s * a + a
    return with_sign_float64(small if a < np.float64(1.0) else large, x)


def cosh_float32(x):
    h = half_exp_float32(abs(x))
    return h + np.float32(0.25) / h


def cosh_float64(x):
    h = half_exp_float64(abs(x))
    return h + np.float64(0.25) / h
