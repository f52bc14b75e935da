"""Programs of several processes with a CUDA device each, which is a stand-in: `test_nccl.py` runs
them by the launcher. Each compares with what the same calls give on the CPU."""

import sys
from datetime import timedelta

from tests.cuda import nccl_stand_in

NCCL = nccl_stand_in.install()

import tracejit as tj  # noqa: E402
import tracejit.distributed as dist  # noqa: E402
from tracejit.distributed import ReduceOp  # noqa: E402

KINDS = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"]
SHAPES = [(3, 4), (1,), (0,), ()]


def values(shape, kind, seed=0):
    count = tj.Size(shape).numel()
    x = (tj.arange(count) * 3 + seed + 5 * dist.get_rank()) % 7
    return x.reshape(shape).to(getattr(tj, kind))


def same(run, *tensors):
    """Run on the CPU and on the device; compare all tensors afterwards."""
    ours = [x.to("cuda") for x in tensors]
    run(*tensors)
    run(*ours)
    for a, b in zip(tensors, ours):
        assert b.device.type == "cuda" and a.tolist() == b.tolist(), (a, b)


def reductions():
    for kind in KINDS:
        for op in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.AVG):
            if op is ReduceOp.AVG and kind in ("int32", "int64", "uint8", "bool"):
                continue
            for shape in SHAPES:
                same(lambda x, op=op: dist.all_reduce(x, op), values(shape, kind))
                if dist.get_rank() == 1:
                    same(lambda x, op=op: dist.reduce(x, 1, op), values(shape, kind))
                else:
                    x = values(shape, kind)
                    for y in (x, x.to("cuda")):
                        dist.reduce(y, 1, op)
                        assert y.tolist() == values(shape, kind).tolist()
    same(lambda x: dist.all_reduce(x[:, 1]), values((3, 4), "float32"))
    same(lambda x: dist.all_reduce(x.t()), values((3, 4), "float32"))


def moves():
    size, rank = dist.get_world_size(), dist.get_rank()
    for kind in [*KINDS, "int16"]:
        for shape in SHAPES:
            same(lambda x: dist.broadcast(x, 1), values(shape, kind))
            parts = [values(shape, kind, k) for k in range(size)]
            same(lambda x, *to: dist.all_gather(list(to), x), values(shape, kind), *parts)
            whole = tj.zeros(size, *shape, dtype=getattr(tj, kind))
            same(lambda x, to: dist.all_gather_into_tensor(to, x), values(shape, kind), whole)
            same(lambda x, *to: dist.gather(x, list(to) if rank == 0 else None, 0),
                 values(shape, kind), *parts)  # fmt: skip
            same(lambda x, *of: dist.scatter(x, list(of) if rank == 1 else None, 1),
                 values(shape, kind), *parts)  # fmt: skip
            same(lambda *both: dist.all_to_all(list(both[:size]), list(both[size:])),
                 *[values(shape, kind) for _ in range(size)], *parts)  # fmt: skip
    same(lambda to, x: dist.all_to_all_single(to, x, [1 + rank] * size, list(range(1, size + 1))),
         values((size * (1 + rank), 2), "float32"),
         values((size * (size + 1) // 2, 2), "float32"))  # fmt: skip
    for kind in ("float32", "bfloat16", "int64"):
        parts = [values((2, 3), kind, k) for k in range(size)]
        same(lambda to, *of: dist.reduce_scatter(to, list(of)), values((2, 3), kind), *parts)
        same(lambda to, of: dist.reduce_scatter_tensor(to, of), values((2,), kind),
             values((2 * size,), kind))  # fmt: skip


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    x, y = values((4,), "float32").to("cuda"), tj.zeros(4, device="cuda")
    if rank % 2 == 0:
        dist.send(x, after)
        assert dist.recv(y, before) == before
    else:
        assert dist.recv(y, before) == before
        dist.send(x, after)
    assert y.tolist() == ((tj.arange(4) * 3 + 5 * before) % 7).tolist()
    y.zero_()
    batch = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert y.tolist() == ((tj.arange(4) * 3 + 5 * before) % 7).tolist()


def first_message():
    """Two of the processes exchange a message before the group has met."""
    rank = dist.get_rank()
    x = tj.full((3,), float(rank), device="cuda")
    if rank == 0:
        dist.send(x, 1)
        assert dist.recv(x, 1) == 1 and x.tolist() == [7.0] * 3
    elif rank == 1:
        assert dist.recv(x, 0) == 0 and x.tolist() == [0.0] * 3
        dist.send(tj.full((3,), 7.0, device="cuda"), 0)


def works():
    x = tj.ones(3, device="cuda")
    work = dist.all_reduce(x, async_op=True)
    assert x.tolist() == [1.0] * 3  # the stand-in computes when somebody waits
    assert work.wait() and work.is_completed() and work.is_success()
    assert x.tolist() == [float(dist.get_world_size())] * 3
    future = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert future.wait().tolist() == [2.0 * dist.get_world_size() ** 2] * 3
    sub = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        y = tj.ones(2, device="cuda")
        dist.all_reduce(y, group=sub)
        assert y.tolist() == [2.0, 2.0]
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    assert objects[1] == {"rank": 1}
    dist.barrier()


def refusals():
    for call, text in (
        (lambda x: dist.all_reduce(x.to(tj.int64), ReduceOp.BAND), "Cannot use ReduceOp.BAND"),
        (lambda x: dist.all_reduce(x.to(tj.int16)), "Unconvertible NCCL type"),
        (lambda x: dist.recv(x), "named rank"),
        (lambda x: dist.all_gather([x.cpu(), x.cpu()], x), "same device"),
    ):
        try:
            call(tj.ones(2, device="cuda"))
        except RuntimeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)


def learn(device):
    tj.manual_seed(0)
    model = tj.nn.Sequential(tj.nn.Linear(3, 4), tj.nn.Tanh(), tj.nn.Linear(4, 2)).to(device)
    wrapped = tj.nn.parallel.DistributedDataParallel(
        model, device_ids=[0] if device == "cuda" else None, bucket_cap_mb=0.00005)  # fmt: skip
    optimizer = tj.optim.SGD(wrapped.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = wrapped(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def ddp():
    def rows(k):
        return tj.arange(12.0).reshape(4, 3) / 10 + k + dist.get_rank()

    host, plain = learn("cpu")
    model, step = learn("cuda")
    for k in range(6):
        assert abs(plain(rows(k)).item() - step(rows(k)).item()) < 1e-6
    for a, b in zip(host.parameters(), model.parameters()):
        assert (a - b.cpu()).abs().max().item() < 1e-6
    assert nccl_stand_in.calls.count("all_reduce") >= 12
    captured, told = tj.script(step), tj.script(plain)
    for k in range(6):
        assert abs(told(rows(k)).item() - captured(rows(k).to("cuda")).item()) < 1e-6
    for a, b in zip(host.parameters(), model.parameters()):
        assert (a - b.cpu()).abs().max().item() < 1e-6
    breaks = [str(one) for one in captured.report().breaks]
    assert any("CUDA device" in one for one in breaks), breaks


def captured():
    def f(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    run = tj.script(f)
    for k in range(4):
        x = values((3,), "float32", k)
        assert run(x.to("cuda")).tolist() == f(x).tolist()
    assert any("all_reduce" in str(one) for one in run.report().breaks)


def faults():
    x = tj.ones(2, device="cuda")
    nccl_stand_in.fault[:] = [sys.argv[2]]
    group = dist.new_group(timeout=timedelta(seconds=0.5))
    try:
        dist.all_reduce(x, group=group)
    except RuntimeError as error:
        assert ("within 0.5 seconds" if sys.argv[2] == "never" else sys.argv[2]) in str(error)
    else:
        raise AssertionError("no error")
    assert nccl_stand_in.calls[-1] == "abort"
    nccl_stand_in.fault.clear()
    try:
        dist.all_reduce(x, group=group)
    except RuntimeError as error:
        assert "was aborted" in str(error)
    else:
        raise AssertionError("no error")


def different():
    x = tj.ones(2 + dist.get_rank(), device="cuda")
    dist.all_reduce(x)


if __name__ == "__main__":
    names = sys.argv[1].split(",")
    for name in names:
        dist.init_process_group("nccl" if name == "works" else "cpu:mpi,cuda:nccl")
        globals()[name]()
        dist.destroy_process_group()
        assert NCCL.communicators == 0 or name == "faults", NCCL.communicators
        print(f"{name} done", flush=True)
