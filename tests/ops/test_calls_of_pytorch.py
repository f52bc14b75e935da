"""Calls of PyTorch's functions without samples of their own, and calls that fail: results, error
types and messages are PyTorch's.

In: expressions, evaluated with `torch` meaning either library.
"""

import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
nan, inf = float("nan"), float("inf")

SEARCHED = """
torch.searchsorted(x, x[:1])
torch.searchsorted(x, 1.0)
torch.searchsorted(T([1.0, 2]), 1)
torch.searchsorted(T([1, 3]), 1.5)
torch.searchsorted(T([1.0, 2]), x, side='x')
torch.searchsorted(T([1.0, 2]), x, side='left', right=True)
torch.searchsorted(T([1.0, 2]), x, sorter=T([1.0, 0]))
torch.searchsorted(T([1.0, 2]), x, sorter=T([1, 0, 0]))
torch.searchsorted(T([1.0, 2]), x, sorter=T([1, 5]))
torch.searchsorted(T(1.0), x)
torch.searchsorted(T([1.0, nan, nan]), T([nan, 0.0, 5]))
torch.bucketize(x, x)
torch.bucketize(1.0, T([0.0, 1, 2]))
torch.isin(1.0, x)
torch.isin(x, 2, invert=True)
torch.unravel_index(T([1, 5, -1, 7]), (2, 3))
torch.nonzero_static(T([[1, 0], [0, 3]]), size=3, fill_value=7)
torch.nonzero_static(T([1]), size=-1)
torch.take(x, T([1], dtype=torch.int32))
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int16, count=2, offset=2)
torch.frombuffer(bytearray(b''), dtype=torch.uint8)
torch.frombuffer(bytearray(b'abc'), dtype=torch.int16)
torch.frombuffer(bytearray(b'abc'), dtype=torch.uint8, offset=5)
torch.frombuffer(bytearray(b'abc'), dtype=torch.uint8, count=5)
"""
COUNTED = """
torch.mode(T([[1, 2, 2, 1], [3, 3, 3, 0]]))
torch.mode(torch.zeros(0, 3), 0)
torch.cummax(T([1.0, 3, 3, 2, nan, 4, nan]), 0)
torch.cummin(T([True, False]), 0)
torch.logcumsumexp(T([1, 2]), 0)
torch.logcumsumexp(T([-inf, -inf, 0, inf, 1]), 0)
torch.logcumsumexp(T([complex(-inf, 1), complex(-inf, 2), 1 + 2j, complex(nan, 0), 1]), 0)
torch.logcumsumexp(T([complex(inf, 0), complex(inf, 0)]), 0)
torch.logaddexp(T([1j, complex(-inf, 2), 1]), T([2 - 1j, complex(-inf, 1), nan]))
torch.all(x, dim=[]), torch.any(x, dim=(), keepdim=True), torch.any(T(2), dim=())
torch.all(x, 0, out=torch.zeros(3))
torch.any(x, out=torch.zeros((), dtype=torch.int64))
torch.any(x, 1, out=torch.zeros(2, dtype=torch.uint8))
torch.all(T([1, 2], dtype=torch.uint8), out=torch.zeros((), dtype=torch.bool))
torch.sum(x, 0, dtype=torch.double, out=torch.zeros(3))
torch.mean(x, 0, dtype=torch.double, out=torch.zeros(3))
torch.prod(x, 0, dtype=torch.int32, out=torch.zeros(3))
torch.cumsum(x, 0, dtype=torch.int32, out=torch.zeros(3))
torch.cumprod(x, 0, dtype=torch.float, out=torch.zeros(3, dtype=torch.complex64))
torch.nanmean(x, dtype=torch.int32)
torch.histogram(T([1.0, 2]), T([1, 2]))
torch.linalg.vector_norm(T([inf, -inf]), -1), torch.linalg.vector_norm(T([inf, 0]), -2)
torch.linalg.vector_norm(T([inf, 2.0]), -0.5)
torch.isreal(T([nan, 1.0]))
torch.add(T([True, False]), T([True, True]), alpha=True)
torch.add(T([True, False]), T([True, True]), alpha=2)
torch.add(T([1, 2]), T([True, True]), alpha=True)
torch.sub(x, 1, alpha=True)
torch.add(x, 1, alpha=2j)
torch.addcmul(T([1, 2]), T([1, 2]), T([1, 2]), value=2.5)
torch.addmm(T([1.0], dtype=torch.double), x, x.T)
torch.addbmm(T([1]), x[None], x.T[None])
torch.baddbmm(T([1]), x[None], x.T[None])
torch.einsum(x, [0, 1], x, [2, 1], [2, 0])
torch.einsum(x, [27, 3], x[0], [3])
torch.einsum(x, [..., 1], x[0], [1], [...])
torch.einsum("ij")
torch.lu_unpack(torch.eye(2), T([0, 1], dtype=torch.int32))
torch.lu_unpack(torch.eye(2)[0], T([1, 2], dtype=torch.int32))
torch.randint(-2**63, 2**63 - 1, (3,)).shape
~x
torch.quantile(x, T([0.0, 1.5]))
torch.quantile(x, 1.5)
torch.quantile(T([1, 2]), 0.5)
torch.quantile(x, T([[0.5]]))
torch.quantile(x, T([0.5], dtype=torch.double))
torch.quantile(torch.zeros(0), 0.5)
torch.quantile(x, 0.5, interpolation='z')
torch.quantile(T([1.0, nan, 3]), 0.5)
torch.aminmax(torch.zeros(0))
torch.nansum(T([True]))
torch.nanmean(T([1]))
torch.renorm(T([1.0]), 2, 0, 1.0)
torch.renorm(x, -1, 0, 1.0)
torch.renorm(x, 2, 0, -1.0)
torch.trapezoid(T(1.0))
torch.trapezoid(x, T([1.0, 2]))
torch.trapezoid(torch.zeros(0))
torch.diff(x, n=-1)
torch.diff(x, n=5)
torch.diff(T(1.0))
torch.diff(x, prepend=T([1.0]))
torch.cov(torch.zeros(2, 2, 2))
torch.cov(T([1.0, 2, 4]))
torch.cov(x, correction=5)
torch.cov(x, fweights=T([1, 2]))
torch.cov(x, fweights=T([1.0, 2, 3]))
torch.cov(x, aweights=T([1, 2, 3]))
torch.cov(x, fweights=T([1, -2, 3]))
torch.cov(x, fweights=T([[1, 2, 3]]))
torch.cov(x, fweights=T([0, 0, 0]))
torch.cov(x > 0)
torch.corrcoef(torch.zeros(2, 2, 2))
torch.histogram(T([1, 2, 1]), bins=2)
torch.histogram(T([1.0, 2, 1]), bins=0)
torch.histogram(T([1.0, 2, 1]), bins=2, range=(3.0, 1.0))
torch.histogram(T([1.0, 1.0]), bins=2, density=True)
torch.histogram(T([1.0, nan]), bins=2)
torch.histogram(T([1.0, 2]), bins=2, weight=T([1.0]))
torch.histogram(T([1.0, 2]), bins=T([[1.0]]))
torch.histogramdd(T([[0.0, 1], [1, 2]]), bins=2, range=[0.0, 1, 0, 1])
"""
ELEMENTWISE = """
torch.heaviside(x, T([1]))
torch.heaviside(T([nan, 0.0, -1]), T([0.5]))
torch.copysign(T([1, 2]), -1)
torch.nextafter(T([1]), T([2]))
torch.gcd(T([4.0]), T([2.0]))
torch.gcd(T([0, -4]), T([0, 6])), torch.lcm(T([0, -4]), T([0, 6]))
torch.frexp(T([0.0, 8, -3]))
torch.frexp(T([1]))
torch.ldexp(T([1, 2]), T([2, 3]))
torch.signbit(T([-0.0, nan, -1])), torch.signbit(T([True])), torch.signbit(T([-1, 2]))
torch.isposinf(T([1])), torch.isneginf(T([inf, -inf]))
torch.deg2rad(T([1, 180])), torch.rad2deg(T([1.0]))
torch.positive(T([True]))
torch.fmax(T([nan, 1.0]), T([1, nan])), torch.fmin(T([nan, 1.0]), 2 * T([1, nan]))
torch.fill(x, 2)
"""
ARRANGED = """
torch.combinations(T([1, 2, 3]), r=0), torch.combinations(T([1, 2, 3]), r=5)
torch.combinations(x)
torch.combinations(T([1, 2]), r=-1)
torch.cartesian_prod(T([1, 2]), x)
torch.vander(x)
torch.vander(T([1.0]), N=-1)
torch.block_diag()
torch.block_diag(torch.zeros(1, 1, 1))
torch.tril_indices(2, 4, 1), torch.triu_indices(2, 4, -1, dtype=torch.int32)
torch.tril_indices(-1, 2)
torch.roll(T(1.0), 1, 0)
torch.roll(T(1.0), (1, 2), (-1, 0))
torch.roll(T(1.0), 1)
torch.roll(x, (), ())
torch.roll(x, (1, 2), 0)
torch.roll(x, 1, 7)
torch.diag(T(1.0))
torch.diag_embed(x, 0, 0, 0)
torch.diag_embed(x, dim1=5)
torch.diagflat(x, 1)
torch.atleast_3d(T([1.0, 2])), torch.atleast_2d([T(1), x])
torch.hsplit(x, 2)
torch.hsplit(T(1.0), 2)
torch.vsplit(T([1.0]), 1)
torch.dsplit(x[None], 2)
torch.broadcast_shapes((2, 1), 3)
torch.broadcast_shapes((2,), (3,))
torch.broadcast_tensors(T([1, 2]), T([1, 2, 3]))
torch.rot90(x), torch.rot90(x, 2), torch.rot90(x, -1, [1, 0])
torch.rot90(x, 1, [0, 0])
torch.rot90(x, 1, [0])
torch.fliplr(T([1]))
torch.flipud(T(1))
torch.msort(x.flip(0))
torch.range(1, 4), torch.range(0, 1, 0.5)
torch.logspace(0, 2, 3, base=2.0), torch.scalar_tensor(3)
torch.hann_window(5), torch.hann_window(4, False), torch.hann_window(1), torch.hann_window(0)
torch.hann_window(-1)
torch.hamming_window(6), torch.hamming_window(5, False, 0.6, 0.4), torch.blackman_window(7)
torch.bartlett_window(6), torch.bartlett_window(5, False), torch.kaiser_window(6, True, 8.0)
"""
WRITTEN = """
torch.isclose(T([1, 0, 7, 200]).byte(), T([3, 255, 7, 100]).byte(), atol=0.5, rtol=0.5)
torch.relu.__name__, torch.abs.__name__, torch.sum.__name__
torch.scatter_reduce(torch.ones(3), 0, T([0, 1, 1]), T([2.0, 3, 4]), 'zz')
torch.scatter_reduce(torch.ones(3), 0, T([0, 1, 5]), T([2.0, 3, 4]), 'sum')
torch.index_reduce(torch.ones(3, 2), 0, T([0, 1]), torch.ones(2, 2) * 3, 'sum')
torch.scatter(torch.ones(3), 0, T([0, 1, 1]), T([2.0, 3, 4]), reduce='multiply')
torch.scatter(torch.ones(3), 0, T([0, 1, 1]), 2.0, reduce='z')
torch.put(torch.zeros(2, 3), T([1, 1]), T([5.0, 6, 7]))
torch.put(torch.zeros(2, 3), T([1, 9]), T([5, 6]))
torch.masked_scatter(torch.zeros(2, 3), T([True, False, True]), T([1.0, 2]))
torch.masked_scatter(torch.zeros(2, 3), T([1, 0, 1]), T([1.0, 2]))
torch.masked_scatter(torch.zeros(2, 3), T([True, False, True]), T([1, 2, 3, 4]))
x.put_(T([1, -1]), T([5.0, 6])), x
x.scatter_reduce_(0, T([[0, 1, 0]]), T([[2.0, 3, 4]]), 'amax'), x
x.index_reduce_(0, T([0, 0]), x.clone(), 'prod'), x
x.masked_scatter_(T([True, False, True]), T([1.0, 2, 3, 4])), x
x.renorm_(2, 0, 1.0), x
x.copysign_(T(-1.0)), x.fmod_(2), x.cumprod_(1), x.deg2rad_(), x.fix_(), x.negative_(), x
x.heaviside_(T([0.5, 1, 2])), x.multiply_(3), x.subtract_(1), x.absolute_(), x.greater_(0.5), x
x.ldexp_(T(2)), x.nextafter_(T(0.0)), x.arctan_(), x.arcsinh_(), x.rad2deg_(), x
x.float_power_(2)
x.double().float_power_(2)
x.fill_diagonal_(7), torch.zeros(5, 2).fill_diagonal_(7, wrap=True)
torch.zeros(3, 3, 3).fill_diagonal_(2)
torch.zeros(3, 3, 2).fill_diagonal_(2)
torch.zeros(3).fill_diagonal_(2)
torch.exp_(x), torch.clamp_(x, 0, 2), torch.zero_(x), torch.fill_(x, 3), torch.square_(x), x
"""


def outcome(library, expression):
    """What an expression gives, or raises, with numbers in place of tensors."""
    names = {"torch": library, "T": library.tensor, "x": library.from_numpy(X.copy()),
             "nan": nan, "inf": inf, "np": np}  # fmt: skip
    try:
        return plain(eval(expression, names))
    except Exception as error:
        return type(error), str(error).replace("torch.", "").replace("tracejit.", "")


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if not hasattr(value, "dtype"):
        return value
    numbers = value.detach().numpy().astype(np.float64).round(4).tolist()
    return str(value.dtype).partition(".")[2], tuple(value.shape), repr(numbers)


NUMBERS_OF_NUMPY = """
torch.full((2,), np.float64(1.5))
torch.full((2,), np.float32(1.5), dtype=torch.int64)
torch.full((), np.int64(2))
torch.full((2,), np.uint8(2))
torch.full((2,), np.bool_(True))
torch.full_like(x, np.float16(0.5))
x.new_full((2,), np.int32(3))
torch.arange(np.int64(3))
torch.arange(np.int32(1), np.int64(7), np.int8(2))
torch.arange(np.float64(3))
torch.arange(0, np.int64(4), dtype=torch.float64)
x.__setitem__((..., 0), np.log(np.exp(1.5) - 1)) or x
x.__setitem__(0, np.int64(7)) or x
x.__setitem__(x > 2, np.float64(0.5)) or x
x.__setitem__(T([1, 0]), np.float64(0.5)) or x
x.long().__setitem__((slice(None), 1), np.float64(2.5)) or x
"""
EXPRESSIONS = "".join(
    (SEARCHED, COUNTED, ELEMENTWISE, ARRANGED, WRITTEN, NUMBERS_OF_NUMPY)).split("\n")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if e])
def test_calls_give_what_pytorch_gives(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcome(tracejit, expression) == outcome(torch, expression)
