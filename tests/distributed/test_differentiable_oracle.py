"""Differentiable collectives, SyncBatchNorm and meshes against PyTorch's over gloo."""

from __future__ import annotations

from typing import Any

import pytest

from tests.distributed.ranks import Ranks
from tests.distributed.test_collectives_oracle import _both

pytestmark = pytest.mark.oracle


def _leaf(library: Any, rank: int, k: int = 0) -> Any:
    values = [[1.0 + rank, 2.0 - k], [0.5 * rank, 3.0]]
    return library.tensor(values, dtype=library.float64, requires_grad=True)


def _weighted(results: Any, rank: int) -> Any:
    if not isinstance(results, (tuple, list)):
        results = [results]
    return sum(((k + 1 + rank) * one.square()).sum() for k, one in enumerate(results))


def _functions(library: Any, dist: Any) -> list[Any]:
    import importlib

    F = importlib.import_module(f"{library.__name__}.distributed.nn.functional")
    rank, size = dist.get_rank(), dist.get_world_size()
    found = []
    calls = {
        "all_reduce": lambda x: F.all_reduce(x[0]),
        "broadcast": lambda x: F.broadcast(x[0], 1),
        "reduce": lambda x: F.reduce(x[0], 1),
        "all_gather": lambda x: F.all_gather(x[0]),
        "gather": lambda x: F.gather(x[0], 1),
        "scatter": lambda x: F.scatter(list(x), 1),
        "all_reduce product": lambda x: F.all_reduce(x[0], dist.ReduceOp.MAX),
        "reduce_scatter": lambda x: F.reduce_scatter(library.empty_like(x[0]), list(x)),
        "all_to_all": lambda x: F.all_to_all([library.empty_like(one) for one in x], list(x)),
        "all_to_all_single": lambda x: F.all_to_all_single(library.empty_like(x[0]), x[0]),
    }
    for name, call in calls.items():
        leaves = [_leaf(library, rank, k) for k in range(size)]
        result = call(leaves)
        loss = _weighted(result, rank)
        if name == "reduce" and rank != 1:
            loss = loss * 0  # elsewhere the result says nothing
        loss.backward()
        grads = [None if one.grad is None else one.grad.tolist() for one in leaves]
        found.append((name, float(loss), grads))
    return found


def _functional(library: Any, dist: Any) -> list[Any]:
    import importlib

    place = f"{library.__name__}.distributed"
    F = importlib.import_module(f"{place}._functional_collectives")
    mesh = importlib.import_module(f"{place}.device_mesh").init_device_mesh("cpu", (2,))
    rank, group = dist.get_rank(), dist.group.WORLD
    found = []
    calls = {
        "broadcast": lambda x: F.broadcast(x.detach(), 1, group),
        "all_reduce": lambda x: F.all_reduce(x, "sum", mesh),
        "all_reduce max": lambda x: F.all_reduce(x.detach(), "max", (mesh, 0)),
        "all_gather": lambda x: F.all_gather_single(x, 0, group),
        "all_gather columns": lambda x: F.all_gather_tensor(x, 1, mesh),
        "reduce_scatter": lambda x: F.reduce_scatter_single(x, "sum", 0, group),
        "reduce_scatter columns": lambda x: F.reduce_scatter_tensor(x, "sum", 1, mesh),
        "all_to_all": lambda x: F.all_to_all_single(x, None, None, group),
        "all_to_all parts": lambda x: F.all_to_all_single_autograd(
            library.cat([x, x])[: 2 + rank], *(([1, 1], [1, 1]) if rank == 0 else
                                               ([1, 2], [1, 2])), group),
        "permute": lambda x: F.permute_tensor(x.detach().reshape(-1), [1, 0], group),
    }  # fmt: skip
    for name, call in calls.items():
        leaf = _leaf(library, rank)
        result = F.wait_tensor(call(leaf))
        if result.requires_grad:
            _weighted(result, rank).backward()
        grad = None if leaf.grad is None else leaf.grad.tolist()
        plain = not isinstance(leaf, F.AsyncCollectiveTensor)
        found.append((name, result.tolist(), leaf.tolist(), grad, plain))
    return found


def _sync_norm(library: Any, dist: Any) -> list[Any]:
    rank = dist.get_rank()
    nn = library.nn
    library.manual_seed(0)
    layer = nn.SyncBatchNorm(3).double()
    plain = nn.BatchNorm1d(3).double()
    every = library.arange(24, dtype=library.float64).reshape(8, 3).sin()
    weights = library.arange(24, dtype=library.float64).reshape(8, 3).cos()
    rows = slice(0, 3) if rank == 0 else slice(3, 8)
    own, whole = every[rows].clone().requires_grad_(), every.clone().requires_grad_()
    (plain(whole) * weights).sum().backward()
    if library.__name__ == "torch":  # PyTorch's layer is for GPUs: one process stands for it
        out = plain(whole)[rows]
        return [
            plain.running_mean.tolist(), plain.running_var.tolist(), whole.grad[rows].tolist(),
            plain.weight.grad.tolist(), out.tolist(),
        ]  # fmt: skip
    (layer(own) * weights[rows]).sum().backward()
    dist.all_reduce(layer.weight.grad)
    out = layer(own)
    return [
        layer.running_mean.tolist(), layer.running_var.tolist(), own.grad.tolist(),
        layer.weight.grad.tolist(), out.tolist(),
    ]  # fmt: skip


def _mesh(library: Any, dist: Any) -> list[Any]:
    import importlib

    module = importlib.import_module(f"{library.__name__}.distributed.device_mesh")
    mesh = module.init_device_mesh("cpu", (1, 2), mesh_dim_names=("rows", "columns"))
    value = library.ones(1) * (dist.get_rank() + 1)
    dist.all_reduce(value, group=mesh.get_group("columns"))
    alone = library.ones(1) * (dist.get_rank() + 1)
    dist.all_reduce(alone, group=mesh.get_group(0))
    return [
        value.tolist(), alone.tolist(), tuple(mesh.shape), mesh.ndim, mesh.size(), mesh.size(1),
        mesh.get_coordinate(), mesh.get_local_rank("columns"), mesh["columns"].mesh.tolist(),
        list(mesh.mesh_dim_names),
    ]  # fmt: skip


def test_differentiable_collectives(with_gloo: Ranks) -> None:
    for ours, theirs in with_gloo(_both, _functions):
        assert ours == theirs


def test_collectives_that_leave_their_tensors_as_they_are(with_gloo: Ranks) -> None:
    for ours, theirs in with_gloo(_both, _functional):
        for one, other in zip(ours, theirs, strict=True):
            assert one == other


def test_batch_norm_over_processes_is_that_of_the_joined_batch(with_gloo: Ranks) -> None:
    for ours, theirs in with_gloo(_both, _sync_norm):
        for a, b in zip(ours, theirs, strict=True):
            assert a == pytest.approx(b, rel=1e-9) if not isinstance(a[0], list) else all(
                one == pytest.approx(other, rel=1e-9) for one, other in zip(a, b, strict=True)
            )


def test_meshes(with_gloo: Ranks) -> None:
    for ours, theirs in with_gloo(_both, _mesh):
        assert list(map(list_of, ours)) == list(map(list_of, theirs))


def list_of(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, list)) else value
