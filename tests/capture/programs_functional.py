"""Programs of `func` and `vmap`: derivatives and maps of functions within captured calls."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import tried
from tests.capture.program_list import programs_in

F = tj.nn.functional
SCALE = 1.0
SETTINGS = {"power": 2}


def _rows(n, m, start=0.0):
    return (tj.arange(float(n * m)) * 0.3 + start).sin().reshape(n, m)


def _loss(weights, x, y):
    return ((x @ weights["w"] * SCALE - y) ** SETTINGS["power"]).sum()


_EACH = tj.vmap(tj.func.grad(_loss), in_dims=(None, 0, 0))


def gradients_of_samples(jit):
    @jit
    def f(weights, x, y):
        each = tj.vmap(tj.func.grad(_loss), in_dims=(None, 0, 0))(weights, x, y)["w"]
        norms = each.flatten(1).norm(dim=1)
        return (each / norms.clamp(min=1.0).reshape(-1, 1, 1)).mean(0), norms

    weights = {"w": _rows(3, 2)}
    out = []
    for n in (4, 4, 2, 5):
        out.append(f(weights, _rows(n, 3), _rows(n, 2, 1.0)))
        with tj.no_grad():
            weights["w"] += 0.5
    return out


def a_mapped_function_of_the_module_s(jit):
    """What the function within reads is read at each call."""
    global SCALE

    @jit
    def f(weights, x, y):
        return _EACH(weights, x, y)["w"].sum(0)

    weights, out = {"w": _rows(3, 2)}, []
    try:
        for scale, power in ((1.0, 2), (1.0, 2), (3.0, 2), (3.0, 3)):
            SCALE, SETTINGS["power"] = scale, power
            out.append(f(weights, _rows(4, 3), _rows(4, 2)))
    finally:
        SCALE, SETTINGS["power"] = 1.0, 2
    return out


def functions_that_close_over(jit):
    shift = tj.zeros(3)

    def g(x):
        return ((x + shift) ** 3).sum()

    derived = tj.func.grad(g)

    @jit
    def f(x):
        return derived(x), tj.func.hessian(g)(x)

    out = []
    for _ in range(3):
        out.append(f(_rows(1, 3)[0]))
        shift.add_(1.0)
    return out


def random_numbers_of_samples(jit):
    @jit
    def f(x):
        def noisy(v):
            return v + tj.rand(3), F.dropout(v, 0.5), tj.randperm(3)

        others = tj.vmap(noisy, randomness="different")(x)
        same = tj.vmap(noisy, randomness="same")(x)
        return others, same

    tj.manual_seed(3)
    return [*(f(_rows(n, 3)) for n in (2, 2, 4)), tj.rand(2)]


def samples_that_are_written(jit):
    @jit
    def f(x, seen):
        def g(v):
            v[0] += 1
            seen.add_(1)
            w = tj.zeros_like(v)
            w[1:] = v[:-1]
            return w.mul_(2)

        return tj.vmap(g)(x)

    x, seen = _rows(3, 4), tj.zeros(2)
    return [*(f(x, seen) for _ in range(3)), x, seen, f(x.t(), seen), x]


def refusals_within_maps(jit):
    def program(g):
        @jit
        def f(x, total):
            return tj.vmap(g)(x), total

        total = tj.zeros(())
        return [tried(f, _rows(3, 2), total) for _ in range(2)]

    kept = tj.zeros(2)
    leaf = tj.ones(2, requires_grad=True)
    return [program(lambda v: kept.add_(v)), program(lambda v: v if v.sum() > 0 else -v),
            program(lambda v: v * v.sum().item()), program(lambda v: (v * leaf).sum().backward()),
            leaf.grad, program(lambda v: v[v > 0]), program(lambda v: v + tj.rand(2)), kept]


def values_that_mapped_functions_need(jit):
    """Of what is not mapped over there is one value."""
    @jit
    def f(x, limit):
        def g(v):
            w = limit * 2
            return v * 2 if w > 1 else v - w

        return tj.vmap(g)(x) + 1

    return [f(_rows(3, 2), tj.tensor(t)) for t in (1.0, 0.1, 1.0)]


def maps_in_branches_and_loops(jit):
    @jit
    def f(x, steps):
        for k in range(steps):
            if x.sum() > 0:
                x = tj.vmap(lambda v: v - v.mean())(x) + 0.1
            else:
                x = tj.vmap(lambda v, k=k: v.cumsum(0) + k)(x)
        return x

    return [f(_rows(3, 4, s), n) for s, n in ((0.0, 3), (2.0, 3), (0.0, 20))]


def ensembles(jit):
    models = [tj.nn.Sequential(tj.nn.Linear(3, 4), tj.nn.Tanh(), tj.nn.Linear(4, 2))
              for _ in range(3)]
    for k, model in enumerate(models):
        for p in model.parameters():
            with tj.no_grad():
                p.copy_((tj.arange(float(p.numel())) + k).cos().reshape(p.shape))
    parameters, buffers = tj.func.stack_module_state(models)

    def one(p, b, x):
        return tj.func.functional_call(models[0], (p, b), (x,))

    @jit
    def f(x):
        return tj.vmap(one, in_dims=(0, 0, None))(parameters, buffers, x)

    @jit
    def step(x, lr):
        loss = tj.vmap(one, in_dims=(0, 0, None))(parameters, buffers, x).square().sum()
        loss.backward()
        with tj.no_grad():
            for p in parameters.values():
                p -= lr * p.grad
                p.grad = None
        return loss.detach()

    out = [f(_rows(5, 3)).detach()]
    for k in range(3):
        out += [step(_rows(4, 3), 0.1 / (k + 1)), f(_rows(5, 3)).detach()]
    return out


def gradients_around_maps(jit):
    @jit
    def f(x, w):
        return tj.vmap(lambda v: F.softmax(v * w, 0).log().sum())(x)

    x, w, out = _rows(3, 4).requires_grad_(), _rows(1, 4)[0].requires_grad_(), []
    for _ in range(2):
        f(x, w).sum().backward()
        out += [x.grad.clone(), w.grad.clone()]
    return out


PROGRAMS = programs_in(globals())
