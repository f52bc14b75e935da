"""erf and erfc over typed scalars, float32 and float64.

In and out: one NumPy scalar (plain Python) or one numba value. Straight-line text in the subset of
`vector_math_intrinsics`; `vector_math` registers the public names. Error bounds are in
docs/numerics.md.
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
    ROUND_32,
    ROUND_64,
    exp_float32,
    exp_float64,
    expm1_near_zero_float32,
    expm1_near_zero_float64,
    scale_float32,
    scale_float64,
    with_sign_float32,
    with_sign_float64,
)


def erf_tail_near_zero_float32(x):
    """Return erf(x) - x for |x| <= 0.93."""
    s = x * x
    p = np.float32(8.345211e-05)
    p = p * s + np.float32(-0.0008137434)
    p = p * s + np.float32(0.005200634)
    p = p * s + np.float32(-0.02685927)
    p = p * s + np.float32(0.11283694)
    p = p * s + np.float32(-0.37612635)
    p = p * s + np.float32(0.12837917)
    return p * x


def erf_tail_near_zero_float64(x):
    """Return erf(x) - x for |x| <= 1."""
    s = x * x
    p = np.float64(5.957176147748911e-11)
    p = p * s + np.float64(-1.1372848856791674e-09)
    p = p * s + np.float64(1.4659775274047436e-08)
    p = p * s + np.float64(-1.6350312701054695e-07)
    p = p * s + np.float64(1.6461000484121368e-06)
    p = p * s + np.float64(-1.4925595266831182e-05)
    p = p * s + np.float64(0.0001205533111164271)
    p = p * s + np.float64(-0.000854832698083379)
    p = p * s + np.float64(0.0052239776248180145)
    p = p * s + np.float64(-0.026866170645076792)
    p = p * s + np.float64(0.11283791670954879)
    p = p * s + np.float64(-0.3761263890318375)
    p = p * s + np.float64(0.1283791670955126)
    return p * x


def erf_float32(x):
    a = abs(x)
    z = np.float32(4.0) if a > np.float32(4.0) else a
    # log(erfc(z)): only its absolute error, times erfc(z), reaches the result
    p = np.float32(-2.1161839e-05)
    p = p * z + np.float32(0.00043521813)
    p = p * z + np.float32(-0.0041746395)
    p = p * z + np.float32(0.025128616)
    p = p * z + np.float32(-0.108293936)
    p = p * z + np.float32(-0.63333464)
    p = p * z + np.float32(-1.1295208)
    p = p * z + np.float32(0.00017587337)
    large = np.float32(1.0) - exp_float32(p)
    small = erf_tail_near_zero_float32(a) + a
    return with_sign_float32(small if a < np.float32(0.92) else large, x)


def erf_float64(x):
    a = abs(x)
    z = np.float64(6.0) if a > np.float64(6.0) else a
    p = np.float64(-1.805346856144735e-13)
    p = p * z + np.float64(9.026470328619111e-12)
    p = p * z + np.float64(-2.1260227781929175e-10)
    p = p * z + np.float64(3.1355943374392625e-09)
    p = p * z + np.float64(-3.244680005823733e-08)
    p = p * z + np.float64(2.498538233038648e-07)
    p = p * z + np.float64(-1.4786532534143968e-06)
    p = p * z + np.float64(6.820795706519209e-06)
    p = p * z + np.float64(-2.4399812662533704e-05)
    p = p * z + np.float64(6.507450650010604e-05)
    p = p * z + np.float64(-0.0001114464781858663)
    p = p * z + np.float64(2.3139335489477954e-05)
    p = p * z + np.float64(0.0005508084481605604)
    p = p * z + np.float64(-0.0016732672870663548)
    p = p * z + np.float64(0.00020084561701604137)
    p = p * z + np.float64(0.019129007240376524)
    p = p * z + np.float64(-0.10277128570908804)
    p = p * z + np.float64(-0.6366205742784771)
    p = p * z + np.float64(-1.1283789495398675)
    p = p * z + np.float64(-2.4456757938463732e-08)
    large = np.float64(1.0) - exp_float64(p)
    small = erf_tail_near_zero_float64(a) + a
    return with_sign_float64(small if a < np.float64(1.0) else large, x)


def erfc_float32(x):
    a = abs(x)
    z = np.float32(10.1) if a > np.float32(10.1) else a
    # e^(z*z) erfc(z) (1 + 2z), smooth in q
    q = (z - np.float32(4.0)) / (z + np.float32(4.0))
    p = np.float32(0.005232557)
    p = p * q + np.float32(-0.016634451)
    p = p * q + np.float32(0.03698513)
    p = p * q + np.float32(-0.06624035)
    p = p * q + np.float32(0.09377389)
    p = p * q + np.float32(-0.10104685)
    p = p * q + np.float32(0.068093844)
    p = p * q + np.float32(0.01537991)
    p = p * q + np.float32(-0.13962105)
    p = p * q + np.float32(1.2329952)
    # z*z in two parts, as its rounding error would be magnified by the exponential
    high = np.uint32(np.float32(z).view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    square = high * high
    rounded = ROUND_32 - square * LOG2_E_32
    k = rounded - ROUND_32
    r = -square - k * LN2_HIGH_32
    r = r - k * LN2_LOW_32 - (z - high) * (z + high)
    p = p / (z + z + np.float32(1.0))
    tail = scale_float32(expm1_near_zero_float32(r) * p + p, rounded)
    large = tail if x > np.float32(0.0) else np.float32(2.0) - tail
    small = np.float32(1.0) - (erf_tail_near_zero_float32(x) + x)
    return small if a < np.float32(0.47) else large


def erfc_float64(x):
    a = abs(x)
    z = np.float64(27.3) if a > np.float64(27.3) else a
    q = (z - np.float64(4.0)) / (z + np.float64(4.0))
    p = np.float64(1.4342363178485402e-09)
    p = p * q + np.float64(-9.795027997051e-09)
    p = p * q + np.float64(-1.6744694487621562e-08)
    p = p * q + np.float64(1.0365320929099624e-07)
    p = p * q + np.float64(7.318488775897543e-08)
    p = p * q + np.float64(-8.199780474885315e-07)
    p = p * q + np.float64(2.948075897679952e-07)
    p = p * q + np.float64(5.706804147110893e-06)
    p = p * q + np.float64(-1.1222454381172582e-05)
    p = p * q + np.float64(-2.4398181564614074e-05)
    p = p * q + np.float64(0.00015062179231022213)
    p = p * q + np.float64(-0.0001992569342711677)
    p = p * q + np.float64(-0.0007577733091632431)
    p = p * q + np.float64(0.005031970013671658)
    p = p * q + np.float64(-0.016197734055565863)
    p = p * q + np.float64(0.03716751553425065)
    p = p * q + np.float64(-0.06633036581235285)
    p = p * q + np.float64(0.09373283499851123)
    p = p * q + np.float64(-0.1010390660363005)
    p = p * q + np.float64(0.06809705425468898)
    p = p * q + np.float64(0.015379652102619708)
    p = p * q + np.float64(-0.1396211168405625)
    p = p * q + np.float64(1.2329951186255526)
    mask = np.uint64(0xFFFFFFFFF8000000)
    high = np.uint64(np.float64(z).view(np.uint64) & mask).view(np.float64)
    square = high * high
    rounded = ROUND_64 - square * LOG2_E_64
    k = rounded - ROUND_64
    r = -square - k * LN2_HIGH_64
    r = r - k * LN2_LOW_64 - (z - high) * (z + high)
    p = p / (z + z + np.float64(1.0))
    tail = scale_float64(expm1_near_zero_float64(r) * p + p, rounded)
    large = tail if x > np.float64(0.0) else np.float64(2.0) - tail
    small = np.float64(1.0) - (erf_tail_near_zero_float64(x) + x)
    return small if a < np.float64(0.47) else large
