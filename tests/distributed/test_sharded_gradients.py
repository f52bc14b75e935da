"""ZeroRedundancyOptimizer(shard_gradients=True): each process keeps the gradients it updates."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

import tracejit
from tests.distributed.ranks import Ranks
from tests.distributed.test_data_parallel import _close, _data, _network, _own_rows
from tracejit import nn
from tracejit.distributed.optim import ZeroRedundancyOptimizer
from tracejit.nn.parallel import DistributedDataParallel as DDP

optim = tracejit.optim
STEPS = 20


def _train(model: Any, optimizer: Any, rows: slice, way: str, capture: bool = False) -> Any:
    """Take steps; return the parameters, the breaks and the replays."""

    def step(x: Any, y: Any) -> None:
        if way != "keeps every other":
            optimizer.zero_grad(set_to_none=way != "zeros")
        halves = list(zip(x.chunk(2), y.chunk(2))) if "accumulates" in way else [(x, y)]
        for k, (inputs, targets) in enumerate(halves):
            quiet = way == "accumulates quietly" and k == 0 and hasattr(model, "no_sync")
            with model.no_sync() if quiet else nullcontext():
                (((model(inputs) - targets) ** 2).mean() / len(halves)).backward()
        if way == "clips":
            clip = getattr(optimizer, "clip_grad_norm_", None)
            if clip is None:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            else:
                clip(0.1)
        optimizer.step()

    run = tracejit.script(step) if capture else step
    for k in range(STEPS):
        x, y = _data(k)
        if way == "keeps every other" and k % 2 == 0:
            optimizer.zero_grad()
        run(x[rows], y[rows])
    parameters = [p.detach().tolist() for p in model.parameters()]
    if not capture:
        return parameters, [], STEPS
    report = run.report()
    return parameters, [str(one) for one in report.breaks], report.cache_hits


WAYS = ["", "accumulates quietly", "accumulates", "keeps every other", "clips", "zeros"]


def _sharded(way: str, options: dict[str, Any], capture: bool, shard: bool = True) -> Any:
    model = DDP(_network(), bucket_cap_mb=0.0005, **options)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optim.Adam, lr=0.01, shard_gradients=shard
    )
    found = _train(model, optimizer, _own_rows(), way, capture)
    elements = sum(p.grad.numel() for p in model.parameters() if p.grad is not None)
    held = sum(one.flat.numel() for one in model.reducer.buckets if one.flat is not None)
    return [*found, elements, held]


def _expected(way: str) -> Any:
    model = _network()
    return _train(model, optim.Adam(model.parameters(), lr=0.01), slice(0, 8), way)[0]


@pytest.mark.parametrize("way", WAYS)
def test_it_learns_what_one_process_learns(two: Ranks, way: str) -> None:
    whole = sum(p.numel() for p in _network().parameters())
    found = two(_sharded, way, {}, False)
    assert found[0][0] == found[1][0]
    _close(found[0][0], _expected(way), 2e-6)
    assert sum(one[3] for one in found) == whole and all(one[4] == 0 for one in found)


@pytest.mark.full
@pytest.mark.parametrize("options", [{"find_unused_parameters": True}, {"static_graph": True},
                                     {"gradient_as_bucket_view": True}])  # fmt: skip
def test_with_options_of_the_module(two: Ranks, options: dict[str, Any]) -> None:
    found = two(_sharded, "", options, False)
    assert found[0][0] == found[1][0]
    _close(found[0][0], _expected(""), 2e-6)


@pytest.mark.parametrize(
    "way", [*WAYS[:2], *(pytest.param(way, marks=pytest.mark.full) for way in WAYS[2:])]
)
def test_captured(two: Ranks, way: str) -> None:
    for parameters, breaks, hits, _, _ in two(_sharded, way, {}, True):
        _close(parameters, _expected(way), 2e-6)
        assert breaks == [] and hits >= STEPS - 4, (way, hits)


def test_captured_in_stage_1(two: Ranks) -> None:
    for parameters, breaks, hits, elements, _ in two(_sharded, "clips", {}, True, False):
        _close(parameters, _expected("clips"), 2e-6)
        assert breaks == [] and hits >= STEPS - 4
        assert elements == sum(p.numel() for p in _network().parameters())


@pytest.mark.full
def test_four_processes(four: Ranks) -> None:
    whole = sum(p.numel() for p in _network().parameters())
    for capture in (False, True):
        found = four(_sharded, "clips", {}, capture)
        assert all(one[0] == found[0][0] for one in found)
        _close(found[0][0], _expected("clips"), 2e-6)
        assert sum(one[3] for one in found) == whole
        assert max(one[3] for one in found) == 256  # the largest parameter, alone


def _plain_step_after_captured() -> Any:
    """Return parameters after steps of which every third is plain and keeps the gradients."""
    found = []
    for capture in (False, True):
        model = DDP(_network())
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), optim.SGD, lr=0.05, shard_gradients=True
        )

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> None:
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()

        run = tracejit.script(step) if capture else step
        for k in range(9):
            x, y = _data(k)
            if k % 3 != 2:
                optimizer.zero_grad()
            (step if k % 3 == 2 else run)(x[_own_rows()], y[_own_rows()])
        found.append([p.detach().tolist() for p in model.parameters()])
    return found


def test_plain_and_captured_steps_mix(two: Ranks) -> None:
    for plain, captured in two(_plain_step_after_captured):
        _close(captured, plain)


def _refused() -> list[str]:
    found = []
    plain, hooked = nn.Linear(2, 2), DDP(nn.Linear(2, 2))
    hooked.register_comm_hook(None, lambda state, bucket: None)
    sharded = DDP(nn.Linear(2, 2))
    ZeroRedundancyOptimizer(sharded.parameters(), optim.SGD, lr=0.1, shard_gradients=True)
    for call in (
        lambda: ZeroRedundancyOptimizer(
            plain.parameters(), optim.SGD, lr=0.1, shard_gradients=True
        ),
        lambda: ZeroRedundancyOptimizer(
            hooked.parameters(), optim.SGD, lr=0.1, shard_gradients=True
        ),
        lambda: sharded.register_comm_hook(None, print),
    ):
        try:
            call()
        except RuntimeError as error:
            found.append(str(error))
    return found


def test_refusals(two: Ranks) -> None:
    for texts in two(_refused):
        assert "parameter 0 is in no DistributedDataParallel" in texts[0]
        assert "communication hook" in texts[1] and "sharded" in texts[2]
