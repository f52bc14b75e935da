"""`out=`: what is written, resized, refused; the same when the call is captured."""

from __future__ import annotations

import inspect
import pickle

import pytest

import tracejit
from tracejit.core.ops import out as taking
from tracejit.core.ops.record import Op

x = tracejit.arange(4.0)


@pytest.mark.parametrize("call", [
    lambda out: tracejit.add(x, 1, out=out), lambda out: tracejit.exp(x, out=out),
    lambda out: tracejit.cumsum(out.copy_(x), 0, out=out),
    lambda out: tracejit.special.expit(x, out=out),
    lambda out: tracejit.nn.functional.gelu(x, out=out),
    lambda out: tracejit.matmul(tracejit.eye(4), x, out=out),
])  # fmt: skip
def test_a_result_is_stored(call):
    out = tracejit.zeros(4)
    again = out.view(2, 2)
    assert call(out) is out
    expected = call(None) if "copy_" not in inspect.getsource(call) else x.cumsum(0)
    assert tracejit.equal(out, expected) and tracejit.equal(again.reshape(4), out)


def test_several_results_keep_their_names():
    values, indices = tracejit.zeros(2), tracejit.zeros(2, dtype=tracejit.int64)
    found = tracejit.max(x.reshape(2, 2), 1, out=(values, indices))
    assert found.values is values and found.indices is indices
    assert values.tolist() == [1, 3] and indices.tolist() == [1, 1]
    with pytest.raises(TypeError, match="expected 2 tensors"):
        tracejit.max(x, 0, out=values)


def test_dtypes():
    assert tracejit.arange(3, out=tracejit.zeros(3)).tolist() == [0.0, 1.0, 2.0]
    assert tracejit.sum(x, 0, out=tracejit.tensor(0.0, dtype=tracejit.float64)).item() == 6
    with pytest.raises(RuntimeError, match="Float can't be cast to the desired output type Long"):
        tracejit.exp(x, out=tracejit.zeros(4, dtype=tracejit.int64))
    for exact in (lambda out: tracejit.take(x, tracejit.tensor([0]), out=out),
                  lambda out: tracejit.diag(x, out=out), lambda out: tracejit.dot(x, x, out=out),
                  lambda out: tracejit.isposinf(x, out=out), lambda out: tracejit.norm(x, out=out),
                  lambda out: tracejit.vdot(x, x, out=out),
                  lambda out: tracejit.mv(x[None], x, out=out),
                  lambda out: tracejit.linalg.inv(tracejit.eye(2), out=out),
                  lambda out: tracejit.linalg.svdvals(tracejit.eye(2), out=out),
                  lambda out: tracejit.scatter_add(x, 0, tracejit.tensor([0]), x, out=out),
                  lambda out: tracejit.renorm(x[None], 2, 0, 1.0, out=out),
                  lambda out: tracejit.quantile(x, 0.5, out=out)):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            exact(tracejit.zeros(1, dtype=tracejit.float64))


def test_other_sizes():
    out = tracejit.empty(0)
    assert tracejit.mul(x, 2, out=out).tolist() == [0, 2, 4, 6] and out.shape == (4,)
    with pytest.warns(UserWarning, match=r"shape \[4\] is resized to the \[2, 2\]"):
        tracejit.mul(x.reshape(2, 2), 2, out=out)
    assert out.shape == (2, 2)


def test_what_would_be_recorded_is_refused():
    w = x.clone().requires_grad_()
    for call in (tracejit.exp, tracejit.square, tracejit.sum):
        with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
            call(w, out=tracejit.zeros(4))
    with tracejit.no_grad():
        assert tracejit.square(w, out=tracejit.zeros(4)).tolist() == [0, 1, 4, 9]


def test_captured():
    def step(x, out):
        tracejit.add(x, 1, out=out)
        tracejit.exp(out, out=out)
        tracejit.sum(x, 0, out=out[0])
        return out * 2

    compiled = tracejit.script(step, mode="graph")
    for _ in range(2):
        plain, given = tracejit.zeros(4), tracejit.zeros(4)
        assert tracejit.equal(step(x, plain), compiled(x, given)) and tracejit.equal(plain, given)
    assert not compiled.report().breaks


def test_functions_with_out_are_found_by_name():
    assert pickle.loads(pickle.dumps(tracejit.sum)) is tracejit.sum
    assert "keepdim" in inspect.signature(tracejit.sum).parameters


@pytest.mark.oracle
def test_the_names_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    rooms = ((taking.TORCH, torch, tracejit), (taking.LINALG, torch.linalg, tracejit.linalg),
             (taking.FFT, torch.fft, tracejit.fft), (taking.SPECIAL, torch.special,
                                                     tracejit.special))  # fmt: skip
    for names, theirs, ours in rooms:
        for name in names:
            assert not isinstance(getattr(ours, name), Op) or name in taking.TORCH
            with pytest.raises((AttributeError, TypeError, RuntimeError, ValueError)) as raised:
                getattr(theirs, name)(object(), out=torch.empty(0))
            assert "unexpected keyword argument 'out'" not in str(raised.value), name
