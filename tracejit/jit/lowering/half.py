"""float16 and bfloat16 bit patterns (uint16) to float32 and back, for kernels.

In and out: NumPy scalars (plain Python) or numba values. Straight-line text in the subset of
`vector_math_intrinsics`, so that kernels load 16-bit floats, compute in float32 and store. Rounding
is to nearest, ties to even; infinities, NaN and denormals come out as NumPy's casts give them.
Called by the kernel writers through `kernel_conversion`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def float32_from_float16(bits):
    """Return the float32 with the value of the float16 whose pattern is `bits`."""
    word = np.uint32(bits)
    magnitude = np.uint32(np.uint32(word & np.uint32(0x7FFF)) << np.uint32(13))
    # the exponent moves by 112; the multiplication also normalises denormals, exactly
    finite = np.uint32(magnitude).view(np.float32) * np.float32(5.192296858534828e33)
    special = np.uint32(magnitude | np.uint32(0x7F800000)).view(np.float32)
    y = special if magnitude >= np.uint32(0x0F800000) else finite
    sign = np.uint32(np.uint32(word & np.uint32(0x8000)) << np.uint32(16))
    return np.uint32(np.float32(y).view(np.uint32) | sign).view(np.float32)


def float16_from_float32(x):
    """Return the pattern, uint16, of the float16 nearest to x."""
    word = np.float32(x).view(np.uint32)
    sign = np.uint32(np.uint32(word & np.uint32(0x80000000)) >> np.uint32(16))
    magnitude = np.uint32(word & np.uint32(0x7FFFFFFF))
    odd = np.uint32(np.uint32(magnitude >> np.uint32(13)) & np.uint32(1))
    # exponent down by 112, then half an ulp, less one where the kept part is even
    moved = np.uint32(np.uint32(magnitude - np.uint32(0x38000000)) + np.uint32(0xFFF))
    normal = np.uint32(np.uint32(moved + odd) >> np.uint32(13))
    # adding 1/2 leaves a denormal result, rounded by the hardware, in the low bits of the sum
    sum_ = np.float32(np.uint32(magnitude).view(np.float32) + np.float32(0.5))
    tiny = np.uint32(np.float32(sum_).view(np.uint32) - np.uint32(0x3F000000))
    y = tiny if magnitude < np.uint32(0x38800000) else normal
    y = np.uint32(0x7C00) if magnitude >= np.uint32(0x477FF000) else y
    payload = np.uint32(np.uint32(magnitude >> np.uint32(13)) & np.uint32(0x3FF))
    quiet = np.uint32(np.uint32(0x7E00) | payload)
    y = quiet if magnitude > np.uint32(0x7F800000) else y
    return np.uint16(np.uint32(y | sign))


def float32_from_bfloat16(bits):
    """Return the float32 with the value of the bfloat16 whose pattern is `bits`."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


def bfloat16_from_float32(x):
    """Return the pattern, uint16, of the bfloat16 nearest to x."""
    word = np.float32(x).view(np.uint32)
    odd = np.uint32(np.uint32(word >> np.uint32(16)) & np.uint32(1))
    sign = np.uint32(word & np.uint32(0x80000000))
    magnitude = np.uint32(word & np.uint32(0x7FFFFFFF))
    carried = np.uint32(np.uint32(magnitude + np.uint32(0x7FFF)) + odd)
    rounded = np.uint32(np.uint32(carried | sign) >> np.uint32(16))
    quiet = np.uint32(np.uint32(sign >> np.uint32(16)) | np.uint32(0x7FC0))
    return np.uint16(quiet if magnitude > np.uint32(0x7F800000) else rounded)


CONVERSIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "float32_from_float16": (float32_from_float16, ("uint16",)),
    "float16_from_float32": (float16_from_float32, ("float32",)),
    "float32_from_bfloat16": (float32_from_bfloat16, ("uint16",)),
    "bfloat16_from_float32": (bfloat16_from_float32, ("float32",)),
}


@functools.cache
def kernel_conversion(name: str, target: str = "cpu") -> Any:
    """Return the conversion as a numba callable for kernels; `target` is "cpu" or "cuda"."""
    from tracejit.jit.lowering.vector_math_intrinsics import as_intrinsic

    function, dtypes = CONVERSIONS[name]
    return as_intrinsic(function, dtypes, target=target)
