"""Communication hooks that approximate or postpone means, groups cut out of groups, levels."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks
from tests.distributed.test_data_parallel import _close, _data, _network, _own_rows
from tracejit import nn
from tracejit.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    powerSGD_hook,
    register_ddp_comm_hook,
)
from tracejit.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from tracejit.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from tracejit.distributed.optim import PostLocalSGDOptimizer
from tracejit.nn.parallel import DistributedDataParallel as DDP


def _low_rank(batched: bool, rank: int) -> Any:
    """Return gradients by PowerSGD and the means: one example each, so sums have rank 2."""
    hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
    state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=2, min_compression_rate=1)
    state = pickle.loads(pickle.dumps(state))
    found = []
    for with_hook in (False, True):
        tracejit.manual_seed(0)
        model = DDP(nn.Linear(12, 9, bias=False).double())
        if with_hook:
            model.register_comm_hook(state, hook)
        grads = []
        for step in range(6):
            model.zero_grad()
            x = tracejit.arange(12, dtype=tracejit.float64) * (1 + dist.get_rank() + step)
            x = x.sin().reshape(1, 12)
            (model(x) ** 2).mean().backward()
            grads.append(model.module.weight.grad.tolist())
        found.append(grads)
    return [*found, state.compression_stats()[0]]


def test_power_sgd_finds_sums_of_low_rank(two: Ranks) -> None:
    (means, found, rate), (_, other, _) = two(_low_rank, False, 2)
    assert found == other and rate > 2
    _close(found, means, 1e-9)
    (means, found, rate), (_, other, _) = two(_low_rank, False, 1)
    assert found == other and found[:2] == means[:2] and found[3] != means[3] and rate > 4
    # what one step leaves out comes in the next ones: sums stay near
    sums = [sum(tracejit.tensor(one) for one in part).tolist() for part in (found, means)]
    _close(sums[:1], sums[1:], 0.5)


def test_power_sgd_of_a_whole_bucket(two: Ranks) -> None:
    (means, found, _), (_, other, _) = two(_low_rank, True, 2)
    assert found == other and found[:2] == means[:2] and found[3] != means[3]


def _local_steps(subgroup: bool) -> Any:
    alone = dist.new_subgroups(1)[0] if subgroup else None
    model = DDP(_network())
    model.register_comm_hook(PostLocalSGDState(None, alone, 3), post_localSGD_hook)
    plain = tracejit.optim.SGD(model.parameters(), lr=0.1)
    optimizer = PostLocalSGDOptimizer(plain, PeriodicModelAverager(2, warmup_steps=4))
    found = []
    for step in range(6):
        x, y = _data(step)
        optimizer.zero_grad()
        ((model(x[_own_rows()]) - y[_own_rows()]) ** 2).mean().backward()
        optimizer.step()
        found.append(model.module[0].weight.tolist())
    return found, optimizer.state_dict()["step"]


def test_local_sgd(two: Ranks) -> None:
    (first, step), (second, _) = two(_local_steps, True)
    same = [one == other for one, other in zip(first, second)]
    assert same == [True, True, True, False, True, False] and step == 6
    (first, _), (second, _) = two(_local_steps, False)  # all processes are of one host
    assert first == second


def _by_name() -> Any:
    found = []
    for kind in ("NOOP", "FP16_COMPRESS", "ALLREDUCE", "QUANTIZE_PER_TENSOR"):
        model = DDP(nn.Linear(2, 1, bias=False))
        register_ddp_comm_hook(DDPCommHookType[kind], model)
        try:
            model(tracejit.ones(1, 2) * (1 + dist.get_rank())).sum().backward()
            found.append(model.module.weight.grad.tolist())
        except NotImplementedError as error:
            found.append(str(error))
    return found


def test_hooks_by_name(two: Ranks) -> None:
    for rank, found in enumerate(two(_by_name)):
        mean = [[1.5, 1.5]]
        assert found[:3] == [[[1.0 + rank] * 2], mean, mean] and "quantization" in found[3]


def _split() -> Any:
    whole = dist.new_group([3, 2, 1, 0], sort_ranks=False, timeout=dist.default_pg_timeout / 2)
    part = dist.split_group(whole, [[0, 1], [2]])
    if part is None:
        return None
    x = tracejit.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x, group=part)
    return x.item(), dist.get_process_group_ranks(part), part.rank(), part.timeout == whole.timeout


@pytest.mark.full
def test_groups_cut_out_of_groups(four: Ranks) -> None:
    assert four(_split) == [
        None, (2.0, [1], 0, True), (7.0, [3, 2], 1, True), (7.0, [3, 2], 0, True)
    ]  # fmt: skip


def test_levels_and_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    dist.set_debug_level(dist.DebugLevel.OFF)
    assert dist.get_debug_level().name == "OFF"
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(RuntimeError, match="OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()
    assert str(dist.BackendConfig(dist.Backend("gloo"))) == "cpu:gloo,cuda:gloo"
    assert dist.is_backend_available("cpu:mpi") == dist.is_mpi_available()
    with pytest.raises(ValueError, match="Duplicate"):
        dist.BackendConfig(dist.Backend("cpu:gloo,cpu:mpi"))
    with pytest.raises(ValueError, match="not registered"):
        dist.get_default_backend_for_device("meta")
    with pytest.raises(NotImplementedError, match="ProcessGroupGloo"):
        dist.ProcessGroupGloo()
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp.RedOpType)
