"""DistributedDataParallel: what two processes learn is what one learns on the joined batch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks
from tracejit import nn
from tracejit.distributed.algorithms.ddp_comm_hooks import default_hooks
from tracejit.nn.parallel import DistributedDataParallel as DDP

STEPS = 50


def _network(norm: bool = False) -> Any:
    tracejit.manual_seed(3)
    layers: list[Any] = [nn.Linear(6, 16)]
    if norm:
        layers.append(nn.BatchNorm1d(16))
    return nn.Sequential(*layers, nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))


def _data(step: int) -> tuple[Any, Any]:
    generator = tracejit.Generator().manual_seed(step)
    return (tracejit.randn(8, 6, generator=generator), tracejit.randn(8, 2, generator=generator))


def _train(model: Any, rows: slice, accumulate: int = 1, steps: int = STEPS,
           parameters: Any = None) -> list[Any]:  # fmt: skip
    optimizer = tracejit.optim.Adam(parameters or model.parameters(), lr=0.01)
    for step in range(steps):
        inputs, targets = _data(step)
        inputs, targets = inputs[rows], targets[rows]
        optimizer.zero_grad()
        parts = list(zip(inputs.chunk(accumulate), targets.chunk(accumulate)))
        for k, (x, y) in enumerate(parts):
            last = k == len(parts) - 1
            quiet = model.no_sync() if not last and hasattr(model, "no_sync") else nullcontext()
            with quiet:
                (((model(x) - y) ** 2).mean() / accumulate).backward()
        optimizer.step()
    return [p.detach().tolist() for p in model.parameters()]


def _own_rows() -> slice:
    half = 8 // dist.get_world_size()
    return slice(half * dist.get_rank(), half * (dist.get_rank() + 1))


def _learns(options: dict[str, Any], accumulate: int, hook: str | None) -> list[Any]:
    model = DDP(_network(), bucket_cap_mb=0.0005, **options)
    if hook is not None:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    return _train(model, _own_rows(), accumulate)


def _close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    for one, other in zip(found, expected, strict=True):
        a, b = tracejit.tensor(one), tracejit.tensor(other)
        assert float((a - b).abs().max()) <= tolerance * max(1.0, float(b.abs().max()))


@pytest.mark.parametrize(
    "options, accumulate, hook",
    [
        ({}, 1, None),
        ({"gradient_as_bucket_view": True}, 1, None),
        ({"find_unused_parameters": True}, 1, None),
        ({"static_graph": True}, 1, None),
        ({}, 2, None),
        ({"gradient_as_bucket_view": True}, 2, None),
        ({}, 1, "allreduce_hook"),
    ],
)
def test_learns_what_one_process_learns(
    two: Ranks, options: dict[str, Any], accumulate: int, hook: str | None
) -> None:
    expected = _train(_network(), slice(0, 8))
    first, second = two(_learns, options, accumulate, hook)
    assert first == second  # bit for bit
    _close(first, expected)


def test_four_processes_learn_the_same(four: Ranks) -> None:
    found = four(_learns, {}, 1, None)
    assert found[0] == found[1] == found[2] == found[3]
    _close(found[0], _train(_network(), slice(0, 8)))


@pytest.mark.parametrize("hook, tolerance", [("fp16_compress_hook", 0.05),
                                             ("bf16_compress_hook", 0.2)])  # fmt: skip
def test_hooks_that_compress(two: Ranks, hook: str, tolerance: float) -> None:
    first, second = two(_learns, {}, 1, hook)
    assert first == second
    _close(first, _train(_network(), slice(0, 8)), tolerance)


class _Branches(nn.Module):
    """One of two layers is used, another one never."""

    def __init__(self) -> None:
        super().__init__()
        tracejit.manual_seed(1)
        self.left, self.right, self.never = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Any, left: bool) -> Any:
        return (self.left if left else self.right)(x)


def _unused() -> list[Any]:
    model = DDP(_Branches(), find_unused_parameters=True)
    x = tracejit.ones(1, 2) * (dist.get_rank() + 1)
    found = []
    for step in range(3):
        model.zero_grad()
        # step 0: both left; 1: rank 0 left, rank 1 right; 2: both right
        model(x, step == 0 or (step == 1 and dist.get_rank() == 0)).sum().backward()
        module = model.module
        found.append([
            None if p.grad is None else p.grad.tolist()
            for p in (module.left.weight, module.right.weight, module.never.weight)
        ])  # fmt: skip
    return found


def test_unused_parameters(two: Ranks) -> None:
    first, second = two(_unused)
    both, ones, twos = [[1.5, 1.5]] * 2, [[0.5, 0.5]] * 2, [[1.0, 1.0]] * 2
    assert first == second == [[both, None, None], [ones, twos, None], [None, both, None]]


def _forgets() -> str:
    model = DDP(_Branches())
    x = tracejit.ones(1, 2)
    model(x, True).sum().backward()
    try:
        model(x, True)
    except RuntimeError as error:
        return str(error)
    return ""


def test_an_unused_parameter_is_named(two: Ranks) -> None:
    for text in two(_forgets):
        assert "right.weight" in text and "never.bias" in text and "left" not in text
        assert "find_unused_parameters=True" in text


def _differs() -> list[str]:
    rank, found = dist.get_rank(), []
    for make in (
        lambda: DDP(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2 + rank))),
        lambda: DDP(nn.Sequential(nn.Linear(2, 2), *[nn.Linear(2, 2)] * rank), init_sync=False),
        lambda: DDP(_network(), bucket_cap_mb=0.0001 if rank else 25),
        lambda: DDP(_network(), find_unused_parameters=rank == 1),
    ):
        try:
            make()
        except RuntimeError as error:
            found.append(str(error))
    return found


def test_modules_that_differ_are_an_error_in_all_processes(two: Ranks) -> None:
    first, second = two(_differs)
    assert first == second
    assert "parameter 1.weight (2, 2)" in first[0] and "parameter 1.weight (3, 2)" in first[0]
    assert "find_unused_parameters=False in rank 0, parameter 1.weight" in first[1]
    assert "parameter 0.weight in bucket 0 in rank 0" in first[2]
    assert "find_unused_parameters=False in rank 0, find_unused_parameters=True" in first[3]


class _Words(nn.Module):
    """Layers with sparse gradients, one of which few processes use, beside a dense one."""

    def __init__(self) -> None:
        super().__init__()
        tracejit.manual_seed(5)
        self.words = nn.Embedding(10, 3, sparse=True)
        self.rare = nn.Embedding(10, 3, sparse=True)
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        found, chosen = self.words(x[:, 0]), x[:, 1:] > 0
        if bool(chosen.any()):
            found = found + self.rare(x[:, 1]) * chosen
        return self.out(found)


def _sparse_steps(model: Any, rows: slice) -> Any:
    module = getattr(model, "module", model)
    sparse = tracejit.optim.SGD([module.words.weight, module.rare.weight], lr=0.5)
    dense = tracejit.optim.SGD(module.out.parameters(), lr=0.1)
    for step in range(6):
        x = tracejit.tensor([[k * step % 10, (k == 0) * step % 3] for k in range(4)])
        sparse.zero_grad()
        dense.zero_grad()
        model(x[rows]).square().mean().backward()
        sparse.step()
        dense.step()
    grad = module.words.weight.grad
    return [p.detach().tolist() for p in module.parameters()], grad.is_coalesced()


def _sparse() -> Any:
    model = DDP(_Words(), find_unused_parameters=True)
    return _sparse_steps(model, slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2))


def test_sparse_gradients(two: Ranks) -> None:
    expected, _ = _sparse_steps(_Words(), slice(0, 4))
    first, second = two(_sparse)
    assert first == second and first[1]
    _close(first[0], expected)


def _sparse_refused() -> str:
    model = DDP(nn.Embedding(4, 2))
    model.module.sparse = True  # DistributedDataParallel has looked already
    try:
        model(tracejit.tensor([1])).sum().backward()
    except RuntimeError as error:
        return str(error)
    return ""


def test_sparse_gradients_of_a_dense_layer(two: Ranks) -> None:
    assert all("the gradient of weight is sparse" in text for text in two(_sparse_refused))


def _starts_alike() -> list[Any]:
    tracejit.manual_seed(dist.get_rank())
    model = DDP(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    model(tracejit.randn(4, 2) + 10 * dist.get_rank())
    model(tracejit.randn(4, 2))  # takes the buffers of rank 0 first
    return [
        model.module[0].weight.tolist(), model.module[1].num_batches_tracked.item(),
        list(model.state_dict()),
    ]  # fmt: skip


def test_state_of_rank_0_is_taken(two: Ranks) -> None:
    first, second = two(_starts_alike)
    assert first == second
    assert first[2][0] == "module.0.weight"


def _uneven(divide_by_all: bool) -> list[Any]:
    tracejit.manual_seed(0)
    model = DDP(nn.Linear(1, 1, bias=False))
    with tracejit.no_grad():
        model.module.weight.fill_(1.0)
    optimizer = tracejit.optim.SGD(model.parameters(), lr=1.0)
    count = 3 if dist.get_rank() == 0 else 5
    seen = []
    with model.join(divide_by_initial_world_size=divide_by_all):
        for _ in range(count):
            optimizer.zero_grad()
            model(tracejit.ones(1, 1)).sum().backward()
            seen.append(model.module.weight.grad.item())
            optimizer.step()
    return [seen, model.module.weight.item()]


def test_uneven_inputs(two: Ranks) -> None:
    first, second = two(_uneven, True)
    assert first == [[1.0] * 3, -3.0] and second == [[1.0] * 3 + [0.5] * 2, -3.0]
    first, second = two(_uneven, False)
    assert first == [[1.0] * 3, -4.0] and second == [[1.0] * 5, -4.0]


def _throws() -> str:
    model = DDP(nn.Linear(1, 1))
    try:
        with model.join(throw_on_early_termination=True):
            for _ in range(1 + dist.get_rank()):
                model(tracejit.ones(1, 1)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return ""


def test_early_ends_can_be_errors(two: Ranks) -> None:
    assert all("exhausted inputs" in text for text in two(_throws))


def _pickles() -> list[Any]:
    model = DDP(_network())
    again = pickle.loads(pickle.dumps(model))
    copied = copy.deepcopy(model)
    x = tracejit.ones(1, 6) * (dist.get_rank() + 1)
    grads = []
    for one in (model, again, copied):
        one(x).sum().backward()
        grads.append(one.module[0].weight.grad.tolist())
    return [grads, list(again.state_dict()) == list(model.state_dict())]


def test_pickles_and_copies(two: Ranks) -> None:
    first, second = two(_pickles)
    assert first == second and first[1]
    assert first[0][0] == first[0][1] == first[0][2]


def _refusals() -> list[str]:
    found = []
    frozen = nn.Linear(1, 1).requires_grad_(False)
    calls: list[Callable[[], Any]] = [
        lambda: DDP(frozen), lambda: DDP(nn.Linear(1, 1), device_ids=[0]),
        lambda: DDP(nn.Linear(1, 1)).register_comm_hook(None, 3),
    ]  # fmt: skip
    for call in calls:
        try:
            call()
        except (RuntimeError, ValueError, TypeError) as error:
            found.append(type(error).__name__)
    return found


def test_refusals(two: Ranks) -> None:
    assert two(_refusals) == [["RuntimeError", "ValueError", "TypeError"]] * 2
