"""Programs on gradients of results that others were computed from, and of some leaves only."""

from __future__ import annotations

import warnings

import tracejit as tj
from tests.capture.program_list import programs_in


def leaf(*values):
    return tj.tensor(values, requires_grad=True)


def asked(y, xs, **how):
    """Gradients, or the error of asking for them."""
    try:
        return tj.autograd.grad(y, xs, allow_unused=True, **how)
    except RuntimeError as error:
        return str(error)[:40]


def gradient_of_one_result_by_another(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        h = (x * w).tanh()
        return h, (h * h).sum()

    out = []
    for k in range(3):
        h, loss = f(tj.ones(2) + k)
        out += [asked(loss, h, retain_graph=True), asked(loss, [h, w])]
    return out


def derivatives_along_a_chain_of_results(jit):
    w = leaf(0.3, -0.2)

    @jit
    def f(x):
        u = (x * w).sin()
        v = u * u + x
        return u, v, (v * w).sum()

    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        u, v, y = f(x)
        for one, other in ((y, v), (y, u), (v.sum(), u), (u.sum(), x)):
            (first,) = tj.autograd.grad(one, other, create_graph=True)
            out += [first, *asked((first * first).sum(), [u, v, w, x], retain_graph=True)]
    return out


def hook_on_a_result_that_another_came_from(jit):
    w = leaf(1.0, 2.0)
    seen = []

    @jit
    def f(x):
        h = x * w
        return h, (h * h).sum()

    for k in range(3):
        h, loss = f(tj.ones(2) + k)
        h.register_hook(lambda g: seen.append(g.clone()) or g * 10)
        loss.backward()
    return [seen, w.grad]


def hooks_where_paths_meet(jit):
    w = leaf(1.0, 2.0)
    seen = []

    @jit
    def f(x):
        t = x * w
        first = t.exp()
        second = first * t
        return first, second, (second * t).sum() + first.sum()

    for k in range(3):
        first, second, loss = f(tj.ones(2) * 0.5 + k)
        if k != 1:
            first.register_hook(lambda g: seen.append(g.clone()) or g * g)
        second.retain_grad()
        (loss + (first * second).sum()).backward()
        seen.extend([second.grad, w.grad.clone()])
    return seen


def gradient_retained_by_a_result(jit):
    w = tj.arange(6.0).view(3, 2).requires_grad_()

    @jit
    def f(x):
        features = (x @ w).relu()
        return features, features * w[0]

    out = []
    for k in range(3):
        features, logits = f(tj.arange(6.0).view(2, 3) - k)
        features.retain_grad()
        logits[0, k % 2].backward()
        out += [features.grad, w.grad.clone()]
    return out


def backward_to_a_result(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        h = x * w
        return h, h.exp().sum()

    out = []
    for k in range(3):
        h, loss = f(tj.ones(2) * k)
        loss.backward(inputs=[h])
        out += [h.grad, w.grad]
    return out


def one_leaf_after_the_other(jit):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    f = jit(lambda x: (x * a * a).sum() + (x * b.exp()).sum())
    out = []
    for k in range(3):
        y = f(tj.ones(2) + k)
        out += [asked(y, a), asked(y, b), asked(y, a), asked(y, b)]
    return out


def gradient_of_what_a_result_does_not_use(jit):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)

    @jit
    def f(x):
        h = (x * a).exp()
        return h.sum(), (h * b).sum()

    out = []
    for k in range(3):
        first, other = f(tj.ones(2) * k)
        out += [asked(first, b), asked(first, a), asked(other, a)]
    return out


def asked_again_of_what_does_not_lead_there(jit):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seen = []

    @jit
    def f(x):
        h = x * w
        return h * h, h * v

    for k in range(3):
        first, other = f(tj.ones(2) + k)
        first.register_hook(lambda g: seen.append(g.clone()))
        (first.sum() + other.sum()).backward()
        seen.extend([asked(first.sum(), other), asked(other.sum(), first), asked(first.sum(), v)])
    return seen


def written_where_the_gradient_does_not_go(jit):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    f = jit(lambda c, d: (a * c).sum() + (b * d).sum())
    out = []
    for k in range(3):
        c, d = tj.ones(2) + k, tj.ones(2) * 2
        y = f(c, d)
        d.add_(1)
        out += [asked(y, a, retain_graph=True), asked(y, b)]
    return out


def hooks_of_leaves_run_in_order(jit):
    first, last = tj.arange(9.0).view(3, 3), tj.arange(6.0).view(3, 2)
    leaves = [first.requires_grad_(), last.requires_grad_()]
    kept = last.sum() + first.sum()
    log = []
    for name, p in zip("fl", leaves):
        p.register_hook(lambda g, name=name: log.append(name))
        p.register_post_accumulate_grad_hook(
            lambda q: log.append([p.grad is not None for p in leaves]))
    f = jit(lambda x: ((x @ first).tanh() @ last).sum())
    for _ in range(3):
        first.grad = last.grad = None
        f(tj.ones(2, 3)).backward()
        log.append("-")
    return [log, kept]


def leaf_that_no_gradient_is_asked_of(jit):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    log = []
    b.register_hook(lambda g: log.append(g.clone()))

    @jit
    def f(x):
        h = x * a * b
        return h, (h * b).sum()

    for k in range(3):
        h, y = f(tj.ones(2) + k)
        log += [asked(y, a, retain_graph=True), asked(y, h, retain_graph=True), asked(y, b)]
    return log


def anomaly_around_the_backward_only(jit):
    f = jit(lambda x: (x.relu().sqrt() * 0).sum())
    out = []
    for k in range(4):
        x = leaf(-1.0, 4.0)
        y = f(x)
        with warnings.catch_warnings(), tj.autograd.set_detect_anomaly(k > 0):
            warnings.simplefilter("ignore")
            out += [str(asked(y, x))[:60], x.grad]
    return out


def checkpoints_around_the_call(jit):
    w = leaf(1.0, 2.0)
    f = jit(lambda x: (x * w).exp() * x)
    out = []
    for k in range(3):
        x = (tj.ones(2) * k).requires_grad_()
        for way in (False, True):
            y = tj.utils.checkpoint.checkpoint(f, x, use_reentrant=way)
            y.sum().backward()
            out += [w.grad.clone(), x.grad.clone()]
    return out


def gradients_by_a_returned_view_that_the_loss_came_from(jit):
    w = leaf(1.0, -2.0, 0.5)

    @jit
    def f(x):
        states = (x * w).tanh()
        last = states[-1]
        return states, last, last.square().sum()

    out = []
    for n in (2, 3, 2):
        states, last, loss = f(tj.arange(3.0 * n).view(n, 3) / 5)
        last.retain_grad()
        out += tj.autograd.grad(loss, [last, w], retain_graph=True)
        (loss + states.sum()).backward()
        out += [last.grad, w.grad]
    return out


PROGRAMS = programs_in(globals())
