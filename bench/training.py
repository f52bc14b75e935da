"""Whole training steps of an MLP: forward, backward and Adam, on one batch size and on twenty,
and with a look at the clock.

The same initial weights for everyone, so that the first losses can be compared.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.measure import Call, Starter, Workload
from bench.peers import Peers

WIDE = (784, 512, 512, 10)
TINY = (64, 64, 64, 10)
SWEEP = range(100, 253, 8)
LR, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8

Weights = list[tuple[np.ndarray, np.ndarray]]


def initial(sizes: Sequence[int]) -> Weights:
    """(out, in) weights and zero biases."""
    rng = np.random.default_rng(2)
    pairs = zip(sizes, sizes[1:])
    return [
        ((rng.standard_normal((o, i)) / np.sqrt(i)).astype("f4"), np.zeros(o, "f4"))
        for i, o in pairs
    ]


def batch(sizes: Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and class numbers."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((count, sizes[0])).astype("f4"), rng.integers(0, sizes[-1], count)


def mlp(space: Any, sizes: Sequence[int]) -> Any:
    layers: list[Any] = []
    for weight, bias in initial(sizes):
        layers += [space.nn.Linear(weight.shape[1], weight.shape[0]), space.nn.ReLU()]
        with space.no_grad():
            layers[-2].weight.copy_(space.from_numpy(weight))
            layers[-2].bias.copy_(space.from_numpy(bias))
    return space.nn.Sequential(*layers[:-1])


def torch_like(space: Any, wrap: Any, sizes: Sequence[int], counts: Sequence[int],
               timed: bool = False) -> Starter:
    """A step under PyTorch's names; torch.compile wraps the step as it does anything. `timed`: it
    looks at the clock, which is no part of a graph."""

    def start() -> Call:
        model, times = mlp(space, sizes), [0.0]
        optimizer = space.optim.Adam(model.parameters(), lr=LR, betas=BETAS, eps=EPS)

        @wrap
        def step(x: Any, target: Any) -> Any:
            if timed:
                times[0] = time.perf_counter()
            optimizer.zero_grad()
            loss = space.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        batches = [tuple(map(space.from_numpy, batch(sizes, count))) for count in counts]

        def call() -> Any:
            return [step(x, target) for x, target in batches][-1]

        return call

    return start


def with_jax(jax: Any, sizes: Sequence[int], counts: Sequence[int]) -> Starter:
    """The same step for jax.jit: state passed through, its buffers donated."""
    jnp = jax.numpy

    def loss_of(parameters: Any, x: Any, target: Any) -> Any:
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight.T + bias)
        weight, bias = parameters[-1]
        logs = jax.nn.log_softmax(x @ weight.T + bias)
        return -jnp.take_along_axis(logs, target[:, None], axis=1).mean()

    def step(state: Any, x: Any, target: Any) -> Any:
        parameters, first, second, count = state
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, target)
        count = count + 1
        map_over = jax.tree_util.tree_map
        first = map_over(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, first, grads)
        second = map_over(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, second, grads)
        scales = 1 - BETAS[0] ** count, jnp.sqrt(1 - BETAS[1] ** count)

        def update(p: Any, m: Any, v: Any) -> Any:
            return p - LR / scales[0] * m / (jnp.sqrt(v) / scales[1] + EPS)

        return (map_over(update, parameters, first, second), first, second, count), loss

    def start() -> Call:
        compiled = jax.jit(step, donate_argnums=0)

        def copies(fill: Any) -> Any:
            return [tuple(fill(array) for array in layer) for layer in initial(sizes)]

        state = (copies(jnp.array), copies(jnp.zeros_like), copies(jnp.zeros_like), jnp.float32(0))
        batches = [tuple(map(jnp.asarray, batch(sizes, count))) for count in counts]

        def call() -> Any:
            nonlocal state
            for x, target in batches:
                state, loss = compiled(state, x, target)
            jax.block_until_ready(state)
            return loss

        return call

    return start


def workloads(peers: Peers) -> list[Workload]:
    """The wide MLP, the tiny one, and one sweep over twenty batch sizes; both MLPs with a step that
    is no single graph."""
    kinds: list[tuple[str, Sequence[int], Sequence[int]]] = [
        ("MLP step", WIDE, [256]), ("tiny MLP step", TINY, [32]), ("20 batch sizes", WIDE, SWEEP),
    ]
    found = []
    for name, sizes, counts in kinds:
        contenders = {
            c: torch_like(space, wrap, sizes, counts) for c, space, wrap in peers.torch_like()
        }
        if peers.jax is not None:
            contenders["jax.jit"] = with_jax(peers.jax, sizes, counts)
        found.append(Workload(name, contenders))
    for name, sizes, count in (("timed MLP step", WIDE, 256), ("timed tiny MLP step", TINY, 32)):
        found.append(Workload(name, {
            c: torch_like(space, wrap, sizes, [count], timed=True)
            for c, space, wrap in peers.torch_like()
        }))  # fmt: skip
    return found
