"""Captured functions with collectives: one program, the results of plain calls, nothing stale."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import tracejit
import tracejit.distributed as dist
from tests.distributed.ranks import Ranks
from tests.distributed.test_data_parallel import _close, _data, _network, _own_rows
from tracejit import nn
from tracejit.config import flags
from tracejit.distributed.algorithms.ddp_comm_hooks import default_hooks
from tracejit.distributed.nn import functional
from tracejit.nn.parallel import DistributedDataParallel as DDP

op = dist.ReduceOp


def _sum(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def _mean_and_product(x: Any) -> Any:
    y, z = x.clone(), x + 1
    dist.all_reduce(y, op.AVG)
    dist.all_reduce(z, op.PRODUCT)
    return y, z


def _of_the_last(x: Any) -> Any:
    y = x * (dist.get_rank() + 1)
    dist.broadcast(y, dist.get_world_size() - 1)
    return y.sum()


def _to_one(x: Any) -> Any:
    y = x + dist.get_rank()
    dist.reduce(y, 1, op.MAX)
    return y


def _gathered(x: Any) -> Any:
    whole = x.new_empty((dist.get_world_size() * x.shape[0], *x.shape[1:]))
    dist.all_gather_into_tensor(whole, x * 3)
    parts = [tracejit.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return whole, parts[0] - parts[-1]


def _scattered(x: Any) -> Any:
    parts = [x + k for k in range(dist.get_world_size())]
    y = tracejit.empty_like(x)
    dist.reduce_scatter(y, parts)
    z = tracejit.empty_like(x)
    dist.reduce_scatter_tensor(z, tracejit.cat(parts))
    return y, z


def _turned(x: Any) -> Any:
    y = x.t()
    dist.all_reduce(y)
    return x, y.contiguous()


def _nobody_reads(x: Any) -> Any:
    dist.all_reduce(x * 2)
    dist.barrier()
    return x + 1


def _twice_the_same(x: Any) -> Any:
    y, z = x + 1, x + 1
    dist.all_reduce(y)
    dist.all_reduce(z)
    dist.all_reduce(z)
    return y, z


def _in_place(x: Any) -> Any:
    dist.all_reduce(x)
    x += 1
    dist.broadcast(x, 0)
    return x.sum()


def _later(x: Any) -> Any:
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    z = (x + 1) * 3
    work.wait()
    return y * z


def _part(x: Any) -> Any:
    y = x.clone()
    dist.all_reduce(y[1:])
    return y


PROGRAMS = [_sum, _mean_and_product, _of_the_last, _to_one, _gathered, _scattered, _turned,
            _nobody_reads, _twice_the_same, _in_place, _later, _part]  # fmt: skip
SHAPES = [(4, 3), (1, 1), (0, 2), (2, 5)]


def _tensors(found: Any) -> list[Any]:
    return [one.tolist() for one in found] if isinstance(found, tuple) else [found.tolist()]


def _as_plain(function: Callable[..., Any], options: dict[str, Any], kind: Any) -> Any:
    """Call plain and captured functions in turn; return what differs, and the breaks."""
    captured = tracejit.script(function, **options)
    wrong = []
    for shape in (*SHAPES, *SHAPES):
        x = (tracejit.arange(shape[0] * shape[1]).reshape(shape) + dist.get_rank()).to(kind)
        one, other = x.clone(), x.clone()
        expected, found = _tensors(function(one)), _tensors(captured(other))
        if (expected, one.tolist()) != (found, other.tolist()):
            wrong.append((shape, expected, found))
    report = captured.report()
    return wrong, [str(each) for each in report.breaks], report.cache_hits


@pytest.mark.parametrize("function", PROGRAMS)
def test_results_are_those_of_plain_calls(two: Ranks, function: Callable[..., Any]) -> None:
    for wrong, breaks, hits in two(_as_plain, function, {}, tracejit.float32):
        assert (wrong, breaks) == ([], []) and hits >= len(SHAPES)


@pytest.mark.parametrize("options", [{"mode": "python"}, {"mode": "graph"}, {"numerics": "eager"}])
def test_other_modes(two: Ranks, options: dict[str, Any]) -> None:
    for function in PROGRAMS:
        for wrong, breaks, _ in two(_as_plain, function, options, tracejit.float32):
            assert (wrong, breaks) == ([], []), function


@pytest.mark.parametrize("kind", [
    "bfloat16", "int64", *(pytest.param(one, marks=pytest.mark.full)
                           for one in ("float64", "float16", "int32", "complex64")),
])  # fmt: skip
def test_other_dtypes(two: Ranks, kind: str) -> None:
    for function in (_sum, _gathered, _scattered, _in_place, _later):
        for wrong, breaks, _ in two(_as_plain, function, {}, getattr(tracejit, kind)):
            assert (wrong, breaks) == ([], []), function


def test_more_ranks_than_cores(four: Ranks) -> None:
    for function in PROGRAMS:
        for wrong, breaks, _ in four(_as_plain, function, {}, tracejit.float32):
            assert (wrong, breaks) == ([], []), function


def _groups() -> Any:
    """Return results of a program whose group changes, and of one whose group goes."""
    even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
    own = even if dist.get_rank() % 2 == 0 else odd
    everyone = dist.new_group([0, 1, 2, 3])

    def total(x: Any, group: Any) -> Any:
        y = x.clone()
        dist.all_reduce(y, group=group)
        return y

    captured = tracejit.script(total)
    x = tracejit.tensor([float(dist.get_rank())])
    found = [captured(x, group).item() for group in (own, everyone, own, None, everyone, own)]
    dist.destroy_process_group(everyone)
    try:
        captured(x, everyone)
        told = ""
    except ValueError as error:
        told = str(error)
    return found, told, [str(one) for one in captured.report().breaks]


def test_a_program_belongs_to_its_group(four: Ranks) -> None:
    for rank, (found, told, breaks) in enumerate(four(_groups)):
        own = 2.0 if rank % 2 == 0 else 4.0
        assert found == [own, 6.0, own, 6.0, 6.0, own]
        assert "destroyed" in told and breaks == []


def _hidden_group() -> Any:
    """Return results of a program that finds its group where guards cannot look."""
    groups = [dist.new_group([0, 1]), dist.new_group([dist.get_rank()], None, None, None, True)]
    chosen = iter([0, 1, 0, 1])

    def total(x: Any) -> Any:
        y = x.clone()
        dist.all_reduce(y, group=groups[next(chosen)])
        return y

    captured = tracejit.script(total)
    return [captured(tracejit.ones(2)).tolist() for _ in range(4)]


def test_a_group_from_an_iterator(two: Ranks) -> None:
    both, alone = [2.0, 2.0], [1.0, 1.0]
    assert two(_hidden_group) == [[both, alone, both, alone]] * 2


def _checks(outside: bool) -> Any:
    """Return errors and results of a program that looks up rows, before or after a collective."""

    def rows(table: Any, index: Any) -> Any:
        if outside:
            index = index.clone()
            dist.broadcast(index, 0)
            return table[index] * 2
        picked = table[index]
        dist.all_reduce(picked)
        return picked

    captured = tracejit.script(rows)
    table = tracejit.arange(6.0).reshape(3, 2)
    found: list[Any] = []
    for index in ([0, 2], [1, 1], [0, 3], [2, 0]):
        try:
            found.append(captured(table, tracejit.tensor(index)).tolist())
        except IndexError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("outside", [False, True])
def test_a_check_that_fails(two: Ranks, outside: bool) -> None:
    for found in two(_checks, outside):
        assert found[0] == [[0.0, 2.0], [8.0, 10.0]]
        assert "out of bounds" in found[2] and found[3] == [[8.0, 10.0], [0.0, 2.0]]


def _control_flow() -> Any:
    """Return what differs between plain and captured calls with branches and loops."""

    def branch(x: Any) -> Any:
        total = x.sum()
        dist.all_reduce(total)
        if total > 0:
            y = x * 2
            dist.all_reduce(y)
        else:
            y = -x
        return y

    def loop(x: Any) -> Any:
        for _ in range(5):
            dist.all_reduce(x)
            x = x / 2
        return x

    wrong = []
    for function in (branch, loop):
        captured = tracejit.script(function)
        for sign in (1, -1, 1, 1, -1):
            x = tracejit.ones(3) * sign
            expected, found = function(x.clone()), captured(x.clone())
            if expected.tolist() != found.tolist():
                wrong.append((function.__name__, sign, expected.tolist(), found.tolist()))
    return wrong


def test_branches_and_loops(two: Ranks) -> None:
    assert two(_control_flow) == [[], []]


def _told() -> Any:
    """Return the reasons why graphs with collectives end."""

    def looks_up(x: Any) -> Any:
        index = (x[:1] * 0).to(tracejit.int64)
        dist.all_reduce(index)
        return x[index]

    def loops(x: Any) -> Any:
        while x.sum() < 100:
            x = x * 2
            dist.all_reduce(x)
        return x

    def makes(x: Any) -> Any:
        dist.all_reduce(x, group=dist.new_group([0, 1]))
        return x

    found = []
    for function in (looks_up, loops, makes):
        captured = tracejit.script(function)
        for _ in range(2):
            captured(tracejit.ones(3))
        found.append([str(one) for one in captured.report().breaks])
    return found


def test_reasons_are_named(two: Ranks) -> None:
    reasons = ["fails for some values, and these come from other processes",
               "it calls all_reduce, for which other processes wait",
               "the function joins, makes or leaves a process group"]
    for found in two(_told):
        for reason, told in zip(reasons, found, strict=True):
            assert [reason in one for one in told] == [True], (reason, told)


# -- DistributedDataParallel -----------------------------------------------------------------------
def _learn(model: Any, rows: slice, accumulate: int, capture: bool, steps: int = 50) -> Any:
    # a bias before a normalization has no gradient but rounding, which Adam would scale up
    normalized = any(isinstance(one, nn.modules.batchnorm._BatchNorm) for one in model.modules())
    kind = tracejit.optim.SGD if normalized else tracejit.optim.Adam
    optimizer = kind(model.parameters(), lr=0.01)

    def step(inputs: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        total = 0.0
        parts = list(zip(inputs.chunk(accumulate), targets.chunk(accumulate)))
        for k, (x, y) in enumerate(parts):
            last = k == len(parts) - 1
            quiet = model.no_sync() if not last and hasattr(model, "no_sync") else nullcontext()
            with quiet:
                loss = ((model(x) - y) ** 2).mean() / accumulate
                loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    run = tracejit.script(step) if capture else step
    for k in range(steps):
        inputs, targets = _data(k)
        run(inputs[rows], targets[rows])
    told = [str(one) for one in run.report().breaks] if capture else []
    hits = run.report().cache_hits if capture else 0
    return [p.detach().tolist() for p in model.parameters()], told, hits


def _captured_step(options: dict[str, Any], accumulate: int, hook: str | None, norm: bool) -> Any:
    network = _network(norm)
    if norm:
        network = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    model = DDP(network, bucket_cap_mb=0.0005, **options)
    if hook is not None:
        model.register_comm_hook(None, getattr(default_hooks, hook))
    return _learn(model, _own_rows(), accumulate, True)


@pytest.mark.parametrize(
    "options, accumulate, hook, norm",
    [
        ({}, 1, None, False),
        ({"gradient_as_bucket_view": True}, 1, None, False),
        ({}, 2, None, False),
        ({}, 1, "allreduce_hook", False),
        ({"broadcast_buffers": False}, 1, None, True),
    ],
)
@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.full)])
def test_a_captured_step_learns_what_one_process_learns(
    request: pytest.FixtureRequest, size: int, options: dict[str, Any], accumulate: int,
    hook: str | None, norm: bool,
) -> None:  # fmt: skip
    ranks = request.getfixturevalue("two" if size == 2 else "four")
    expected, _, _ = _learn(_network(norm), slice(0, 8), 1, False)
    for parameters, breaks, hits in ranks(_captured_step, options, accumulate, hook, norm):
        _close(parameters, expected)
        assert breaks == [] and hits >= 48


def _forward_alone() -> Any:
    """Return what differs where only forward is captured, with a step under `no_sync`."""
    networks = [DDP(_network(), bucket_cap_mb=0.0005) for _ in range(2)]
    optimizers = [tracejit.optim.SGD(one.parameters(), lr=0.1) for one in networks]
    forwards = [networks[0], tracejit.script(networks[1])]
    wrong = []
    for k in range(8):
        losses = []
        for model, optimizer, forward in zip(networks, optimizers, forwards):
            x, y = _data(k)
            x, y = x[_own_rows()], y[_own_rows()]
            if k % 4 != 3:
                optimizer.zero_grad()
            with model.no_sync() if k % 4 == 2 else nullcontext():
                loss = ((forward(x) - y) ** 2).mean()
            loss.backward()
            if k % 4 != 2:
                optimizer.step()
            losses.append(loss.item())
        if abs(losses[0] - losses[1]) > 1e-6 * abs(losses[0]):
            wrong.append((k, losses))
    report = forwards[1].report()
    return wrong, [str(one) for one in report.breaks], report.cache_hits


def test_forward_alone(two: Ranks) -> None:
    for wrong, breaks, hits in two(_forward_alone):
        assert (wrong, breaks) == ([], []) and hits >= 4


def _beside() -> Any:
    """Return how many instructions run beside each bucket of a captured step."""
    tracejit.manual_seed(0)
    layers = [one for _ in range(4) for one in (nn.Linear(40, 40), nn.GELU())]
    model = DDP(nn.Sequential(*layers), bucket_cap_mb=0.005)

    def step(x: Any) -> Any:
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    captured = tracejit.script(step)
    for _ in range(2):
        captured(tracejit.ones(4, 40))
    report = captured.report()
    found = [(one.name, one.nbytes, one.beside) for one in report.collectives]
    return found, str(report)


def test_the_report_shows_what_runs_beside(two: Ranks) -> None:
    for found, text in two(_beside):
        assert [name for name, _, _ in found] == ["all_reduce"] * len(found)
        assert sum(nbytes for _, nbytes, _ in found) == 4 * 4 * (40 * 40 + 40)
        besides = [beside for _, _, beside in found]
        assert len(besides) >= 4 and besides[0] > 6 and besides == sorted(besides, reverse=True)
        assert f"beside {besides[0]} of" in text


def _mixed() -> Any:
    """Return what a model learns whose steps are captured in one process and plain in the other,
    in turn."""
    model = DDP(_network(), bucket_cap_mb=0.0005)
    optimizer = tracejit.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()

    captured = tracejit.script(step)
    for k in range(12):
        x, y = _data(k)
        plain = k > 1 and (k + dist.get_rank()) % 2 == 0
        (step if plain else captured)(x[_own_rows()], y[_own_rows()])
    return [p.detach().tolist() for p in model.parameters()]


def test_a_captured_step_meets_a_plain_one(two: Ranks) -> None:
    network = _network()
    optimizer = tracejit.optim.SGD(network.parameters(), lr=0.1)
    for k in range(12):
        x, y = _data(k)
        optimizer.zero_grad()
        ((network(x) - y) ** 2).mean().backward()
        optimizer.step()
    for found in two(_mixed):
        _close(found, [p.detach().tolist() for p in network.parameters()])


def _backward_outside() -> Any:
    """Return what differs where a backward outside calls collectives, and the breaks."""
    def summed(x: Any) -> Any:
        return (functional.all_reduce(x * 2) * x).sum()

    def gathered(x: Any) -> Any:
        return (tracejit.cat(functional.all_gather(x * 2)) ** 2).sum()

    wrong, told = [], []
    for function in (summed, gathered):
        captured = tracejit.script(function)
        for k in range(4):
            grads = []
            for call in (function, captured):
                x = (tracejit.arange(3.0) + dist.get_rank() + k).requires_grad_()
                call(x).backward()
                grads.append(x.grad.tolist())
            if grads[0] != grads[1]:
                wrong.append((k, grads))
        told += [str(one).splitlines()[1].strip() for one in captured.report().breaks]
    return wrong, told


def test_a_backward_outside_that_calls_collectives(two: Ranks) -> None:
    for wrong, told in two(_backward_outside):
        assert wrong == []
        assert told == ["the result's backward calls all_reduce, for which other processes wait",
                        "the result's backward calls all_to_all, for which other processes wait"]


# -- what may change between calls -----------------------------------------------------------------
def _asked_of_groups() -> Any:
    """Return what a program tells of groups that change."""
    groups = [dist.new_group([0, 1]), dist.new_group([1, 0], sort_ranks=False),
              dist.new_group([dist.get_rank()], None, None, None, True)]  # fmt: skip

    def asked(x: Any, group: Any) -> Any:
        ranks = dist.get_process_group_ranks(group)
        return x * dist.get_world_size(group), dist.get_rank(group), group.rank(), len(ranks)

    captured, x = tracejit.script(asked), tracejit.ones(1)
    found = [captured(x, groups[k % 3]) for k in range(6)]
    dist.destroy_process_group(groups[1])
    return [(y.item(), *rest) for y, *rest in found], captured.report().cache_hits


def test_what_is_asked_of_a_group(two: Ranks) -> None:
    for rank, (found, hits) in enumerate(two(_asked_of_groups)):
        once = [(2.0, rank, rank, 2), (2.0, 1 - rank, 1 - rank, 2), (1.0, 0, 0, 1)]
        assert found == once * 2 and hits == 3


def _started_outside() -> Any:
    """Return what a program reads that waits for collectives which began before it."""
    held: dict[str, Any] = {}

    def waits(x: Any) -> Any:
        held["work"].wait()
        return x + 1

    captured, found = tracejit.script(waits), []
    for k in range(6):
        x = tracejit.full((50_000,), float(k + dist.get_rank()))
        held["work"] = dist.all_reduce(x, async_op=True)
        found.append(captured(x).unique().tolist())
    return found


def test_a_collective_that_began_outside(two: Ranks) -> None:
    assert two(_started_outside) == [[[2.0 * k + 2] for k in range(6)]] * 2


def _halved(state: Any, bucket: Any) -> Any:
    return dist.all_reduce(bucket.buffer() * 0.25, async_op=True).get_future()


def _changed_later(change: str) -> Any:
    """Return gradients of captured steps; after three of them the module gets a hook."""
    tracejit.manual_seed(0)
    model = DDP(nn.Linear(2, 1, bias=False))

    @tracejit.script
    def step(x: Any) -> None:
        model.zero_grad()
        model(x).sum().backward()

    found = []
    for k in range(6):
        if k == 3:
            if change == "hook":
                model.register_comm_hook(None, _halved)
            else:
                model._set_static_graph()
        step(tracejit.full((1, 2), 1.0 + 2 * dist.get_rank()))
        found.append(model.module.weight.grad.tolist())
    return found


@pytest.mark.parametrize("change", ["hook", "static graph"])
def test_a_module_that_changes_later(two: Ranks, change: str) -> None:
    after = [[1.0, 1.0]] if change == "hook" else [[2.0, 2.0]]
    assert two(_changed_later, change) == [[[[2.0, 2.0]]] * 3 + [after] * 3] * 2


def _gradients_in_one_memory(keeps: bool) -> Any:
    """Return bytes between the gradients of a captured step, and what is kept of the first one."""
    tracejit.manual_seed(0)
    model, kept = DDP(nn.Linear(2, 2)), []
    first, second = model.parameters()
    if keeps:
        first.register_post_accumulate_grad_hook(lambda one: kept.append(one.grad.detach()))

    @tracejit.script
    def step(x: Any) -> None:
        model.zero_grad()
        kept.clear()
        model(x).sum().backward()

    for _ in range(3):
        step(tracejit.full((1, 2), 1.0 + 2 * dist.get_rank()))
    return (
        second.grad.untyped_storage().data_ptr() == first.grad.untyped_storage().data_ptr(),
        [first.grad.tolist(), second.grad.tolist(), *(one.tolist() for one in kept)],
    )


@pytest.mark.parametrize("keeps", [False, True])
def test_gradients_share_the_memory_of_their_bucket(two: Ranks, keeps: bool) -> None:
    weight = [[2.0, 2.0], [2.0, 2.0]]
    values = [weight, [1.0, 1.0]] + keeps * [weight]
    assert two(_gradients_in_one_memory, keeps) == [(not keeps, values)] * 2


def _other_shapes(x: Any) -> Any:
    flat = tracejit.empty(4, 1)
    dist.all_gather_into_tensor(flat, x[:2])
    parts = [tracejit.empty(2, 2), tracejit.empty(4, 1)]
    dist.all_gather(parts, x.reshape(2, 2))
    total = tracejit.empty(1, 4)
    dist.reduce_scatter(total, [x.reshape(2, 2), x.reshape(4, 1)[:, 0].reshape(2, 2)])
    return flat, parts[0], parts[1], total


def _of_shapes_and_nans() -> Any:
    x = tracejit.arange(4.0) + dist.get_rank()
    captured, found = tracejit.script(_other_shapes), []
    for _ in range(2):
        found.append(_tensors(captured(x)) == _tensors(_other_shapes(x)))
    before, flags.check_nans = flags.check_nans, True
    checked = tracejit.script(_sum)
    try:
        for _ in range(20):  # memory of NaN becomes that of results
            tracejit.full((3, 7), float("nan"))
            found.append(checked(tracejit.ones(3, 7)).unique().tolist() == [5.0])
    finally:
        flags.check_nans = before
    return found


def test_shapes_of_results_and_checks_of_nan(two: Ranks) -> None:
    assert two(_of_shapes_and_nans) == [[True] * 22] * 2


def _threads() -> Any:
    """Return results of one captured function that threads call, each with a group of its own."""
    groups = [dist.new_group([0, 1]) for _ in range(3)]

    @tracejit.script
    def total(x: Any, group: Any) -> Any:
        y = x * 2
        dist.all_reduce(y, group=group)
        return y

    def work(k: int) -> None:
        for n in range(1, 30):
            y = total(tracejit.full((n % 5 + 1,), 1.0 + k), groups[k])
            found.add((k, *y.unique().tolist()))

    found: set[tuple] = set()
    order = [0, 1, 2] if dist.get_rank() == 0 else [2, 1, 0]
    threads = [threading.Thread(target=work, args=(k,)) for k in order]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sorted(found)


def test_threads_with_a_group_each(two: Ranks) -> None:
    assert two(_threads) == [[(0, 4.0), (1, 8.0), (2, 12.0)]] * 2
