"""Large elementwise ops of eager mode: a kernel's bits are NumPy's for every exact op, and NumPy
serves until a kernel pays."""

import numpy as np
import pytest

import tracejit
from tracejit.core.eager import dispatch
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.runtime import eager_fused, eager_kernels, eager_large

RNG = np.random.default_rng(3)
SIDE = 256
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, -1e38, 2.5, -2.5, 0.5, 1.0]
# These take integers, other attributes, or values in an order.
OTHERS = """convert bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
    bitwise_right_shift fill floor_divide_integer remainder_integer logical_and logical_or
    logical_xor logical_not""".split()
OPS = [op.name for op in REGISTRY.values()
       if op.kind == "pointwise" and op.exact and op.name not in OTHERS]


@pytest.fixture(autouse=True)
def _afresh(monkeypatch):
    monkeypatch.setattr(dispatch, "_library", [eager_kernels.run])
    monkeypatch.setattr(eager_fused, "WORTH", 0)
    monkeypatch.setattr(eager_fused, "_spent", {})
    monkeypatch.setattr(eager_large, "_calls", {})


def elements(dtype, *shape):
    x = RNG.standard_normal(shape) * 3
    places = RNG.random(shape) < 0.1
    x[places] = RNG.choice(SPECIAL, places.sum())
    return tracejit.tensor(x.astype(dtype))


def operands_of(op, dtype, way):
    first = elements(dtype, SIDE, SIDE)
    found = [first, *(elements(dtype, SIDE, SIDE) for _ in op.operands[1:])]
    if way == "number" and len(found) > 1:
        found[-1] = 2.5
    if way == "row" and len(found) > 1:
        found[-1] = elements(dtype, SIDE)
    if way == "column" and len(found) > 1:
        found[1] = elements(dtype, SIDE, 1)
    if op.name == "masked_scale":
        return [first, elements(dtype, SIDE, SIDE) > 0, 2.5]
    return [first > 0, *found[1:]] if op.name == "where" else found


def by_numpy(monkeypatch, op, operands):
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_library", [])
        return op(*operands)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("way", ["tensors", "number", "row", "column"])
def test_kernels_have_the_bits_of_numpy(monkeypatch, dtype, way):
    ran = []
    for op in map(REGISTRY.__getitem__, OPS):
        operands = operands_of(op, dtype, way)
        try:
            expected = by_numpy(monkeypatch, op, operands)
        except (TypeError, RuntimeError, AttributeError):
            continue  # it takes no number there, or no such shapes
        found, again = op(*operands), op(*operands)
        for got in (found, again):
            assert got.dtype is expected.dtype and got.shape == expected.shape, op.name
            words = f"i{got.dtype.itemsize}"
            a, b = got.numpy(), expected.numpy()
            assert ((a.view(words) == b.view(words)) | (a != a) & (b != b)).all(), op.name
        ran += [op.name] if any(key[0] is op for key in eager_large._calls) else []
    assert {"add", "sub", "mul", "div", "where", "relu", "le", "sqrt"} - {*ran} <= (
        set() if way == "tensors" else {"relu", "sqrt", "where"}), ran
    assert not {"fmax", "fmin", "hardtanh"} & {*ran}
    assert len(ran) > (35 if way == "tensors" else 20), ran


def test_numpy_serves_until_a_kernel_pays(monkeypatch):
    monkeypatch.setattr(eager_fused, "WORTH", 2.5 * (3 + SIDE * SIDE / 1000))
    x = elements("f4", SIDE, SIDE)
    for _ in range(2):
        x + x
    assert not eager_large._calls
    x + x
    assert len(eager_large._calls) == 1


def test_small_ops_and_other_types_are_numpys():
    x = elements("f4", SIDE, SIDE)
    for y in (x[:8, :8], x.half(), x.long(), x.t(), x.to("meta")):
        y + y
    with pytest.raises(RuntimeError, match="must match"):
        x + elements("f4", SIDE + 1)
    assert not any(eager_large._calls.values())


def test_gradients_and_threads():
    x = elements("f4", SIDE, SIDE).nan_to_num(0.0, 1.0, -1.0).requires_grad_()

    def step():
        y = tracejit.relu(x * 2.0 + x / 3.0) - x.abs()
        return [y.detach(), *tracejit.autograd.grad(y.sum(), [x])]

    before, found = tracejit.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            tracejit.set_num_threads(threads)
            found.append([t.numpy().tobytes() for t in step()])
    finally:
        tracejit.set_num_threads(before)
    dispatch._library[:] = []
    assert found == [[t.numpy().tobytes() for t in step()]] * 3
