"""Programs that make a leaf of their own, differentiate by it, and give away what led to it."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def _network():
    net = tj.nn.Sequential(tj.nn.Linear(2, 4), tj.nn.Tanh(), tj.nn.Linear(4, 1))
    with tj.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(tj.linspace(-0.5, 0.7 + k * 0.1, p.numel()).reshape(p.shape))
    return net


def loss_of_a_slope_is_returned(jit):
    net = _network()
    opt = tj.optim.SGD(net.parameters(), 0.05)

    def step(points):
        x = points.clone()
        x.requires_grad = True
        slope = tj.autograd.grad(net(x).sum(), x, create_graph=True)[0]
        loss = (slope**2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    f = jit(step)
    out = []
    for k in range(6):
        loss = f(tj.linspace(-1, 1 + k, 10).reshape(5, 2))
        weights = [p.detach().clone() for p in net.parameters()]
        out.append((loss.detach(), loss.requires_grad, weights))
        try:
            loss.backward()
        except RuntimeError as error:
            out.append("second time" in str(error))
        if k == 3:
            with tj.no_grad():
                net[0].weight.mul_(2)
    return out


def gradient_of_a_leaf_is_read_and_its_loss_returned(jit):
    w = tj.tensor([2.0, 3.0], requires_grad=True)

    def f(points):
        x = points.detach().requires_grad_()
        loss = (x * w).pow(2).sum()
        loss.backward()
        return loss, x.grad * 2

    g = jit(f)
    out = []
    for k in range(5):
        loss, twice = g(tj.ones(2) * k)
        out.append((loss.detach(), twice, w.grad.clone()))
    return out


def leaf_with_its_gradient_is_returned_beside_the_loss(jit):
    w = tj.tensor([2.0, 3.0], requires_grad=True)

    def f(points):
        x = points.detach().requires_grad_()
        loss = (x * w).pow(2).sum()
        loss.backward()
        return loss, x

    g = jit(f)
    out = []
    for k in range(5):
        loss, x = g(tj.ones(2) * k)
        out.append((loss.detach(), x.detach(), x.grad, x.is_leaf, w.grad.clone()))
    return out


def gradient_of_a_leaf_is_kept_by_the_caller(jit):
    w, kept = tj.tensor([2.0, 3.0], requires_grad=True), []

    def f(points):
        x = points.clone().requires_grad_()
        loss = (x * w).pow(2).sum()
        loss.backward()
        kept.append(x.grad)
        return loss

    g = jit(f)
    out = [g(tj.ones(2) * k).detach() for k in range(5)]
    kept.clear()
    return [*out, g(tj.ones(2)).detach(), list(kept)]


def leaf_whose_history_is_retained(jit):
    w = tj.tensor([2.0, 3.0], requires_grad=True)

    def f(points):
        x = points.clone().requires_grad_()
        loss = (x * w).pow(2).sum()
        loss.backward(retain_graph=True)
        return loss

    g = jit(f)
    out = []
    for k in range(5):
        loss = g(tj.ones(2) * k)
        loss.backward()
        out.append((loss.detach(), w.grad.clone()))
    return out


PROGRAMS = programs_in(globals())
