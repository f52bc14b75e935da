"""Work by place rather than by value: order, running sums, rows by index and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Call, Starter, Workload
from bench.peers import Peers

ROWS, COLUMNS, COUNT = 256, 4096, 50
TABLE, WIDTH, READ, BUCKETS = 20000, 64, 8192, 1000


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype("f4")


def _places(size: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(8).integers(0, size, shape)


def _sort(space: Any, x: Any) -> Any:
    return space.sort(x, dim=-1)[0]


def _topk(space: Any, x: Any) -> Any:
    return space.topk(x, COUNT, dim=-1)[0]


def _cumsum(space: Any, x: Any) -> Any:
    return space.cumsum(x, dim=-1)


def _lookup(space: Any, table: Any, places: Any, buckets: Any, picked: Any) -> Any:
    """The gradient of a table whose rows are read, one element of each, and summed in buckets."""
    rows = space.nn.functional.embedding(places, table)
    one = rows.gather(1, picked)
    sums = space.zeros(BUCKETS, WIDTH).scatter_add(0, buckets, rows)
    return space.autograd.grad((sums * sums).mean() + (one * one).mean(), [table])[0]


def _torch_like(space: Any, wrap: Any, work: Any, arrays: list[np.ndarray], slope: bool) -> Starter:
    def start() -> Call:
        operands = [space.from_numpy(array) for array in arrays]
        operands[0].requires_grad_(slope)
        step = wrap(lambda *operands: work(space, *operands))
        return lambda: step(*operands)

    return start


def _with_jax(jax: Any, name: str) -> Callable[..., Any]:
    jnp = jax.numpy

    def loss(table: Any, places: Any, buckets: Any, picked: Any) -> Any:
        rows = table[places]
        one = jnp.take_along_axis(rows, picked, axis=1)
        sums = jnp.zeros((BUCKETS, WIDTH)).at[buckets[:, 0]].add(rows)
        return (sums * sums).mean() + (one * one).mean()

    known: dict[str, Callable[..., Any]] = {
        "_sort": lambda x: jnp.sort(x, axis=-1),
        "_topk": lambda x: jax.lax.top_k(x, COUNT)[0],
        "_cumsum": lambda x: jnp.cumsum(x, axis=-1),
        "_lookup": jax.grad(loss),
    }
    return jax.jit(known[name])


def workloads(peers: Peers) -> list[Workload]:
    """Rows of 256 x 4096 sorted, their largest 50 and running sums; a table read by index."""
    x = [_random(ROWS, COLUMNS)]
    buckets = np.repeat(_places(BUCKETS, READ, 1), WIDTH, axis=1)
    table = [_random(TABLE, WIDTH), _places(TABLE, READ), buckets, _places(WIDTH, READ, 1)]
    kinds: list[tuple[str, Callable[..., Any], list[np.ndarray], bool]] = [
        ("sort", _sort, x, False),
        ("topk", _topk, x, False),
        ("cumsum", _cumsum, x, False),
        ("embedding + gather + scatter, fwd+bwd", _lookup, table, True),
    ]
    found = []
    for name, work, arrays, slope in kinds:
        contenders = {
            c: _torch_like(space, wrap, work, arrays, slope)
            for c, space, wrap in peers.torch_like()
        }
        if peers.jax is not None:
            def start(work: Any = work, arrays: Any = arrays) -> Call:
                run = _with_jax(peers.jax, work.__name__)
                operands = [peers.jax.numpy.asarray(array) for array in arrays]  # type: ignore
                return lambda: run(*operands).block_until_ready()

            contenders["jax.jit"] = start
        found.append(Workload(name, contenders))
    return found
