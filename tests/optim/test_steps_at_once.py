"""An update in one op of eager mode has the bits of its ops one by one, which captured exact steps
record. It writes in place, as they do."""

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.leaks import assert_level
from tracejit.core.eager import dispatch
from tracejit.core.eager.state import of_array
from tracejit.core.memory import readers
from tracejit.jit.runtime import eager_fused, eager_updates
from tracejit.optim import at_once

SHAPES = ((7, 5), (11,), (2, 3, 4), (300, 200), ())
OF_ADAM = ({}, {"weight_decay": 0.01}, {"maximize": True, "eps": 1e-3}, {"betas": (0.0, 0.99)},
           {"lr": 1, "weight_decay": 1}, {"amsgrad": True})
OF_SGD = ({}, {"momentum": 0.9}, {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
          {"weight_decay": 1, "lr": 1, "maximize": True}, {"momentum": 0.9, "dampening": 0.1})
STEPS = [(kind, options) for kind in (tj.optim.Adam, tj.optim.AdamW) for options in OF_ADAM]
STEPS += [(tj.optim.SGD, options) for options in OF_SGD]


@pytest.fixture
def written(monkeypatch):
    """The names of the ops that programs ran in place."""
    names = []

    def update(op, *given):
        found = eager_updates_update(op, *given)
        if found:
            names.append(op.name)
        return found

    eager_updates_update = eager_updates.update
    monkeypatch.setattr(eager_updates, "update", update)
    monkeypatch.setattr(eager_fused, "WORTH", 0.0)
    return names


def trained(kind, dtype, options, wrap=lambda step: step):
    """Bytes and versions of parameters and states after steps, with another learning rate for
    some."""
    rng = np.random.default_rng(1)
    parameters = [tj.nn.Parameter(tj.tensor(rng.standard_normal(s).astype(dtype))) for s in SHAPES]
    optimizer = kind(parameters, **options)

    @wrap
    def step(*grads):
        for p, grad in zip(parameters, grads):
            p.grad = grad
        optimizer.step()

    for k in range(6):
        grads = [np.asarray(rng.standard_normal(s), dtype) for s in SHAPES]
        if k == 3:
            optimizer.param_groups[0]["lr"] = 0.013
        step(*map(tj.tensor, grads))
    return [(x.detach().numpy().tobytes(), x._version) for p in parameters
            for x in (p, *optimizer.state[p].values())]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("kind", "options"), STEPS, ids=str)
def test_bits_are_those_of_ops_one_by_one(monkeypatch, written, kind, dtype, options):
    found = trained(kind, dtype, options)
    other = "amsgrad" in options or "dampening" in options
    assert len(written) == (0 if other else 6 * (len(SHAPES) - 1))
    with monkeypatch.context() as patch:
        patch.setattr(eager_updates, "update", lambda *given: False)
        assert trained(kind, dtype, options) == found
        patch.setattr(dispatch, "_library", [])  # the op's body
        assert trained(kind, dtype, options) == found
    monkeypatch.setattr(at_once, "may_run", lambda *given: False)
    assert trained(kind, dtype, options) == found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", [tj.optim.Adam, tj.optim.SGD])
def test_an_exact_program_has_the_same_bits(written, kind, dtype):
    found = trained(kind, dtype, {"weight_decay": 0.01})
    assert written
    exact = trained(kind, dtype, {"weight_decay": 0.01},
                    lambda step: tj.script(step, numerics="eager"))
    assert exact == found


def test_numpy_serves_until_a_compile_pays(written, monkeypatch):
    monkeypatch.setattr(eager_fused, "WORTH", 100.0)
    monkeypatch.setattr(eager_updates, "_spent", {})
    monkeypatch.setattr(eager_updates, "_calls", {})
    p = tj.nn.Parameter(tj.zeros(3))
    optimizer = tj.optim.SGD([p], lr=1.0)
    for _ in range(20):
        p.grad = tj.ones(3)
        optimizer.step()
    assert 0 < len(written) < 20
    assert p.tolist() == [-20.0] * 3


def step_of(p, grad, kind=tj.optim.SGD, **options):
    p.grad = grad
    kind([p], lr=0.5, **options).step()
    return p


@pytest.mark.parametrize("kind", [tj.optim.Adam, tj.optim.SGD])
def test_other_parameters_take_the_ops(written, kind):
    for p in (tj.zeros(3).half(), tj.zeros(()), tj.zeros(0), tj.zeros(3, dtype=tj.complex64)):
        step_of(tj.nn.Parameter(p), tj.ones_like(p), kind)
    p = tj.nn.Parameter(tj.zeros(3))
    p.grad = tj.ones_like(p)
    kind([p], lr=tj.tensor(0.1)).step()
    kind([p], differentiable=True)
    assert not written and (p.detach() != 0).all()


class Own(tj.Tensor):
    pass


def test_layouts_that_a_program_does_not_take(written):
    turned = step_of(tj.nn.Parameter(tj.zeros(3, 2).t()), tj.ones(2, 3))
    step_of(tj.nn.Parameter(tj.zeros(2, 3)), tj.ones(3, 2).t())
    step_of(tj.nn.Parameter(tj.zeros(2, 3)), tj.ones(()).expand(2, 3))
    step_of(tj.zeros(4).as_subclass(Own).requires_grad_(), tj.ones(4))
    assert not written and turned.tolist() == [[-0.5] * 3] * 2


def test_memory_that_overlaps(written):
    memory = np.zeros(8, "f4")
    p, grad = of_array(memory[:6]).requires_grad_(), of_array(memory[1:7])
    step_of(p, grad)
    p = tj.nn.Parameter(tj.ones(4))
    assert step_of(p, p.detach()).tolist() == [0.5] * 4
    assert not written
    step_of(of_array(memory[:4]).requires_grad_(), of_array(memory[4:]))
    assert written


def test_memory_that_may_not_be_written(written):
    memory = np.zeros(4, "f4")
    memory.flags.writeable = False
    p = of_array(memory).requires_grad_()
    with pytest.raises(ValueError, match="read-only"):
        step_of(p, tj.ones(4))
    p = tj.ones(4).requires_grad_()
    p._storage.take(None)
    with pytest.raises(RuntimeError, match="no memory"):
        step_of(p, tj.ones(4))
    assert not written


def test_views_and_data_see_the_write_and_count_it_as_the_ops_do(written, monkeypatch):
    def versions():
        p = tj.nn.Parameter(tj.zeros(4))
        data, view = p.data, p.view(2, 2)
        step_of(p, tj.ones(4))
        base = tj.zeros(6)
        part = base[1:5].requires_grad_()
        step_of(part, tj.ones(4))
        step_of(data.requires_grad_(), tj.ones(4))
        found = [p, data, view, base, part]
        return [(x.tolist(), x._version) for x in found]

    found = versions()
    assert written
    monkeypatch.setattr(at_once, "may_run", lambda *given: False)
    assert versions() == found


def test_a_backward_after_the_step_says_what_was_written(written):
    p = tj.nn.Parameter(tj.ones(3))
    y = (p * p).sum()
    step_of(p, tj.ones(3))
    assert written
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_readers_are_told_before_the_write(written):
    class Reader:
        def about_to_write(self, storage, before):
            told.append((storage, p.tolist()))

    told, reader, p = [], Reader(), tj.nn.Parameter(tj.ones(2))
    at = readers.reads(reader)
    step_of(p, tj.ones(2))
    assert written and told == [(p._storage, [1.0, 1.0])] and at() is reader


def test_tensors_of_inference_mode_may_not_be_written(written):
    with tj.inference_mode():
        p = tj.ones(2)
    p.grad = tj.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        tj.optim.SGD([p], lr=0.5).step()
    assert not written and p.tolist() == [1.0, 1.0]


def test_modes_see_the_ops_one_by_one(written):
    names = []

    class Mode(tj.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    p = tj.nn.Parameter(tj.ones(3))
    p.grad = tj.ones(3)
    optimizer = tj.optim.SGD([p], lr=0.5)
    with Mode():
        optimizer.step()
    assert "copy_" in names and not written


@pytest.mark.parametrize("kind", [tj.optim.Adam, tj.optim.SGD])
def test_no_reference_is_lost_or_kept(written, kind):
    p, grad = tj.nn.Parameter(tj.ones(4)), tj.ones(4)
    p.grad = grad
    optimizer = kind([p], lr=0.5)

    def run(times):
        for _ in range(times):
            optimizer.step()

    assert_level(run, [p, grad, p._storage, None, True, False])
    assert written
