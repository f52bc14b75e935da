"""ZeroRedundancyOptimizer beside PyTorch's over gloo: the same parameters, state and errors."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.distributed.ranks import Ranks
from tests.distributed.test_collectives_oracle import _both

pytestmark = pytest.mark.oracle


def _array(library: Any, *shape: int, seed: int) -> Any:
    return library.from_numpy(np.random.RandomState(seed).randn(*shape))


def _network(library: Any) -> Any:
    nn = library.nn
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Linear(16, 2)).double()
    with library.no_grad():
        for seed, one in enumerate(model.parameters()):
            one.copy_(_array(library, *one.shape, seed=seed) * 0.3)
    return model


def _modules(library: Any) -> tuple[Any, Any]:
    name = f"{library.__name__}.distributed.optim"
    parallel = importlib.import_module(f"{library.__name__}.nn.parallel")
    return importlib.import_module(name), parallel.DistributedDataParallel


def _steps(library: Any, model: Any, optimizer: Any, rank: int, steps: range) -> None:
    for step in steps:
        x, y = _array(library, 8, 6, seed=step), _array(library, 8, 2, seed=step + 100)
        rows = slice(4 * rank, 4 * rank + 4)
        optimizer.zero_grad()
        ((model(x[rows]) - y[rows]) ** 2).mean().backward()
        optimizer.step()


def _plain(value: Any) -> Any:
    """Return lists and numbers in place of tensors."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _learned(library: Any, dist: Any) -> list[Any]:
    optim, DDP = _modules(library)
    rank = dist.get_rank()
    model = DDP(_network(library))
    first, *rest, last = model.parameters()
    optimizer = optim.ZeroRedundancyOptimizer(
        [{"params": [first], "lr": 0.02}, {"params": rest}], library.optim.AdamW, lr=0.01
    )
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    _steps(library, model, optimizer, rank, range(6))
    scheduler.step()
    optimizer.add_param_group({"params": [last], "lr": 0.5, "weight_decay": 0.0})
    _steps(library, model, optimizer, rank, range(6, 10))
    optimizer.consolidate_state_dict(to=1)
    found: list[Any] = [_plain(list(model.parameters()))]
    found.append([len(group["params"]) for group in optimizer.optim.param_groups])
    try:
        state = optimizer.state_dict()
        found.append([
            {name: group[name] for name in ("lr", "weight_decay", "params")}
            for group in state["param_groups"]
        ])  # fmt: skip
        found.append({
            str(k): {name: _plain(one) for name, one in sorted(kept.items()) if name != "step"}
            for k, kept in sorted(state["state"].items())
        })  # fmt: skip
    except RuntimeError as error:
        found.append(str(error))
    return found


def _near(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, one in theirs.items():
            _near(ours[key], one)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            _near(one, other)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    else:
        assert ours == theirs


def test_it_learns_what_pytorch_learns(with_gloo: Ranks) -> None:
    for ours, theirs in with_gloo(_both, _learned):
        _near(ours, theirs)
