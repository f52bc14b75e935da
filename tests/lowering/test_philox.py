"""Philox: published vectors, the same bits in every mode, and the statistics of what is drawn."""

import subprocess
import sys

import ml_dtypes
import numba
import numpy as np
import pytest
from scipy import stats

from tracejit.core.ops import philox_recipe as recipe
from tracejit.core.ops.philox import (
    philox_bernoulli_numpy,
    philox_normal_numpy,
    philox_randint_numpy,
    philox_uniform_numpy,
    philox_words_numpy,
)
from tracejit.jit.lowering.philox import (
    RANDOM_FUNCTIONS,
    kernel_random_function,
    python_random_function,
)

SEED, OFFSET = 0xFEDCBA9876543210, 0x123456789ABCDEF0
SIZE = 40_003  # more than one chunk, and no multiple of a block
DRAWS = {
    "uniform_float32": (philox_uniform_numpy, np.float32),
    "uniform_float64": (philox_uniform_numpy, np.float64),
    "normal_float32": (philox_normal_numpy, np.float32),
    "normal_float64": (philox_normal_numpy, np.float64),
}


def draw_in_kernel(name, n, *extra, out_dtype, fastmath=frozenset({"contract"}), first=0):
    function = kernel_random_function(name)
    text = (
        "def kernel(seed, offset, first, out" + "".join(f", e{i}" for i in range(len(extra))) + "):"
        "\n    for i in range(out.size):\n        out[i] = function(seed, offset, first + i"
        + "".join(f", e{i}" for i in range(len(extra)))
        + ")\n"
    ).replace("first + i", "np.uint64(first + i)")
    space = {"function": function, "np": np}
    exec(text, space)
    kernel = numba.njit(error_model="numpy", fastmath=set(fastmath))(space["kernel"])
    out = np.empty(n, out_dtype)
    kernel(np.uint64(SEED), np.uint64(OFFSET), first, out, *extra)
    return out


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)  # fmt: skip
def test_published_vectors(counter, key, expected):
    words = [np.uint64(int(w, 16)) for w in (counter + " " + key).split()]
    assert [f"{int(w):08x}" for w in recipe.philox4x32(*words)] == expected.split()
    c0, c1, c2, c3, k0, k1 = (int(w) for w in words)
    through_numpy = philox_words_numpy(k0 | k1 << 32, c2 | c3 << 32, c0 | c1 << 32, 1)
    assert [f"{int(w[0]):08x}" for w in through_numpy] == expected.split()


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("fastmath", [{"contract"}, {"contract", "nsz"}, set()],
                         ids=["contract", "contract and nsz", "none"])  # fmt: skip
def test_kernels_give_eager_bits_whatever_their_flags(name, fastmath):
    draw, dtype = DRAWS[name]
    eager = draw(SEED, OFFSET, SIZE, dtype)
    assert eager.dtype == dtype
    got = draw_in_kernel(name, SIZE, out_dtype=dtype, fastmath=fastmath)
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), eager.view(f"u{got.itemsize}"))


@pytest.mark.parametrize("name", DRAWS)
def test_any_part_can_be_drawn_alone(name):
    draw, dtype = DRAWS[name]
    eager = draw(SEED, OFFSET, 1000, dtype)
    np.testing.assert_array_equal(
        draw_in_kernel(name, 300, out_dtype=dtype, first=501), eager[501:801]
    )
    np.testing.assert_array_equal(draw(SEED, OFFSET, 7, dtype), eager[:7])


@pytest.mark.parametrize("name", DRAWS)
def test_plain_python_gives_eager_bits(name):
    draw, dtype = DRAWS[name]
    function = python_random_function(name)
    seed, offset = np.uint64(SEED), np.uint64(OFFSET)
    got = [function(seed, offset, np.uint64(i)) for i in range(21)]
    np.testing.assert_array_equal(np.array(got, dtype), draw(SEED, OFFSET, 21, dtype))


@pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 11), (ml_dtypes.bfloat16, 8)])
def test_16_bit_uniforms_are_exact_and_below_one(dtype, bits):
    eager = philox_uniform_numpy(SEED, OFFSET, SIZE, dtype)
    kernel = draw_in_kernel(f"uniform_{np.dtype(dtype).name}", SIZE, out_dtype=np.float32)
    np.testing.assert_array_equal(kernel, eager.astype(np.float32))
    scaled = kernel * 2**bits
    np.testing.assert_array_equal(scaled, np.floor(scaled))
    assert 0 <= scaled.min() and scaled.max() == 2**bits - 1


@pytest.mark.parametrize(("low", "high"), [(-5, 12), (0, 2**40 + 7), (-(2**62), 2**62), (3, 4)])
def test_integers_fill_their_range_the_same_way_everywhere(low, high):
    eager = philox_randint_numpy(SEED, OFFSET, SIZE, low, high)
    extra = (np.int64(low), np.uint64(high - low))
    kernel = draw_in_kernel("randint", SIZE, *extra, out_dtype=np.int64)
    np.testing.assert_array_equal(kernel, eager)
    first, second = (
        w.astype(object) for w in recipe.word_pair_of(
            np.uint64(SEED), np.uint64(OFFSET), np.arange(50, dtype=np.uint64)
        )
    )  # fmt: skip
    exact = [low + ((a << 32 | b) * (high - low) >> 64) for a, b in zip(first, second, strict=True)]
    assert eager[:50].tolist() == exact
    assert low <= eager.min() and eager.max() < high
    if high - low < 100:
        counts = np.bincount(eager - low, minlength=high - low)
        assert stats.chisquare(counts).pvalue > 1e-4 or high - low == 1


def test_bernoulli_masks_are_the_same_everywhere():
    for p in (0.0, 0.1, 0.5, 1.0):
        eager = philox_bernoulli_numpy(SEED, OFFSET, SIZE, p)
        kernel = draw_in_kernel("bernoulli", SIZE, np.float64(p), out_dtype=np.bool_)
        np.testing.assert_array_equal(kernel, eager)
        assert abs(eager.mean() - p) < 5 * np.sqrt(p * (1 - p) / SIZE) + 1e-12


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name):
    draw, dtype = DRAWS[name]
    x = draw(11, 3, 400_000, dtype).astype(np.float64)
    if name.startswith("uniform"):
        assert 0 <= x.min() and x.max() < 1
        expected, law = (0.5, 1 / 12, 0.0, -1.2), "uniform"
    else:
        expected, law = (0.0, 1.0, 0.0, 0.0), "norm"
    moments = (x.mean(), x.var(), stats.skew(x), stats.kurtosis(x))
    np.testing.assert_allclose(moments, expected, atol=0.02)
    assert stats.kstest(x, law).pvalue > 1e-4
    for lag in (1, 2, 3, 4, 8):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 0.008
    for other in (draw(11, 4, x.size, dtype), draw(12, 3, x.size, dtype)):
        assert abs(np.corrcoef(x, other)[0, 1]) < 0.008


def test_both_members_of_a_pair_are_normal_and_uncorrelated():
    for dtype in (np.float32, np.float64):
        x = philox_normal_numpy(5, 0, 400_000, dtype).astype(np.float64)
        for part in (x[0::2], x[1::2]):
            assert stats.kstest(part, "norm").pvalue > 1e-4
        assert abs(np.corrcoef(x[0::2], x[1::2])[0, 1]) < 0.01
        assert abs(np.corrcoef(x[0::2] ** 2, x[1::2] ** 2)[0, 1]) < 0.01


def test_normals_follow_the_defining_formula():
    w = [x.astype(np.float64) for x in philox_words_numpy(9, 1, 0, 5000)]
    words = philox_words_numpy(9, 1, 0, 5000)
    got = philox_normal_numpy(9, 1, 20_000).reshape(-1, 4).astype(np.float64)
    radius = np.sqrt(-2 * np.log((w[0] + 1) / 2**32))
    low = (words[1] & np.uint64(0x3FFFFFFF)).astype(np.float64)
    turn = np.floor(w[1] / 2**30) + low / 2**30 - 0.5
    np.testing.assert_allclose(got[:, 0], radius * np.cos(turn * np.pi / 2), atol=2e-6)
    np.testing.assert_allclose(got[:, 1], radius * np.sin(turn * np.pi / 2), atol=2e-6)


def test_extreme_words_give_finite_normals():
    ends = np.array([0, 1, 0xFFFFFFFE, 0xFFFFFFFF], np.uint64)
    first, second = (g.ravel() for g in np.meshgrid(ends, ends))
    for radius in (recipe.radius_float32(first), recipe.radius_float64(first, second)):
        assert np.isfinite(radius).all() and radius.min() >= 0
    assert 6.6 < recipe.radius_float32(ends[:1])[0] < 6.7
    assert 8.5 < recipe.radius_float64(ends[:1], ends[:1])[0] < 8.6


def test_wrong_requests_are_named():
    with pytest.raises(TypeError, match="expected a floating dtype, got int32"):
        philox_uniform_numpy(0, 0, 3, np.int32)
    with pytest.raises(TypeError, match="expected a floating dtype, got bool"):
        philox_normal_numpy(0, 0, 3, np.bool_)
    with pytest.raises(ValueError, match="expected low < high"):
        philox_randint_numpy(0, 0, 3, 5, 5)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        philox_uniform_numpy(0, 0, -1)
    with pytest.raises(KeyError, match="no random function 'gamma'"):
        python_random_function("gamma")


def test_every_random_function_compiles_for_kernels():
    for name, (function, dtypes) in RANDOM_FUNCTIONS.items():
        assert function.__code__.co_argcount == len(dtypes), name
        kernel_random_function(name)


def test_eager_random_numbers_need_no_numba():
    code = (
        "import sys, tracejit.core.ops.philox as p, tracejit.jit.lowering.vector_math,"
        "tracejit.jit.lowering.philox, tracejit.jit.lowering.half; p.philox_normal_numpy(0, 0, 4);"
        "sys.exit(int('numba' in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
