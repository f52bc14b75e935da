"""ZeroRedundancyOptimizer: the parameters of one optimizer, a part of its state."""

from __future__ import annotations

import io
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks
from tests.distributed.test_data_parallel import _close, _data, _network, _own_rows
from tracejit.distributed.algorithms import Join
from tracejit.distributed.optim import ZeroRedundancyOptimizer
from tracejit.nn.parallel import DistributedDataParallel as DDP

optim = tracejit.optim
CLASSES = {"Adam": {"lr": 0.01}, "SGD": {"lr": 0.05, "momentum": 0.9}, "AdamW": {"lr": 0.01}}


def _steps(model: Any, optimizer: Any, rows: slice, first: int, last: int) -> None:
    for step in range(first, last):
        x, y = _data(step)
        optimizer.zero_grad()
        ((model(x[rows]) - y[rows]) ** 2).mean().backward()
        optimizer.step()


def _parameters(model: Any) -> list[Any]:
    return [p.detach().tolist() for p in model.parameters()]


def _spread(name: str) -> list[Any]:
    model = DDP(_network())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), getattr(optim, name), **CLASSES[name]
    )
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10, 0.5)
    for step in range(30):
        _steps(model, optimizer, _own_rows(), step, step + 1)
        scheduler.step()
    elements = sum(
        one.numel() for state in optimizer.state.values() for one in state.values()
        if isinstance(one, tracejit.Tensor)
    )  # fmt: skip
    optimizer.consolidate_state_dict(to=1)
    whole = optimizer.state_dict() if dist.get_rank() == 1 else None
    return [_parameters(model), elements, whole]


def _plain(name: str) -> tuple[Any, Any]:
    model = _network()
    optimizer = getattr(optim, name)(model.parameters(), **CLASSES[name])
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10, 0.5)
    for step in range(30):
        _steps(model, optimizer, slice(0, 8), step, step + 1)
        scheduler.step()
    return model, optimizer


@pytest.mark.parametrize("name", CLASSES)
def test_it_learns_what_the_plain_optimizer_learns(two: Ranks, name: str) -> None:
    model, optimizer = _plain(name)
    first, second = two(_spread, name)
    assert first[0] == second[0]
    _close(first[0], _parameters(model), 2e-6)
    whole = second[2]
    expected = optimizer.state_dict()
    assert whole["param_groups"] == expected["param_groups"]
    assert list(whole["state"]) == list(expected["state"])
    for k, state in expected["state"].items():
        for key, value in state.items():
            found = whole["state"][k][key]
            if isinstance(value, tracejit.Tensor):
                assert tracejit.allclose(found, value, rtol=1e-4, atol=1e-7)
            else:
                assert found == value


def test_the_state_of_four_processes_is_a_quarter(four: Ranks) -> None:
    _, optimizer = _plain("Adam")
    whole = sum(
        one.numel() for state in optimizer.state.values() for one in state.values()
        if isinstance(one, tracejit.Tensor)
    )  # fmt: skip
    shares = [found[1] for found in four(_spread, "Adam")]
    assert sum(shares) == whole and min(shares) > 0


def _resumes() -> list[Any]:
    model = DDP(_network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.01)
    _steps(model, optimizer, _own_rows(), 0, 5)
    optimizer.consolidate_state_dict()
    saved: list[Any] = [None]
    if dist.get_rank() == 0:
        file = io.BytesIO()
        tracejit.save([model.state_dict(), optimizer.state_dict()], file)
        saved = [file.getvalue()]
    dist.broadcast_object_list(saved, 0)
    _steps(model, optimizer, _own_rows(), 5, 10)
    again = DDP(_network())
    other = ZeroRedundancyOptimizer(again.parameters(), optim.Adam, lr=0.5)
    weights, state = tracejit.load(io.BytesIO(saved[0]))
    again.load_state_dict(weights)
    other.load_state_dict(state)
    _steps(again, other, _own_rows(), 5, 10)
    return [_parameters(model), _parameters(again), other.param_groups[0]["lr"]]


def test_training_goes_on_from_a_saved_state(two: Ranks) -> None:
    for model, again, rate in two(_resumes):
        assert model == again and rate == 0.01


def _saves() -> Any:
    model = DDP(_network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.01)
    _steps(model, optimizer, _own_rows(), 0, 5)
    optimizer.consolidate_state_dict()
    return (model.state_dict(), optimizer.state_dict()) if dist.get_rank() == 0 else None


def _goes_on(weights: Any, state: Any, shard: bool) -> list[Any]:
    model = DDP(_network())
    model.load_state_dict(weights)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optim.Adam, lr=0.5, shard_gradients=shard
    )
    optimizer.load_state_dict(state)
    _steps(model, optimizer, _own_rows(), 5, 10)
    return _parameters(model)


def test_state_of_four_processes_goes_on_in_two_and_in_one(four: Ranks, two: Ranks) -> None:
    weights, state = four(_saves)[0]
    expected = _network()
    _steps(expected, optim.Adam(expected.parameters(), lr=0.01), slice(0, 8), 0, 10)
    for shard in (False, True):
        for found in two(_goes_on, weights, state, shard):
            _close(found, _parameters(expected), 2e-6)
    alone = _network()
    alone.load_state_dict({name.removeprefix("module."): one for name, one in weights.items()})
    optimizer = optim.Adam(alone.parameters(), lr=0.5)
    optimizer.load_state_dict(state)
    _steps(alone, optimizer, slice(0, 8), 5, 10)
    _close(_parameters(alone), _parameters(expected), 2e-6)


def _uneven() -> list[Any]:
    """Return parameters after steps of which one process has more."""
    model = DDP(_network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1, momentum=0.9)
    with Join([model, optimizer]):
        _steps(model, optimizer, _own_rows(), 0, 3 + 2 * dist.get_rank())
    return _parameters(model)


def test_uneven_inputs(two: Ranks) -> None:
    expected = _network()
    optimizer = optim.SGD(expected.parameters(), lr=0.1, momentum=0.9)
    _steps(expected, optimizer, slice(0, 8), 0, 3)
    for step in (3, 4):  # rank 1 alone has inputs; the means divide by both
        x, y = _data(step)
        optimizer.zero_grad()
        (((expected(x[4:]) - y[4:]) ** 2).mean() / 2).backward()
        optimizer.step()
    first, second = two(_uneven)
    assert first == second
    _close(first, _parameters(expected), 2e-6)


def _refused() -> list[str]:
    found = []
    model = tracejit.nn.Linear(1, 1)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1)
    for call in (
        optimizer.state_dict,
        lambda: ZeroRedundancyOptimizer(
            model.parameters(), optim.SGD, overlap_with_ddp=True, lr=0.1
        ),
    ):
        try:
            call()
        except (RuntimeError, NotImplementedError) as error:
            found.append(str(error))
    return found


def test_refusals(two: Ranks) -> None:
    for texts in two(_refused):
        assert "consolidate_state_dict" in texts[0] and "overlap_with_ddp=True" in texts[1]
