"""The short way to small fused ops gives what the general way gives, and leaves the rest to it."""

import math
import subprocess
import sys

import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tracejit import config
from tracejit.core.eager import dispatch
from tracejit.core.ops import direct_calls
from tracejit.core.ops.direct_calls import functions
from tracejit.core.ops.record import REGISTRY

F = tj.nn.functional
NAMES = ("sigmoid", "softmax", "log_softmax", "layer_norm", "cross_entropy")
CALLS = {
    "sigmoid": lambda x: tj.sigmoid(x), "sigmoid, method": lambda x: x.sigmoid(),
    "softmax": lambda x: tj.softmax(x, 1), "softmax, last": lambda x: F.softmax(x, dim=-1),
    "softmax of columns": lambda x: x.softmax(0), "log_softmax": lambda x: x.log_softmax(1),
    "layer_norm": lambda x: F.layer_norm(x, (x.shape[-1],)),
    "layer_norm, weights": lambda x: F.layer_norm(x, tuple(x.shape), x, x * 2, 0.5),
    "cross_entropy": lambda x: F.cross_entropy(x, tj.arange(x.shape[0], device=x.device)),
    "cross_entropy, options": lambda x: F.cross_entropy(
        x, tj.arange(x.shape[0], device=x.device), x[0], ignore_index=1, reduction="sum",
        label_smoothing=0.25),
}  # fmt: skip


def holder(name):
    return REGISTRY[name] if name == "sigmoid" else functions[name]


@pytest.fixture
def short(monkeypatch):
    """The results of the short way, True where there was one."""
    ran = []
    for name in NAMES:
        direct_calls.make(holder(name))
        made = holder(name).direct

        def noted(*given, made=made):
            found = made(*given)
            ran.append(found is not NotImplemented)
            return found

        monkeypatch.setattr(holder(name), "direct", noted)
    return ran


def same(found, expected):
    assert type(found) is type(expected) is tj.Tensor
    for name in ("dtype", "shape", "requires_grad", "is_leaf", "_version"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.stride() == expected.stride() and found._view is expected._view is None
    assert found.detach().numpy().tobytes() == expected.detach().numpy().tobytes()


@pytest.mark.parametrize("shape", [(4, 6), (6, 6), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", [tj.float32, tj.float64], ids=str)
@pytest.mark.parametrize("name", list(CALLS))
def test_results_are_the_same(short, name, dtype, shape):
    x = tj.linspace(-3, 3, shape[0] * shape[1], dtype=dtype).reshape(shape)
    other = x.flip(0) * 7
    expected = [CALLS[name](y) for y in (x, other)]
    del short[:]
    found = [CALLS[name](y) for y in (x, other)]
    assert short == [True, True]
    for one, two in zip(found, expected):
        same(one, two)
    with tj.no_grad():
        w = tj.nn.Parameter(x)
        same(CALLS[name](w), expected[0])
    assert short[2:] == [True]


@pytest.mark.parametrize("name", list(CALLS))
def test_history_and_modes_take_the_general_way(short, name):
    x = tj.linspace(-1, 1, 24).reshape(4, 6)
    for _ in range(2):
        CALLS[name](x)
    del short[:]
    w = x.clone().requires_grad_()
    assert CALLS[name](w).grad_fn is not None
    turned = x.t().contiguous().t()
    same(CALLS[name](turned).contiguous(), CALLS[name](x).contiguous())
    assert short == [False, False, True]
    base = tj.zeros(4, 6)
    part = base[:]
    CALLS[name](part)
    del short[:]
    base.mul_(w)  # the view has a history from now on
    assert CALLS[name](part).requires_grad
    with tj.inference_mode():
        assert CALLS[name](x).is_inference()
    with config.override(check_nans=True):
        CALLS[name](x)
    assert not any(short)


class Own(tj.Tensor):
    pass


@pytest.mark.parametrize("name", list(CALLS))
def test_other_tensors_take_the_general_way(short, name):
    for x in (tj.ones(4, 6).half(), tj.ones(4, 6).as_subclass(Own), tj.ones(4, 6, device="meta")):
        for _ in range(2):
            del short[:]
            CALLS[name](x)
            assert not short[0]  # those after it are ops of its body


def test_recordings_and_dispatchers_of_others_see_the_ops(short):
    x = tj.linspace(-1, 1, 24).reshape(4, 6)
    for _ in range(2):
        expected = x.softmax(1)
    del short[:]
    captured = tj.script(lambda y: y.softmax(1) + 0)
    for _ in range(2):
        assert tj.allclose(captured(x), expected)
    names = []
    run = dispatch.replace_run(lambda op, *given: names.append(op.name) or run(op, *given))
    try:
        same(x.softmax(1), expected)
    finally:
        dispatch.replace_run(run)
    assert "softmax" in names and not any(short)


def test_wrong_arguments_are_refused_as_before(short):
    x, labels = tj.ones(4, 6), tj.arange(4)
    for _ in range(2):
        tj.softmax(x, 1), F.layer_norm(x, (6,)), F.cross_entropy(x, labels)
    for call, error in ((lambda: tj.softmax(x, 2), IndexError),
                        (lambda: tj.softmax(x, 1.0), TypeError),
                        (lambda: F.layer_norm(x, (4,)), RuntimeError),
                        (lambda: F.layer_norm(x, ()), RuntimeError),
                        (lambda: F.cross_entropy(x, labels + 5), IndexError),
                        (lambda: F.cross_entropy(x, labels[:3]), ValueError),
                        (lambda: F.cross_entropy(x, labels, ignore_index=-100.0), TypeError),
                        (lambda: F.cross_entropy(x, labels, reduction="none "), ValueError),
                        (lambda: F.cross_entropy(x, labels, label_smoothing=2.0), RuntimeError)):
        with pytest.raises(error):
            call()
    with pytest.warns(UserWarning, match="Implicit dimension"):
        tj.softmax(x)
    with pytest.warns(UserWarning, match="deprecated"):
        F.cross_entropy(x, labels, size_average=False)


@pytest.mark.parametrize("first", ["x + x", "x.sum()", "x.softmax(0)", "x.sigmoid()"])
def test_a_fresh_process_makes_them(first):
    text = f"""
import tracejit as tj
x = tj.ones(4)
for _ in range(1200):
    {first}
for _ in range(1200):
    y = (x * x).softmax(0).sigmoid().sum()
print(y.item())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(4 / (1 + math.exp(-0.25)))


def test_autocast_casts_first(short):
    x, labels = tj.ones(4, 6), tj.arange(4)
    for _ in range(2):
        F.cross_entropy(x, labels)
    del short[:]
    with tj.autocast("cpu"):
        assert F.cross_entropy(x.bfloat16(), labels).dtype is tj.float32


@pytest.mark.parametrize("name", list(CALLS))
def test_no_reference_is_lost_or_kept(short, name):
    x = tj.linspace(-1, 1, 24).reshape(4, 6)

    def run(times):
        for _ in range(times):
            CALLS[name](x)
        del short[:]

    run(700)  # until the native functions are made
    assert_level(run, [x, x._storage, x._shape, None, True, False, NotImplemented])
