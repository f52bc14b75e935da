"""16-bit float conversions, over every pattern, against NumPy's and ml_dtypes' casts."""

import ml_dtypes
import numba
import numpy as np
import pytest

from tracejit.jit.lowering.half import CONVERSIONS, kernel_conversion

PATTERNS = np.arange(65536, dtype=np.uint16)
HALF = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def convert(name, array, out_dtype):
    function = kernel_conversion(name)

    @numba.njit(error_model="numpy")
    def kernel(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty(array.shape, out_dtype)
    kernel(array, out)
    return out


def awkward_floats(kind):
    """Every 16-bit value, the midpoints between neighbours, their neighbours, and others."""
    with np.errstate(all="ignore"):
        exact = PATTERNS.view(HALF[kind]).astype(np.float32)
    bits = exact.view(np.uint32)
    step = np.uint32(1 << (13 if kind == "float16" else 16))
    middle = (bits + step // np.uint32(2)).astype(np.uint32)
    near = [middle, middle - np.uint32(1), middle + np.uint32(1)]
    spread = np.arange(0, 2**32, 40009, dtype=np.uint64).astype(np.uint32)
    tiny = (np.arange(-4000, 4000) * 2.0**-28).astype(np.float32).view(np.uint32)
    return np.concatenate([bits, *near, spread, tiny]).view(np.float32)


@pytest.mark.parametrize("kind", HALF)
def test_widening_is_exact_for_every_pattern(kind):
    got = convert(f"float32_from_{kind}", PATTERNS, np.float32)
    with np.errstate(all="ignore"):
        expected = PATTERNS.view(HALF[kind]).astype(np.float32)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(got[number].view(np.uint32), expected[number].view(np.uint32))
    assert np.isnan(got[~number]).all()


@pytest.mark.parametrize("kind", HALF)
def test_narrowing_rounds_to_nearest_even(kind):
    x = awkward_floats(kind)
    got = convert(f"{kind}_from_float32", x, np.uint16)
    with np.errstate(all="ignore"):
        expected = x.astype(HALF[kind])
    number = ~np.isnan(x)
    np.testing.assert_array_equal(got[number], expected[number].view(np.uint16))
    assert np.isnan(got[~number].view(HALF[kind]).astype(np.float32)).all()


@pytest.mark.parametrize("name", CONVERSIONS)
def test_plain_python_gives_the_kernels_bits(name):
    function, (source,) = CONVERSIONS[name]
    kind = "bfloat16" if "bfloat16" in name else "float16"
    x = PATTERNS[::17] if source == "uint16" else awkward_floats(kind)[::61]
    with np.errstate(all="ignore"):
        expected = np.array([function(v) for v in x])
    got = convert(name, x, expected.dtype)
    np.testing.assert_array_equal(got, expected)
