"""NCCL on a GPU: a group of one process, and of two where there are two GPUs."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import tracejit as tj
import tracejit.distributed as dist
from tracejit.distributed import ReduceOp, device_groups, nccl_library

pytest.importorskip("mpi4py")
ROOT = Path(__file__).resolve().parents[2]
KINDS = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"]


@pytest.fixture(scope="module", params=["Nccl4py", "CupyNccl"])
def group(request):
    before = nccl_library._loaded[:]
    try:
        nccl_library._loaded[:] = [getattr(nccl_library, request.param)()]
    except Exception as error:
        pytest.skip(f"{request.param}: {error}")
    dist.init_process_group("cpu:mpi,cuda:nccl", rank=0, world_size=1, store=dist.HashStore(),
                            timeout=timedelta(seconds=60))  # fmt: skip
    yield dist.group.WORLD
    dist.destroy_process_group()
    nccl_library._loaded[:] = before


def values(shape, kind):
    count = tj.Size(shape).numel()
    return (tj.arange(count) % 7).reshape(shape).to(getattr(tj, kind)).to("cuda")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 4), (1,), (0,), ()])
def test_collectives_of_one(group, kind, shape):
    x = values(shape, kind)
    expected, places = x.tolist(), [tj.zeros_like(x)]
    for op in (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MAX, ReduceOp.MIN):
        dist.all_reduce(x, op)
        dist.reduce(x, 0, op)
    dist.broadcast(x, 0)
    dist.all_gather(places, x)
    whole = tj.zeros(1, *shape, dtype=x.dtype, device="cuda")
    dist.all_gather_into_tensor(whole, x)
    gathered, scattered, swapped = (tj.zeros_like(x) for _ in range(3))
    dist.gather(x, [gathered], 0)
    dist.scatter(scattered, [x], 0)
    dist.all_to_all([swapped], [x])
    out = tj.zeros_like(x)
    dist.reduce_scatter(out, [x])
    for one in (x, places[0], whole[0], gathered, scattered, swapped, out):
        assert one.tolist() == expected and one.device.type == "cuda"


def test_layouts_and_work(group):
    x = values((3, 4), "float32")
    expected = x.tolist()
    dist.all_reduce(x.t())
    dist.all_reduce(x[:, 1])
    works = [dist.all_reduce(x, async_op=True) for _ in range(20)]
    assert all(work.wait() for work in works) and works[0].is_completed()
    assert x.tolist() == expected
    big = tj.ones(1 << 24, device="cuda")
    for _ in range(5):  # NCCL reads what the device has not computed yet
        big = big * 2
        dist.all_reduce(big)
        big = big / 2
    assert big.sum().item() == float(1 << 24)


def test_a_step_learns_what_the_plain_module_learns(group):
    def learn(wrap):
        tj.manual_seed(0)
        model = tj.nn.Sequential(tj.nn.Linear(64, 64), tj.nn.Tanh(), tj.nn.Linear(64, 2)).cuda()
        run, x = wrap(model), tj.arange(512.0, device="cuda").reshape(8, 64) / 512
        optimizer = tj.optim.SGD(run.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            loss = run(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = tj.script(step)
        losses = [step().item() for _ in range(3)] + [captured().item() for _ in range(3)]
        return losses, [one.cpu().tolist() for one in model.parameters()]

    plain = learn(lambda model: model)
    data_parallel = learn(lambda model: tj.nn.parallel.DistributedDataParallel(
        model, device_ids=[0], bucket_cap_mb=0.01))  # fmt: skip
    assert data_parallel[0] == pytest.approx(plain[0], rel=1e-6)
    assert max(abs(a - b) for a, b in zip(*(tj.tensor(one[1][1]).tolist()
                                            for one in (plain, data_parallel)))) < 1e-6  # fmt: skip


def test_an_operation_that_takes_too_long_is_aborted(group):
    own = dist.new_group([0])
    x = tj.ones(1 << 26, device="cuda")
    dist.all_reduce(x, group=own)
    for _ in range(200):
        x = x.sin()
    work = dist.all_reduce(x, group=own, async_op=True)
    with pytest.raises(RuntimeError, match="did not end within 1e-06 seconds"):
        work.wait(timedelta(microseconds=1))
    with pytest.raises(RuntimeError, match="was aborted"):
        dist.all_reduce(x, group=own)
    tj.cuda.synchronize()
    dist.all_reduce(x)  # the default group's communicator goes on
    assert device_groups.carrier(own, x).ring.failed is not None


def test_two_gpus():
    if tj.cuda.device_count() < 2:
        pytest.skip("there is one GPU; NCCL refuses two processes on it")
    script = (
        "import os, tracejit as tj, tracejit.distributed as dist\n"
        "tj.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"
        "dist.init_process_group('nccl')\n"
        "x = tj.ones(5, device='cuda') + dist.get_rank()\n"
        "dist.all_reduce(x)\n"
        "assert x.tolist() == [3.0] * 5\n"
        "print('done')\n"
    )
    found = subprocess.run(
        [sys.executable, "-m", "tracejit.distributed.run", "--standalone", "--nproc-per-node", "2",
         "--no-python", sys.executable, "-c", script],
        cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=200)  # fmt: skip
    assert found.stdout.count("done") == 2, found.stdout + found.stderr
