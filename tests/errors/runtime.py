"""Failures of programs while they run: the same error as without capture, from the same line."""

from __future__ import annotations

import tracejit as tj
from tests.errors.control_flow import data
from tests.errors.entries import breaks, raises
from tracejit import config

MODES = ("graph", "python", "compiled")


def replayed(f, good, bad):
    """Call a function so that it is captured, then with what fails."""
    f(*good)
    return f(*bad)


@raises(IndexError, "index 2 is out of bounds for dimension 0 with size 2", modes=MODES)
def index_out_of_range(jit):
    @jit
    def f(x, i):
        y = x * 2
        return y[i] + 1  # here

    replayed(f, (data(), tj.tensor([0])), (data(), tj.tensor([2])))


@raises(IndexError, "index 5 is out of bounds for dimension 0 with size 2", modes=MODES)
def index_out_of_range_at_once(jit):
    @jit
    def f(x, i):
        return x[i] * 2  # here

    f(data(), tj.tensor([5]))


@raises(RuntimeError, "index 3 is out of bounds for dimension 0 with size 2", modes=MODES)
def gather_out_of_range(jit):
    @jit
    def f(x, i):
        return x.gather(0, i) * 2  # here

    replayed(f, (data(), tj.tensor([0])), (data(), tj.tensor([3])))


@raises(IndexError, "Target 4 is out of bounds.", modes=MODES)
def label_out_of_range(jit):
    @jit
    def f(x, i):
        return tj.nn.functional.cross_entropy(x, i) * 2  # here

    x = tj.ones(2, 3)
    replayed(f, (x, tj.tensor([0, 1])), (x, tj.tensor([0, 4])))


@raises(IndexError, "index out of range in self", modes=MODES)
def row_out_of_range(jit):
    @jit
    def f(w, i):
        return tj.nn.functional.embedding(i, w) * 2  # here

    w = tj.ones(3, 2)
    replayed(f, (w, tj.tensor([0, 1])), (w, tj.tensor([0, 4])))


@raises(IndexError, "index 4 is out of bounds for dimension 0 with size 2", modes=MODES)
def write_out_of_range(jit):
    @jit
    def f(x, i):
        x[i] = 3.0  # here
        return x * 2

    replayed(f, (data(), tj.tensor([0])), (data(), tj.tensor([4])))


@raises(RuntimeError, "ZeroDivisionError", modes=MODES)
def remainder_of_zero(jit):
    @jit
    def f(x, y):
        return x // y + 1  # here

    x = tj.tensor([4, 5])
    replayed(f, (x, x), (x, tj.tensor([0, 1])))


@raises(
    RuntimeError,
    "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
)
def sizes_that_do_not_fit(jit):
    @jit
    def f(x, y):
        return x * y  # here

    replayed(f, (data(), data()), (data(), tj.ones(3)))


@raises(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x2)")
def matrices_that_do_not_fit(jit):
    @jit
    def f(x, y):
        return x @ y  # here

    replayed(f, (tj.ones(2, 3), tj.ones(3, 2)), (tj.ones(2, 3), tj.ones(2, 2)))


@raises(RuntimeError, "shape '[4, 2]' is invalid for input of size 6")
def view_that_does_not_fit(jit):
    @jit
    def f(x):
        return x.reshape(4, 2) * 2  # here

    replayed(f, (tj.ones(8),), (tj.ones(6),))


@raises(
    tj.linalg.LinAlgError,
    "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed "
    "because the input matrix is singular.",
)
def singular_matrix(jit):
    @jit
    def f(x):
        return tj.linalg.inv(x) * 2  # here

    replayed(f, (tj.eye(2),), (tj.zeros(2, 2),))


@raises(AssertionError, "too large", modes=("graph", "compiled"))
def assertion(jit):
    @jit
    def f(x):
        assert x.sum() < 9, "too large"  # here
        return x * 2

    replayed(f, (data(),), (data() * 9,))


@raises(ValueError, "too large", modes=("graph", "compiled"))
def exception_of_the_users(jit):
    @jit
    def f(x):
        if x.sum() > 9:
            raise ValueError("too large")  # here
        return x * 2

    replayed(f, (data(),), (data() * 9,))


@raises(
    UnboundLocalError,
    "cannot access local variable 'y' where it is not associated with a value",
)
def variable_without_a_value(jit):
    @jit
    def f(x, n):
        for k in range(n):
            y = x * k
        return y  # here

    f(data(), 0)


@raises(ZeroDivisionError, "integer division or modulo by zero")
def size_by_zero(jit):
    @jit
    def f(x):
        return x * (5 // (x.shape[0] - x.shape[0]))  # here

    f(data())


@raises(
    FloatingPointError,
    "mul, sub, sqrt, sum made the first NaN, in element 0 of its result at <y = x * 2>: y = x * 2",
    plainly=False, exactly=False, modes=("compiled",), check_nans=True,
)
def first_nan(jit):
    @jit
    def f(x):
        y = x * 2
        return (y - 3).sqrt().sum() + 1

    f(data())  # here


@breaks("index fails for these values", fullgraph=False)
def fails_for_these_values(jit):
    @jit
    def f(x, i):
        try:
            y = x[i]  # here
        except IndexError:
            y = x
        return y * 2

    f(data(), tj.tensor([5]))


@breaks(
    "the graph has 12 nodes already\nhint: set TRACEJIT_MAX_SEGMENT_NODES higher, or capture one "
    "step of the loop",
)
def many_nodes(jit):
    @jit
    def f(x):
        for _ in range(9):
            x = x * 2 + 1  # here
        return x

    with config.override(max_segment_nodes=12):
        f(data())


@raises(
    FloatingPointError,
    "mul read a NaN and wrote one, in element 1 of its result at <return x * 2>: return x * 2",
    plainly=False, exactly=False, modes=("compiled",), check_nans=True,
)
def nan_that_is_read(jit):
    @jit
    def f(x):
        return x * 2

    f(tj.tensor([1.0, float("nan")]))  # here


@raises(ValueError, "maximum supported dimension for an ndarray is currently 64, found 65")
def too_many_dimensions(jit):
    @jit
    def f(x):
        return x.reshape((1,) * 65)  # here

    f(tj.ones(1))


@raises(ZeroDivisionError, "integer modulo by zero")
def remainder_of_a_size_by_zero(jit):
    @jit
    def f(x):
        return x * (5 % (x.shape[0] - x.shape[0]))  # here

    f(data())


@raises(AttributeError, "'int' object has no attribute 'unknown'")
def attribute_of_a_size(jit):
    @jit
    def f(x):
        return x * x.shape[0].unknown  # here

    f(data())


@raises(AttributeError, "'float' object has no attribute '__unknown__'")
def attribute_of_a_number(jit):
    @jit
    def f(x, k):
        return x * k.__unknown__  # here

    f(data(), 2.0)


@raises(
    NotImplementedError,
    "profile: only kernels that are compiled for the CPU are timed; use mode='compiled', and "
    "tensors on the CPU",
    plainly=False,
    modes=("graph", "python"),
)
def profile_without_native_kernels(jit):
    @jit
    def f(x):
        return x * 2

    f.profile(data())  # here
