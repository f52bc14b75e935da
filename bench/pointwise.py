"""Elementwise work: a tanh-GELU written out, on four million floats and on sixteen."""

from typing import Any

import numpy as np

from bench.measure import Call, Starter, Workload
from bench.peers import Peers


def _gelu(tanh: Any) -> Any:
    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    return gelu


def _torch_like(space: Any, wrap: Any, data: np.ndarray) -> Starter:
    def start() -> Call:
        x = space.from_numpy(data.copy())
        gelu = wrap(_gelu(space.tanh))
        return lambda: gelu(x)

    return start


def _jax(jax: Any, data: np.ndarray) -> Starter:
    def start() -> Call:
        x = jax.numpy.asarray(data)
        gelu = jax.jit(_gelu(jax.numpy.tanh))
        return lambda: gelu(x).block_until_ready()

    return start


def workloads(peers: Peers) -> list[Workload]:
    """GELU on 4,000,000 float32, and on 16: what a call itself costs."""
    found = []
    for name, count in (("GELU 4M", 4_000_000), ("tiny call", 16)):
        data = np.random.default_rng(0).standard_normal(count).astype(np.float32)
        contenders = {c: _torch_like(space, wrap, data) for c, space, wrap in peers.torch_like()}
        if peers.jax is not None:
            contenders["jax.jit"] = _jax(peers.jax, data)
        found.append(Workload(name, contenders))
    return found
