"""Memory of a training step per process: plain, and with ZeroRedundancyOptimizer in both stages.

    python -m bench.zero_memory --processes 4

Prints what the optimizer's state and the gradients take after a step, as a part of what one process
takes, beside the prediction: the share of the parameters that the fullest process owns. Bytes are
counted over tensors, each piece of memory once. Losses must be equal in all ways.
"""

from __future__ import annotations

import argparse
import socket
from typing import Any

import tracejit
import tracejit.distributed as dist
from tracejit import nn
from tracejit.distributed.optim import ZeroRedundancyOptimizer
from tracejit.nn.parallel import DistributedDataParallel as DDP

STEPS = 3
WAYS = ("plain", "stage 1", "stage 2")


def network(width: int, layers: int) -> Any:
    """Return a small transformer with a head for 1,000 words."""
    tracejit.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(1000, width), body, nn.Linear(width, 1000))


def held(tensors: list[Any]) -> int:
    """Return the bytes of the memory behind tensors."""
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}
    return sum(storages.values())


def state_of(optimizer: Any) -> int:
    """Return the bytes of an optimizer's state in this process."""
    return held([
        one for kept in optimizer.state.values() for one in kept.values()
        if isinstance(one, tracejit.Tensor)
    ])  # fmt: skip


def train(model: Any, optimizer: Any, rank: int, size: int) -> list[float]:
    """Take steps on a part of the batch; return the losses of this process."""
    losses = []
    words = tracejit.arange(8 * 16).reshape(8, 16) * 37 % 1000
    part = words[rank * 8 // size : (rank + 1) * 8 // size]
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(part).flatten(0, 1), part.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def measure(rank: int, size: int, width: int, layers: int, way: str) -> dict[str, Any]:
    """Return the bytes that this process holds after some steps, and what it predicts."""
    model: Any = network(width, layers)
    parameters = list(model.parameters())
    if size > 1:
        model = DDP(model, gradient_as_bucket_view=True)
    if way == "plain":
        optimizer: Any = tracejit.optim.Adam(parameters, lr=1e-3)
    else:
        optimizer = ZeroRedundancyOptimizer(
            parameters, tracejit.optim.Adam, lr=1e-3, shard_gradients=way == "stage 2"
        )
    losses = train(model, optimizer, rank, size)
    grads = [p.grad for p in parameters if p.grad is not None]
    if size > 1:
        grads += [bucket.flat for bucket in model.reducer.buckets if bucket.flat is not None]
    own = parameters if way == "plain" else [p for p in parameters if p in optimizer.state]
    share = sum(p.numel() for p in own) / sum(p.numel() for p in parameters)
    return {"state": state_of(optimizer), "grads": held(grads), "share": share, "losses": losses}


def work(rank: int, size: int, port: int, width: int, layers: int) -> None:
    """Measure all ways in one process of the job; rank 0 prints."""
    dist.init_process_group(
        "mpi", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size
    )
    for way in WAYS:
        every: list[Any] = [None] * size
        dist.all_gather_object(every, measure(rank, size, width, layers, way))
        if rank == 0:
            report(way, every, measure(0, 1, width, layers, "plain"))
    dist.destroy_process_group()


def report(way: str, every: list[dict[str, Any]], alone: dict[str, Any]) -> None:
    """Print the largest shares among the processes, and stop where losses differ."""
    mean = [sum(one) / len(every) for one in zip(*(each["losses"] for each in every))]
    for ours, theirs in zip(mean, alone["losses"]):
        assert abs(ours - theirs) <= 1e-5 * abs(theirs), (way, mean, alone["losses"])
    state = max(each["state"] for each in every) / alone["state"]
    grads = max(each["grads"] for each in every) / alone["grads"]
    share = max(each["share"] for each in every)
    print(f"{way:8} state {state:.3f} (predicted {share if way != 'plain' else 1:.3f})   "
          f"gradients {grads:.3f} (predicted {share if way == 'stage 2' else 1:.3f})", flush=True)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--processes", type=int, default=4)
    reader.add_argument("--width", type=int, default=128)
    reader.add_argument("--layers", type=int, default=4)
    options = reader.parse_args()
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    count = sum(p.numel() for p in network(options.width, options.layers).parameters())
    print(f"{count:,} parameters, {options.processes} processes; the fullest one over one process "
          f"alone (1/{options.processes} = {1 / options.processes:.3f})", flush=True)
    tracejit.multiprocessing.spawn(
        work, (options.processes, port, options.width, options.layers), options.processes
    )


if __name__ == "__main__":
    main()
