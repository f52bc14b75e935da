"""Groups that are merged while their operands are placed, and groups that stay apart."""

import warnings

import numpy as np
import pytest

import tracejit as tj
import tracejit.nn.functional as F
from tracejit import config


def test_readers_may_be_merged_before_a_value_is_stored():
    def f(x, index, y):
        v = tj.clamp(tj.nan_to_num(tj.atan(x)), -100, 100).to(tj.int32)
        w = tj.scatter_add(v, 0, index, v)
        (y * y).sum().backward()
        return v.shape[0] - v, tj.gt(v, w).to(tj.uint8)

    def run(g):
        x, y = tj.tensor([2.0]).expand(5), tj.tensor(2.0, dtype=tj.bfloat16).requires_grad_() * 1
        return [r.tolist() for r in g(x, tj.tensor([0, 1, 2, 3, 3]), y)]

    assert run(tj.script(f)) == run(f)


def test_narrow_integers_wrap_sizes():
    def f(x):
        return x + x.shape[0], x.shape[0] - x, x.clone().sub_(x.shape[0])

    for dtype in (tj.int8, tj.uint8, tj.int16):
        for mode in ("graph", "compiled", "python"):
            g = tj.script(f, mode=mode)
            for n in (5, 306, 40000):
                x = tj.ones(n, dtype=dtype)
                assert [r[0].item() for r in g(x)] == [r[0].item() for r in f(x)]


def logarithms_at_columns(x):
    total = tj.logsumexp(x, -1)
    return tj.eq(total * total, x), total


def means_at_columns(x):
    mean = x.mean(-1)
    return (x - mean).exp() + x.mean(-1, keepdim=True), mean


def largest_at_both(x):
    best = x.amax(1)
    return x * best + best[:, None], best * 2


@pytest.mark.parametrize("f", [logarithms_at_columns, means_at_columns, largest_at_both])
@pytest.mark.parametrize("size", [1, 5, 64])
def test_reductions_of_rows_read_by_columns_of_a_square(f, size):
    """Rows and columns are equally many: their reductions are still not the same loop's."""
    x = tj.linspace(-2.0, 2.0, size * size, dtype=tj.float64).reshape(size, size)
    g = tj.script(f, mode="compiled")
    with config.override(verify_passes=True):  # what cannot be compiled raises
        got = g(x)
    assert all(tj.allclose(a.double(), b.double()) for a, b in zip(got, f(x)))


def test_sums_over_several_dimensions_round_like_short_ones():
    """One accumulator for all 2,516 elements was off by 1.6e-6 in the median, up to 8e-6."""

    @tj.script
    def spread(x):
        return tj.var(x)

    errors = []
    for seed in range(20):
        x = tj.rand(1, 17, 4, generator=tj.Generator().manual_seed(seed)).expand(37, 17, 4)
        exact = np.asarray(x).astype(np.float64).var(ddof=1)
        errors.append(abs(spread(x).item() / exact - 1))
    assert np.median(errors) < 5e-7  # 4 units in the last place


def test_scattering_nothing_reads_no_index():
    """Its elements are known to be none, so where they would lie is not: memory of others."""

    @tj.script
    def first_half(x, index):
        return tj.chunk(tj.gather(x, 0, index) - x, 2, 2)[0]

    for shape in ((0, 0), (3, 4)):
        x = tj.rand(*shape, 1).requires_grad_()
        y = first_half(x, tj.zeros(*shape, 0, dtype=tj.int64))
        y.sum().backward()
        assert tuple(y.shape) == (*shape, 0) and x.grad.eq(0).all()


def test_a_slice_of_one_element_asks_nothing_of_its_bounds():
    """The place in a dimension of one element is a plain 0, which a size was compared with."""

    def f(x, index):
        y = tj.nn.functional.gelu(x, approximate="tanh")
        z = tj.scatter_add(y.expand_as(x).pow_(2), 0, index, y)
        half = tj.chunk(z, 2, 0)[0]
        return (half * half).sum() + (y * y).sum()

    x, w = (tj.full((1,), 0.5, dtype=tj.float64).requires_grad_() for _ in range(2))
    index = tj.zeros(1, dtype=tj.int64)
    with config.override(verify_passes=True):  # what cannot be compiled raises
        f(x * 1, index).backward()
        tj.script(lambda x: f(x, index).backward(), mode="compiled")(w * 1)
    assert tj.allclose(x.grad, w.grad)


def test_what_only_a_branch_computes_is_not_kept_for_later_loops():
    def f(x):
        y = tj.pow(x / x, x)
        y.transpose(0, 1)[0].add_(y.shape[1])
        return y * 1, tj.softmax(y, -1)

    x = tj.rand(3, 6) + 1
    with config.override(verify_passes=True):  # what cannot be compiled raises
        got = tj.script(f, mode="compiled")(x)
    assert all(tj.allclose(a, b) for a, b in zip(got, f(x)))


def test_parts_put_into_parts_many_times_are_not_one_kernel():
    """Each line doubles what one kernel's text would hold: 20 lines took minutes."""

    def f(x, c):
        for k in range(20):
            part = x.clone()
            part[k] = x.sum() if k == 7 else k
            x = tj.where(c, part, x)
        for _ in range(20):
            x = F.pad(x[1:], (0, 1)) - F.pad(x[:-1], (1, 0))
        return x

    g, x = tj.script(f, mode="compiled"), tj.randn(37)
    with config.override(verify_passes=True):
        for c in (tj.tensor(True), tj.tensor(False)):
            assert tj.allclose(g(x, c), f(x, c))
    assert max(kernel.source.count("\n") for kernel in g.report().kernels) < 2000


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_rows_that_only_a_branch_reads_are_not_summed_where_there_are_none(mode):
    """The row above the first one is padding: its position lies outside of `positions`."""

    def f(table, positions):
        rows = table[positions]
        sums = (rows * rows).sum(-1, keepdim=True)
        scaled = rows * sums
        return F.pad(scaled, (0, 0, 1, -1)) + scaled, sums

    table, positions = tj.rand(10, 8), tj.tensor([[999, 1, 2, 3]])[:, 1:]
    g = tj.script(f, mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a program failed where the function does not
        for _ in range(2):
            for got, wanted in zip(g(table, positions), f(table, positions)):
                assert tj.allclose(got, wanted)



def kernel_count(f, *given):
    compiled = tj.script(f)
    compiled(*given)
    return sum(not kernel.title.startswith("sum") for kernel in compiled.report().kernels)


def slopes_of_differences(x):
    x = x.detach().requires_grad_()
    loss = ((x[1:] - x[:-1]) ** 2).sum() + ((x[:, 1:] - x[:, :-1]) ** 2).sum()
    return tj.autograd.grad(loss, x)[0]


def sums_among_zeros(x):
    return F.pad((x * 2 + 1).relu(), (1, 0))


def far_rows_among_zeros(x):
    row = (x[:1] * 2 + 1) * (x[1:2] - 3) * 4
    return F.pad(row, (0, 0, 5, x.shape[0]))


def costly_at_two_places(x):
    y = (x * 2 + 1).exp()
    return F.pad(y, (1, 0)) + F.pad(y, (0, 1))


@pytest.mark.parametrize("f, kernels", [
    (slopes_of_differences, 1), (sums_among_zeros, 1), (far_rows_among_zeros, 2),
    (costly_at_two_places, 2),
])  # fmt: skip
def test_what_lies_once_among_zeros_is_computed_there(f, kernels):
    x = tj.linspace(-1.0, 1.0, 35).reshape(7, 5)
    assert kernel_count(f, x) == kernels
    for shape in ((7, 5), (1, 1), (2, 9), (40, 3)):
        x = tj.linspace(-1.0, 1.0, shape[0] * shape[1]).reshape(shape)
        if f is not far_rows_among_zeros or shape[0] > 1:
            assert tj.allclose(tj.script(f)(x), f(x), rtol=1e-6)
