"""Pruning: masks, states, errors as PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj

pytestmark = pytest.mark.oracle


def prune_of(m):
    if m is tj:
        import tracejit.nn.utils.prune as prune
    else:
        import torch.nn.utils.prune as prune
    return prune


def network(m):
    rng = np.random.default_rng(0)
    net = m.nn.Sequential(m.nn.Linear(4, 6), m.nn.ReLU(), m.nn.Linear(6, 3))
    with m.no_grad():
        for p in net.parameters():
            p.copy_(m.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
    return net


def by_magnitude(m, prune, net):
    prune.l1_unstructured(net[0], "weight", amount=0.4)
    prune.l1_unstructured(net[0], "bias", amount=2)


def by_scores(m, prune, net):
    scores = m.arange(24.0).view(6, 4)
    prune.l1_unstructured(net[0], "weight", amount=5, importance_scores=scores)


def again(m, prune, net):
    prune.l1_unstructured(net[0], "weight", amount=0.3)
    prune.ln_structured(net[0], "weight", amount=2, n=2, dim=0)
    prune.l1_unstructured(net[0], "weight", amount=0.5)


def everywhere(m, prune, net):
    prune.l1_unstructured(net[2], "weight", amount=3)
    parts = [(net[0], "weight"), (net[2], "weight")]
    prune.global_unstructured(parts, pruning_method=prune.L1Unstructured, amount=0.3)


def by_mask(m, prune, net):
    prune.custom_from_mask(net[2], "bias", m.tensor([1.0, 0.0, 1.0]))
    prune.identity(net[0], "weight")


def removed(m, prune, net):
    again(m, prune, net)
    net(m.ones(2, 4)).sum().backward()
    prune.remove(net[0], "weight")


def at_random(m, prune, net):
    prune.random_unstructured(net[0], "weight", amount=0.5)
    prune.random_structured(net[2], "weight", amount=2, dim=1)
    net[0].weight_mask.fill_(net[0].weight_mask.sum() / 24)
    net[2].weight_mask.fill_(net[2].weight_mask.sum() / 18)


PROGRAMS = [by_magnitude, by_scores, again, everywhere, by_mask, removed, at_random]


def shown(m, program):
    net, prune = network(m), prune_of(m)
    program(m, prune, net)
    y = net(m.linspace(-1, 1, 8).view(2, 4))
    y.sum().backward()
    state = {name: t.detach().numpy() for name, t in net.state_dict().items()}
    grads = {name: p.grad.numpy() for name, p in net.named_parameters()}
    hooks = [len(part._forward_pre_hooks) for part in net.modules()]
    return y.detach().numpy(), state, grads, hooks, prune.is_pruned(net)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_pruned_modules_are_those_of_pytorch(program):
    torch = pytest.importorskip("torch")
    (y, state, grads, *rest), (want, want_state, want_grads, *want_rest) = (
        shown(m, program) for m in (tj, torch))
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    assert list(state) == list(want_state) and rest == want_rest
    for name, value in want_state.items():
        np.testing.assert_array_equal(state[name], value)
    assert list(grads) == list(want_grads)
    for name, value in want_grads.items():
        np.testing.assert_allclose(grads[name], value, rtol=1e-5, atol=1e-6)


ERRORS = {
    "amount": lambda p, net: p.l1_unstructured(net[0], "weight", amount="much"),
    "share": lambda p, net: p.l1_unstructured(net[0], "weight", amount=1.5),
    "negative": lambda p, net: p.l1_unstructured(net[0], "weight", amount=-1),
    "too many": lambda p, net: p.l1_unstructured(net[0], "weight", amount=25),
    "slices of a vector": lambda p, net: p.ln_structured(net[0], "bias", 1, 2, 0),
    "dim": lambda p, net: p.ln_structured(net[0], "weight", 1, 2, 2),
    "not pruned": lambda p, net: p.remove(net[0], "weight"),
    "slices everywhere": lambda p, net: p.global_unstructured(
        [(net[0], "weight")], p.LnStructured, amount=1, n=1),
}


@pytest.mark.parametrize("call", ERRORS.values(), ids=ERRORS)
def test_errors_are_those_of_pytorch(call):
    kinds = []
    for m in (tj, pytest.importorskip("torch")):
        net = network(m)
        with pytest.raises((TypeError, ValueError, IndexError)) as found:
            call(prune_of(m), net)
        kinds.append(found.type)
    assert kinds[0] is kinds[1]


def test_a_pruned_step_is_captured():
    net, plain = network(tj), network(tj)
    for each in (net, plain):
        by_magnitude(tj, prune_of(tj), each)
    step = tj.script(lambda x: net(x).sum())
    for n in (2, 3):
        x = tj.ones(n, 4)
        step(x).backward()
        plain(x).sum().backward()
    for p, q in zip(net.parameters(), plain.parameters()):
        assert tj.allclose(p.grad, q.grad)
    assert step.report().breaks == [] and step.report().compiles == 1
