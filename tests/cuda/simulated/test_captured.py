"""Captured functions on a CUDA device give what they give on the CPU; nothing falls back."""

from types import SimpleNamespace

import numpy as np
import pytest

import tracejit
from tests.cuda.programs import PROGRAMS, agree, numbers
from tests.cuda.simulated.test_eager import LIMITS, ROWS, on_cpu, on_device, op_by_op  # noqa: F401
from tests.ops.test_opinfo import agree as agree_in_ulp
from tests.ops.test_opinfo import call, flat, ours, samples
from tests.shares import share
from tracejit.jit.runtime import cuda_products


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_the_cpu(name, launched):
    want = PROGRAMS[name]("cpu")
    assert not launched
    got = PROGRAMS[name]("cuda")
    assert launched
    agree(name, got, want)


@pytest.mark.parametrize("row", [
    pytest.param(row, id=repr(row), marks=share(repr(row), 2)) for row in ROWS if row.compiled
])  # fmt: skip
def test_ops_agree_with_eager(row, launched):
    """The first sample of each row: one kernel or more, that copies what views would be."""

    def function(*args, **kwargs):
        return tuple(y.clone() for y in flat(ours(row)(*args, **kwargs)))

    sample = samples(row, row.dtypes[0])[0]
    compiled = tracejit.script(function)
    got = call(compiled, sample, on_device)
    want = call(function, sample, on_cpu)
    limits = (0, 0) if row.exact else (max(row.ulp, 8), max(row.cancel, 8))
    agree_in_ulp([g.cpu() for g in got], want, *limits, sample)


def test_training_is_kernels_and_products(launched):
    PROGRAMS["training, AdamW"]("cuda")
    assert set(launched) == {"row", "column", "thread"}, "nothing by one thread, nothing by CuPy"


def test_numbers_from_the_cpu_go_along(launched):
    @tracejit.script
    def f(x, rate, scale):
        return x * rate + scale

    x = tracejit.tensor(numbers(5), device="cuda")
    for rate in (0.5, 0.25):
        got = f(x, rate, tracejit.tensor(2.0))
        np.testing.assert_allclose(got.cpu().numpy(), x.cpu().numpy() * rate + 2, rtol=1e-6)
    assert launched == {"thread": 2} and f.report().compiles == 1


def test_a_number_on_the_cpu_is_written(launched):
    """An optimizer's step count: on the CPU, written by a program that runs on the device."""

    @tracejit.script
    def f(x, steps):
        steps.add_(1)
        return x * steps

    x, steps = tracejit.tensor(numbers(5), device="cuda"), tracejit.tensor(0.0)
    for k in (1, 2, 3):
        got = f(x, steps)
        assert steps.item() == k and steps.device.type == "cpu"
        np.testing.assert_array_equal(got.cpu().numpy(), x.cpu().numpy() * np.float32(k))
    assert launched


def test_results_on_the_cpu(launched):
    f = tracejit.script(lambda x: ((x * 2).cpu() + 1, x + 1))
    x = tracejit.tensor(numbers(5), device="cuda")
    low, high = f(x)
    assert low.device.type == "cpu" and high.is_cuda and launched
    np.testing.assert_allclose(low.numpy(), x.cpu().numpy() * 2 + 1, rtol=1e-6)


def test_a_failed_check_is_the_ops_own_error_and_nothing_is_written(launched):
    @tracejit.script
    def f(w, i, total):
        total.add_(w.sum())
        return w[i] * 2

    w = tracejit.tensor(numbers(5, 7), device="cuda")
    total = tracejit.zeros((), device="cuda")
    good, bad = (tracejit.tensor(np.array(i), device="cuda") for i in ([0, 4], [0, 9]))
    f(w, good, total)
    before, _ = total.item(), launched.clear()
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(w, bad, total)
    assert launched, "the program did not run"
    assert total.item() == pytest.approx(2 * before), "the plain function writes before it fails"


def test_empty_tensors(launched):
    f = tracejit.script(lambda x, w: ((x @ w).sum(0), (x * 2).sum(), x.exp()))
    for rows in (0, 1, 3):
        x, w = numbers(rows, 4), numbers(4, 3, seed=1)
        got = f(tracejit.tensor(x, device="cuda"), tracejit.tensor(w, device="cuda"))
        for g, want in zip(got, ((x @ w).sum(0), (x * 2).sum(), np.exp(x))):
            np.testing.assert_allclose(g.cpu().numpy(), want, rtol=1e-5, atol=1e-5)


def test_views_and_strides(launched):
    f = tracejit.script(lambda x: (x @ x.transpose(0, 1), x.sum(0), x * 2))
    base = numbers(6, 8)
    for view in (lambda a: a[:, ::2], lambda a: a.T, lambda a: a[1:4], lambda a: a[:, 3:4]):
        x = view(base)
        got = f(view_of(tracejit.tensor(base, device="cuda"), view))
        for g, want in zip(got, (x @ x.T, x.sum(0), x * 2)):
            np.testing.assert_allclose(g.cpu().numpy(), want, rtol=1e-4, atol=1e-5)
    assert launched


def view_of(tensor, view):
    return tensor.t() if view(np.empty((6, 8))).shape == (8, 6) else view(tensor)


def test_kernels_as_python_on_the_host(launched):
    """Mode "python": breakpoints in a program of the device."""
    f = tracejit.script(lambda x: (x.softmax(1), x.mul_(2)), mode="python")
    x, y = (tracejit.tensor(numbers(5, 7), device=d) for d in ("cuda", "cpu"))
    for got, want in zip((*f(x), x), (*f(y), y)):
        assert got.is_cuda
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6)
    assert not launched


@pytest.mark.parametrize("how", [{"mode": "graph"}, {"numerics": "eager"}], ids=str)
def test_ops_as_the_library_computes_them(how, op_by_op):  # noqa: F811
    """The interpreter, and kernels that may not contract: NumPy's bits, where CuPy is NumPy."""

    def function(x):
        y = x.softmax(1)
        return y, x.mul_(2), (x @ x.t()).sum(0), tracejit.rand(3, device=x.device), x[[1, 0]] + 0.5

    found = []
    for device in ("cpu", "cuda"):
        tracejit.manual_seed(1)
        x = tracejit.tensor(numbers(5, 7), device=device)
        found.append([y.cpu().numpy() for y in tracejit.script(function, **how)(x)])
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, rtol=2e-6 * LIMITS[0], atol=1e-6 * LIMITS[0])


def test_several_devices_are_refused():
    from tracejit.core.memory import device
    from tracejit.core.ops.types import TensorType, float32
    from tracejit.jit.ir.graph import Graph
    from tracejit.jit.runtime.placement import device_of

    graph = Graph("two")
    for number in (0, 1):
        graph.input(TensorType(float32, (3,), device("cuda", number)), f"x{number}")
    with pytest.raises(RuntimeError, match="cuda:0, cuda:1"):
        device_of(graph)


def test_products_without_cublas_say_what_to_install():
    class Cuda:
        @property
        def cublas(self):
            raise ImportError("no libcublas.so")

    with pytest.raises(tracejit.cuda.DeviceUnavailable, match="pip install nvidia-cublas"):
        sizes = (0, 0, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0)
        cuda_products.matmul(SimpleNamespace(cuda=Cuda()), "float32", [0, 0, 0], sizes)
