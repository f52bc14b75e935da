"""Collectives against PyTorch's over gloo, in the same processes, on the same inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.distributed.ranks import Ranks

pytestmark = pytest.mark.oracle

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "complex64"
)  # fmt: skip
SHAPES = ((), (1,), (0,), (5,), (3, 4), (1000,))


def _input(rank: int, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(100 * seed + rank)
    values = draw.integers(-3, 4, shape)
    if dtype == "uint8":
        values = abs(values)
    return np.asarray(values, np.float64)


def _of(library: Any, values: np.ndarray, dtype: str) -> Any:
    if dtype in ("bfloat16", "complex64") and library.__name__ == "torch":
        dtype = "float32"  # gloo moves neither; these small integers are the same in all
    return library.tensor(values.tolist()).reshape(values.shape).to(getattr(library, dtype))


def _numbers(tensor: Any) -> Any:
    return tuple(tensor.shape), tensor.tolist()


def _both(case: Any, *arguments: Any) -> tuple[Any, Any]:
    import torch
    import torch.distributed

    import tracejit
    import tracejit.distributed

    return tuple(
        case(library, library.distributed, *arguments) for library in (tracejit, torch)
    )  # type: ignore[return-value]


def _reductions(library: Any, dist: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    rank = dist.get_rank()
    found = []
    kinds = ["SUM", "PRODUCT", "MIN", "MAX"]
    if "complex" in dtype:
        kinds = ["SUM"]
    if "int" in dtype:
        kinds += ["BAND", "BOR", "BXOR"]
    for kind in kinds:
        op = getattr(dist.ReduceOp, kind)
        one = _of(library, _input(rank, shape, dtype), dtype)
        assert dist.all_reduce(one, op) is None
        found.append((kind, _numbers(one)))
        one = _of(library, _input(rank, shape, dtype), dtype)
        dist.reduce(one, 1, op)
        if rank == 1:
            found.append((kind, _numbers(one)))
    one = _of(library, _input(rank, shape, dtype), dtype)
    work = dist.all_reduce(one, async_op=True)
    assert work.wait()
    found.append(("async", _numbers(one), work.is_completed()))
    return found


def _movements(library: Any, dist: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    rank, size = dist.get_rank(), dist.get_world_size()
    own = _of(library, _input(rank, shape, dtype), dtype)
    found = []

    def blank() -> Any:
        return library.zeros_like(own)

    for root in range(size):
        one = own.clone()
        dist.broadcast(one, root)
        found.append(_numbers(one))
        parts = [blank() for _ in range(size)] if rank == root else None
        dist.gather(own, parts, dst=root)
        found += [_numbers(part) for part in parts or ()]
        given = [own + k for k in range(size)] if rank == root else None
        one = blank()
        dist.scatter(one, given, src=root)
        found.append(_numbers(one))
    parts = [blank() for _ in range(size)]
    dist.all_gather(parts, own)
    found += [_numbers(part) for part in parts]
    together = library.zeros((size, *shape), dtype=own.dtype)
    rows = list(together)
    dist.all_gather(rows, own)
    found.append(_numbers(together))
    if shape:
        joined = library.zeros((size * shape[0], *shape[1:]), dtype=own.dtype)
        dist.all_gather_into_tensor(joined, own)
        found.append(_numbers(joined))
        long = library.cat([own, own + 1])
        one = blank()
        dist.reduce_scatter_tensor(one, long)
        found.append(_numbers(one))
        other = library.zeros_like(long)
        dist.all_to_all_single(other, long)
        found.append(_numbers(other))
    one = blank()
    dist.reduce_scatter(one, [own, own + 1])
    found.append(_numbers(one))
    return found


def _messages(library: Any, dist: Any, shape: tuple[int, ...], dtype: str) -> list[Any]:
    rank = dist.get_rank()
    own = _of(library, _input(rank, shape, dtype), dtype)
    one = library.zeros_like(own)
    if rank == 0:
        dist.send(own, 1)
        sender = dist.recv(one, 1, tag=3)
    else:
        sender = dist.recv(one, 0)
        dist.send(own, 0, tag=3)
    found = [sender, _numbers(one)]
    batch = [
        dist.P2POp(dist.isend, own + 1, 1 - rank), dist.P2POp(dist.irecv, one, 1 - rank)
    ]  # fmt: skip
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return [*found, _numbers(one)]


def _strided(library: Any, dist: Any) -> list[Any]:
    rank = dist.get_rank()
    wide = library.arange(12.0).reshape(3, 4) * (rank + 1)
    found = []
    part = wide.t()
    dist.all_reduce(part)
    found.append(_numbers(wide))
    dist.broadcast(wide[:, 1], 1)
    found.append(_numbers(wide))
    return found


def _objects(library: Any, dist: Any) -> list[Any]:
    rank = dist.get_rank()
    found: list[Any] = [None, None]
    dist.all_gather_object(found, {"rank": rank, "long": "x" * (1000 * rank)})
    lists: Any = [rank, "a" * rank, None] if rank == 0 else [None] * 3
    dist.broadcast_object_list(lists, 0)
    gathered: Any = [None, None] if rank == 1 else None
    dist.gather_object((rank,), gathered, dst=1)
    one: list[Any] = [None]
    dist.scatter_object_list(one, [[1], "two"] if rank == 0 else None, src=0)
    if rank == 0:
        dist.send_object_list([1, {"b": 2}], 1)
        got: Any = None
    else:
        got = [None, None]
        dist.recv_object_list(got, 0)
    return [found, lists, gathered, one, got]


def _uneven(library: Any, dist: Any) -> list[Any]:
    rank = dist.get_rank()
    rows_in = [[1, 2], [3, 1]][rank]
    rows_out = [[1, 3], [2, 1]][rank]
    given = library.arange(2.0 * sum(rows_in)).reshape(-1, 2) + 100 * rank
    one = library.zeros(sum(rows_out), 2)
    dist.all_to_all_single(one, given, rows_out, rows_in)
    return [_numbers(one)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(with_gloo: Ranks, dtype: str) -> None:
    for shape in SHAPES:
        for ours, theirs in with_gloo(_both, _reductions, shape, dtype):
            assert ours == theirs


@pytest.mark.parametrize("dtype", DTYPES)
def test_movements(with_gloo: Ranks, dtype: str) -> None:
    for shape in SHAPES:
        for ours, theirs in with_gloo(_both, _movements, shape, dtype):
            assert ours == theirs


@pytest.mark.parametrize("dtype", DTYPES)
def test_messages(with_gloo: Ranks, dtype: str) -> None:
    for shape in ((), (1,), (5,), (3, 4)):
        for ours, theirs in with_gloo(_both, _messages, shape, dtype):
            assert ours == theirs


@pytest.mark.parametrize("case", [_strided, _objects, _uneven])
def test_others(with_gloo: Ranks, case: Any) -> None:
    for ours, theirs in with_gloo(_both, case):
        assert ours == theirs
