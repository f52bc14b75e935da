"""Eager ops on a CUDA tensor give what they give on the CPU: every row of the op table."""

import sys

import numpy as np
import pytest

import tracejit
from tests.ops import rows_bags_and_labels, rows_linalg, rows_linalg_factors, rows_linalg_products
from tests.ops.test_opinfo import ROWS as EVERY
from tests.ops.test_opinfo import agree, call, ours, samples
from tracejit.jit.runtime import eager_fused

# Complex numbers are refused there: `test_complex_numbers_are_refused`.
MAKES_COMPLEX = {"complex", "polar", "view_as_complex", "linalg.eig"}
ROWS = [
    row for row in EVERY
    if not row.dtypes[0].is_complex and row.name.split(".complex")[0] not in MAKES_COMPLEX
    and ".complex" not in row.name and not row.name.startswith(("fft", "stft", "istft"))
]  # fmt: skip
PRODUCTS = [
    *rows_linalg.ROWS, *rows_linalg_factors.ROWS, *rows_linalg_products.ROWS,
    *rows_bags_and_labels.ROWS,
]  # fmt: skip
# On the CPU these are kernels of our own, which add in an order of their own.
LIBRARY = ("conv", "avg_pool", "adaptive_avg_pool", "lp_pool", "interpolate.area")
CUDA = tracejit.device("cuda:0")
# ulp, and eps of the largest: the stand-in computes with NumPy, a GPU's functions are its own
LIMITS = (0, 0) if "numpy_as_cupy" in sys.modules else (16, 16)


@pytest.fixture
def op_by_op(monkeypatch):
    """Let the CPU compute composites from their ops, as a device does: then the bits can be equal.

    The programs that it runs else have bounds of their own: `tests/runtime/test_eager_fused.py`.
    """
    monkeypatch.setattr(eager_fused, "run", lambda *call: None)


def on_device(array):
    return tracejit.tensor(np.array(array), device="cuda")


def on_cpu(array):
    return tracejit.tensor(np.array(array))


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_ops_agree_with_the_cpu(row, op_by_op):
    tested = 0
    # a BLAS adds in an order of its own for each machine, alignment and layout
    known = any(row.name == product.name for product in PRODUCTS)
    limits = max(LIMITS, (row.ulp, row.cancel)) if known else LIMITS
    if row.name.startswith(LIBRARY):
        limits = max(row.ulp, 8), max(row.cancel, 8)
    for sample in samples(row, row.dtypes[0]):
        want = call(ours(row), sample, on_cpu)
        got = call(ours(row), sample, on_device)
        assert all(g.device in (CUDA, w.device) for g, w in zip(got, want)), sample
        agree([g.cpu() for g in got], want, *limits, sample)
        tested += 1
    assert tested


def test_creation_and_copies():
    x = tracejit.zeros(2, 3, device="cuda")
    assert x.is_cuda and x.device == CUDA and x.get_device() == 0
    y = tracejit.arange(6, device="cuda").reshape(2, 3)
    x.copy_(y)
    assert x.cpu().numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    x[1, 1:] = 7
    assert x.tolist() == [[0, 1, 2], [3, 7, 7]]
    assert x.to("cpu").to("cuda").eq(x).all() and x.cuda() is x
    assert repr(tracejit.ones(2, device="cuda")) == "tensor([1., 1.], device='cuda:0')"


def test_devices_do_not_mix():
    x, y = tracejit.ones(2, device="cuda"), tracejit.ones(2)
    with pytest.raises(RuntimeError, match="same device"):
        x + y
    assert (x + tracejit.tensor(1.0)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match=r"cpu\(\)"):
        x.numpy()


def test_gradients(op_by_op):
    values = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    found = []
    for device in ("cpu", "cuda"):
        x = tracejit.tensor(values, device=device, requires_grad=True)
        (x.softmax(1) * x.tanh()).sum().backward()
        assert x.grad.device == x.device
        found.append(x.grad.cpu().numpy())
    np.testing.assert_allclose(*found, rtol=2e-6 * LIMITS[0], atol=1e-7 * LIMITS[0])


def test_random_numbers_are_those_of_the_cpu():
    def draws(device):
        tracejit.manual_seed(5)
        return [tracejit.rand(7, device=device), tracejit.randn(5, device=device),
                tracejit.randint(0, 9, (6,), device=device)]  # fmt: skip

    for x, y in zip(draws("cpu"), draws("cuda")):
        assert y.is_cuda and x.eq(y.cpu()).all()


def test_complex_numbers_are_refused():
    """Nothing on a device computes with them, eagerly or captured."""
    x = tracejit.ones(2, device="cuda")
    ways = [
        lambda x: tracejit.complex(x, x),
        lambda x: x + 1j,
        lambda x: x.to(tracejit.complex64),
    ]
    for way in ways:
        for f in (way, tracejit.script(way)):
            with pytest.raises(NotImplementedError, match="complex tensors are not supported"):
                f(x)
    with pytest.raises(NotImplementedError, match="complex tensors are not supported"):
        tracejit.tensor([1j]).to("cuda")
