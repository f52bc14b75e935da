"""A product has the same bits however its operands lie in memory."""

import numpy as np
import pytest

import tracejit as tj


def layouts(x):
    """The same matrix in several layouts."""
    return [x.clone(), x.t().contiguous().t(), tj.stack([x, x, x], 2)[..., 1]]


def same(found, expected):
    """Equal bits; NumPy 2.0 brings an older OpenBLAS, which rounds some layouts in another way."""
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return np.array_equal(found, expected)
    return np.allclose(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", [tj.float32, tj.float64, tj.float16, tj.bfloat16])
@pytest.mark.parametrize("shape", [
    (1, 37, 20), (20, 37, 1), (1, 37, 1), (9, 17, 5), (1, 1, 4), (37, 37, 37), (2, 900, 300),
    (64, 100, 100), (1, 1000, 501), (100, 101, 100),
])
def test_layouts_do_not_matter(shape, dtype):
    tj.manual_seed(0)
    m, k, n = shape
    a, b = tj.randn(m, k, dtype=dtype), tj.randn(k, n, dtype=dtype)
    expected = (a @ b).float().numpy()
    for x in layouts(a):
        for y in layouts(b):
            assert same((x @ y).float().numpy(), expected)
            stacked = tj.stack([x, x]) @ tj.stack([y, y])
            assert same(stacked[1].float().numpy(), expected)


def test_a_matrix_times_itself_is_no_special_case():
    tj.manual_seed(0)
    for n, m in ((37, 5), (5, 37), (64, 64), (3, 130)):
        x = tj.randn(n, m)
        assert np.array_equal((x.t() @ x).numpy(), (x.t() @ x.clone()).numpy())
        assert (x.t() @ x).is_contiguous()


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_programs_with_eager_numerics_have_the_same_bits(mode):
    def f(x, w):
        w.relu_()
        return x @ w.t(), x @ (w * 1).t().contiguous(), w.t() @ w.clone()

    tj.manual_seed(0)
    g = tj.script(f, mode=mode, numerics="eager")
    for n, k in ((37, 20), (5, 64)):
        x, w = tj.randn(1, k), tj.randn(n, k)
        for one, other in zip(layouts(w), layouts(w)):
            for got, want in zip(g(x, one), f(x, other)):
                assert np.array_equal(got.numpy(), want.numpy())
