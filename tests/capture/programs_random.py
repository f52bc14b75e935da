"""Programs on random numbers: each is run plainly and captured, and must show the same.

A program takes `jit` (a decorator) and returns everything its caller can see, after several calls
with changed state: what was drawn, and the states of the generators.
"""

from __future__ import annotations

import copy

import tracejit as tj
from tracejit.nn import functional as F


def state():
    return tj.get_rng_state()


def calls_differ_and_seeds_replay(jit):
    @jit
    def f(x):
        return F.dropout(x, 0.5), tj.rand(3), tj.randn_like(x), tj.randint(0, 9, (4,))

    x, out = tj.ones(2, 3), []
    for seed in (1, 1, 2):
        tj.manual_seed(seed)
        out += [*f(x), *f(x), state()]
    return out


def states_are_saved_and_restored_between_calls(jit):
    @jit
    def f(x):
        return x + tj.rand_like(x), tj.randperm(5)

    x = tj.zeros(3)
    f(x)
    saved = state()
    first = f(x)
    f(x)
    tj.set_rng_state(saved)
    with tj.random.fork_rng():
        inside = f(x)
    return [*first, *inside, *f(x), state()]


def every_kind_of_draw(jit):
    @jit
    def f(p, n):
        x = tj.empty(6).exponential_(2.0)
        y = tj.empty(6).cauchy_().log_normal_(0.1, 0.2).geometric_(0.3)
        z = tj.empty(6).uniform_(-1, 1).normal_(2, 3).random_(7).bernoulli_(0.5)
        return (x, y, z, tj.bernoulli(p), tj.normal(p, 2.0), tj.normal(p, p), tj.poisson(p * 9),
                tj.multinomial(p, 2), tj.multinomial(p, 5, True), tj.binomial(n, p),
                tj.randint_like(p, 3), tj.bernoulli(p, 0.25))

    p = tj.tensor([0.2, 0.5, 0.9])
    return [*f(p, p * 0 + 8), *f(p, p * 0 + 8), *f(p * 0.5, p * 0 + 3), state()]


def generator_as_argument(jit):
    @jit
    def f(x, g):
        return x + tj.rand(3, generator=g), tj.randn(2), tj.randperm(4, generator=g)

    one, two = tj.Generator().manual_seed(1), tj.Generator().manual_seed(2)
    x, out = tj.zeros(3), []
    for g in (one, one, two, one, None, two):
        out += f(x, g)
    return [*out, one.get_state(), two.get_state(), state()]


def generator_as_attribute(jit):
    class Noise(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = tj.Generator().manual_seed(3)

        def forward(self, x):
            return x + tj.randn(2, generator=self.generator)

    module, x = jit(Noise()), tj.zeros(2)
    out = [module(x), module(x)]
    module.generator = tj.Generator().manual_seed(3)
    out += [module(x), module(x)]
    module.generator.manual_seed(3)
    return [*out, module(x), module.generator.get_state()]


_shared = tj.Generator()


def generator_as_global(jit):
    global _shared

    @jit
    def f(x):
        return x * tj.rand(2, generator=_shared)

    _shared = tj.Generator().manual_seed(5)
    out = [f(tj.ones(2)), f(tj.ones(2))]
    _shared = tj.Generator().manual_seed(6)
    return [*out, f(tj.ones(2)), f(tj.ones(2)), _shared.get_state()]


def two_generators_that_become_one(jit):
    @jit
    def f(g, h):
        return tj.rand(2, generator=g), tj.rand(2, generator=h), tj.rand(1, generator=g)

    generators = [tj.Generator().manual_seed(1), tj.Generator().manual_seed(2)]
    out = []
    for k, m in ((0, 1), (1, 1), (1, 0), (0, 0), (0, 1), (1, 1)):
        out += f(generators[k], generators[m])
    return [*out, *[g.get_state() for g in generators]]


def one_generator_that_becomes_two(jit):
    @jit
    def f(pair):
        return tj.rand(2, generator=pair[0]), tj.rand(2, generator=pair[1])

    one, two = tj.Generator().manual_seed(1), tj.Generator().manual_seed(2)
    return [*f([one, one]), *f([one, two]), *f([two, two]), one.get_state(), two.get_state()]


def seeded_inside(jit):
    @jit
    def f(x, seed):
        before = tj.rand(2)
        tj.manual_seed(seed)
        return before, x + tj.rand(2)

    x, out = tj.zeros(2), []
    for seed in (1, 1, 2, 1):
        out += f(x, seed)
    return [*out, state()]


def seeded_after_the_last_draw(jit):
    @jit
    def f():
        drawn = tj.rand(2)
        tj.manual_seed(3)
        return drawn

    return [f(), state(), f(), state(), f(), state()]


def made_inside(jit):
    @jit
    def f():
        g = tj.Generator()
        return tj.rand(2, generator=g), tj.rand(2, generator=tj.Generator().manual_seed(5))

    return [*f(), *f(), *f()]


def copied_inside(jit):
    @jit
    def f(g):
        twin = copy.deepcopy(g)
        return tj.rand(2, generator=g), tj.rand(2, generator=twin), g.clone_state().initial_seed()

    g = tj.Generator().manual_seed(4)
    return [*f(g), *f(g), *f(g), g.get_state()]


def state_read_inside(jit):
    @jit
    def f():
        return tj.rand(2), tj.get_rng_state(), tj.rand(1), tj.default_generator.offset

    return [*f(), *f(), *f()]


def state_set_inside(jit):
    @jit
    def f(saved):
        first = tj.rand(2)
        tj.set_rng_state(saved)
        return first, tj.rand(2)

    saved = state()
    return [*f(saved), *f(saved), *f(saved), state()]


def forked_inside(jit):
    @jit
    def f():
        with tj.random.fork_rng():
            inside = tj.rand(2)
        return inside, tj.rand(2)

    return [*f(), *f(), *f(), state()]


def seed_read_inside(jit):
    @jit
    def f():
        return tj.rand(2) + tj.initial_seed()

    out = []
    for seed in (1, 2, 3):
        tj.manual_seed(seed)
        out += [f(), f()]
    return out


def draws_between_values_that_are_read(jit):
    @jit
    def f(x):
        drawn = tj.rand(3)
        if drawn[0] > 0.5:
            drawn = drawn + tj.randn(3)
        return drawn, tj.rand(2)

    return [y for _ in range(6) for y in (*f(tj.ones(3)), state())]


def gradients_through_dropout(jit):
    @jit
    def f(x, w):
        return (F.dropout(x @ w, 0.5) * tj.rand(2)).sum()

    x, out = tj.ones(3, 4), []
    w = tj.ones(4, 2, requires_grad=True)
    for _ in range(3):
        f(x, w).backward()
        out += [w.grad.clone(), state()]
    return out


def training_with_noise_inside(jit):
    w = tj.ones(3, requires_grad=True)
    optimizer = tj.optim.SGD([w], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (F.dropout(w, 0.3) * x + tj.randn(3) * 0.1).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [*[step(tj.ones(3)) for _ in range(4)], w, state()]


def sizes_of_draws_change(jit):
    @jit
    def f(x, k):
        return tj.rand(x.shape[0]), tj.randperm(x.shape[0]), tj.randint(0, x.shape[0], (k,))

    out = []
    for n in (3, 5, 1, 64):
        out += f(tj.ones(n), 4)
    return [*out, state()]


def sampling_by_logits(jit):
    @jit
    def f(logits):
        return tj.multinomial(F.softmax(logits, -1), 1), tj.multinomial(F.softmax(logits, -1), 2)

    x = tj.linspace(-1, 1, 12)
    return [*f(x.view(3, 4)), *f(x.view(2, 6)), *f(x.view(3, 4)), state()]


def eager_draws_between(jit):
    @jit
    def f():
        return tj.rand(2)

    out = [f(), tj.rand(2), f(), tj.randn(3)]
    tj.seed()
    tj.manual_seed(7)
    return [*out, tj.rand(2), f(), f(), tj.initial_seed()]


def weights_that_fail(jit):
    @jit
    def f(w):
        return tj.multinomial(w, 1)

    out = [f(tj.tensor([1.0, 2.0]))]
    for bad in ([0.0, 0.0], [1.0, -1.0]):
        try:
            f(tj.tensor(bad))
        except RuntimeError as error:
            out += [str(error), state()]
    return [*out, f(tj.tensor([1.0, 2.0])), state()]


PROGRAMS = [
    f for f in list(globals().values())
    if callable(f) and getattr(f, "__module__", "") == __name__ and f is not state
]  # fmt: skip
