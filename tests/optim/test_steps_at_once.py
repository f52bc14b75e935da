"""Adam's update in one op of eager mode has the bits of its ops one by one, which captured exact
steps record."""

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager import dispatch
from tracejit.jit.runtime import eager_fused, eager_kernels
from tracejit.optim import adam

SHAPES = ((7, 5), (11,), (2, 3, 4), (300, 200), ())
OPTIONS = ({}, {"weight_decay": 0.01}, {"maximize": True, "eps": 1e-3}, {"betas": (0.0, 0.99)},
           {"lr": 1, "weight_decay": 1}, {"amsgrad": True})


@pytest.fixture
def at_once(monkeypatch):
    """How many steps a program did."""
    names = []

    def run(op, operands, attributes):
        found = eager_kernels.run(op, operands, attributes)
        if found is not None and op.name == "adam_step":
            names.append(op.name)
        return found

    monkeypatch.setattr(dispatch, "_library", [run])
    monkeypatch.setattr(eager_fused, "WORTH", 0.0)
    return names


def trained(kind, dtype, options, wrap=lambda step: step):
    """Bytes of parameters and states after steps, with another learning rate for some."""
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
    return [x.detach().numpy().tobytes() for p in parameters
            for x in (p, *optimizer.state[p].values())]


@pytest.mark.parametrize("kind", [tj.optim.Adam, tj.optim.AdamW])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_bits_are_those_of_ops_one_by_one(monkeypatch, at_once, kind, dtype, options):
    found = trained(kind, dtype, options)
    assert len(at_once) == (0 if "amsgrad" in options else 6 * (len(SHAPES) - 1))
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "_library", [])  # the op's body
        assert trained(kind, dtype, options) == found
    monkeypatch.setattr(adam, "_is_plain", lambda *given: False)
    assert trained(kind, dtype, options) == found


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_an_exact_program_has_the_same_bits(at_once, dtype):
    found = trained(tj.optim.Adam, dtype, {"weight_decay": 0.01})
    assert at_once
    exact = trained(tj.optim.Adam, dtype, {"weight_decay": 0.01},
                    lambda step: tj.script(step, numerics="eager"))
    assert exact == found


def test_other_parameters_take_the_ops(at_once):
    for p in (tj.zeros(3).half(), tj.zeros(())):
        p = tj.nn.Parameter(p)
        p.grad = tj.ones_like(p)
        tj.optim.Adam([p]).step()
    p = tj.nn.Parameter(tj.zeros(3))
    p.grad = tj.ones_like(p)
    tj.optim.Adam([p], lr=tj.tensor(0.1)).step()
    tj.optim.Adam([p], differentiable=True)
    assert not at_once and (p.detach() != 0).all()
