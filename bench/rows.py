"""Work along rows of 4096 x 1024: softmax, layer_norm + GELU and cross-entropy with gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Call, Starter, Workload
from bench.peers import Peers

ROWS, COLUMNS, CLASSES = 4096, 1024, 1000


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _softmax(space: Any, wrap: Any) -> Starter:
    def start() -> Call:
        x = space.from_numpy(_random(ROWS, COLUMNS))
        step = wrap(lambda x: space.nn.functional.softmax(x, dim=-1))
        return lambda: step(x)

    return start


def _norm_gelu(space: Any, wrap: Any) -> Starter:
    def step(x: Any, weight: Any, bias: Any) -> Any:
        functional = space.nn.functional
        y = functional.layer_norm(x, (COLUMNS,), weight, bias)
        loss = functional.gelu(y, approximate="tanh").sum()
        return space.autograd.grad(loss, [x, weight, bias])

    def start() -> Call:
        x = space.from_numpy(_random(ROWS, COLUMNS)).requires_grad_()
        weight = space.ones(COLUMNS, requires_grad=True)
        bias = space.zeros(COLUMNS, requires_grad=True)
        run = wrap(step)
        return lambda: run(x, weight, bias)[0]

    return start


def _cross_entropy(space: Any, wrap: Any) -> Starter:
    def step(x: Any, target: Any) -> Any:
        return space.autograd.grad(space.nn.functional.cross_entropy(x, target), [x])

    def start() -> Call:
        x = space.from_numpy(_random(ROWS, CLASSES)).requires_grad_()
        target = space.from_numpy(np.arange(ROWS) % CLASSES)
        run = wrap(step)
        return lambda: run(x, target)[0]

    return start


def _jax_softmax(jax: Any) -> Starter:
    def start() -> Call:
        x = jax.numpy.asarray(_random(ROWS, COLUMNS))
        step = jax.jit(lambda x: jax.nn.softmax(x, axis=-1))
        return lambda: step(x).block_until_ready()

    return start


def _jax_norm_gelu(jax: Any) -> Starter:
    def loss(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return jax.nn.gelu(centred * scale * weight + bias, approximate=True).sum()

    def start() -> Call:
        operands = (_random(ROWS, COLUMNS), np.ones(COLUMNS, "f4"), np.zeros(COLUMNS, "f4"))
        x, weight, bias = map(jax.numpy.asarray, operands)
        step = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
        return lambda: jax.block_until_ready(step(x, weight, bias))[0]

    return start


def _jax_cross_entropy(jax: Any) -> Starter:
    def loss(x: Any, target: Any) -> Any:
        logs = jax.nn.log_softmax(x, axis=-1)
        return -jax.numpy.take_along_axis(logs, target[:, None], axis=1).mean()

    def start() -> Call:
        x = jax.numpy.asarray(_random(ROWS, CLASSES))
        target = jax.numpy.asarray(np.arange(ROWS) % CLASSES)
        step = jax.jit(jax.grad(loss))
        return lambda: step(x, target).block_until_ready()

    return start


def workloads(peers: Peers) -> list[Workload]:
    """Softmax forward; layer_norm + GELU and cross-entropy forward and backward."""
    kinds: list[tuple[str, Callable[..., Starter], Callable[[Any], Starter]]] = [
        ("softmax", _softmax, _jax_softmax),
        ("layer_norm + GELU, fwd+bwd", _norm_gelu, _jax_norm_gelu),
        ("cross-entropy, fwd+bwd", _cross_entropy, _jax_cross_entropy),
    ]
    found = []
    for name, torch_like, with_jax in kinds:
        contenders = {c: torch_like(space, wrap) for c, space, wrap in peers.torch_like()}
        if peers.jax is not None:
            contenders["jax.jit"] = with_jax(peers.jax)
        found.append(Workload(name, contenders))
    return found
