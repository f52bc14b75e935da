"""sin and cos between -pi/4 and pi/4, float32 and float64.

In and out: one NumPy scalar (plain Python) or one LLVM value; straight-line text in the subset of
`vector_math_intrinsics`. Called by `vector_math_trigonometric` and `vector_math_far`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np


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
