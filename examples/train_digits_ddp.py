"""Train on handwritten digits in several processes, and compare with one on the joined batches.

Each process computes the gradients of its part of every batch; DistributedDataParallel averages
them while the backward runs. So all processes learn what one would learn from whole batches.

    python examples/train_digits_ddp.py                         two processes, started here
    python examples/train_digits_ddp.py --quick                 a few seconds
    python -m tracejit.distributed.run --nproc-per-node 2 examples/train_digits_ddp.py
"""

import argparse
import os
import socket
import sys
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits

import tracejit
import tracejit.distributed as dist
import tracejit.nn.functional as F
from tracejit import multiprocessing, nn
from tracejit.nn.parallel import DistributedDataParallel

BATCH = 64
TOLERANCE = 1e-5


def batches(epochs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shuffled batches, the same in every process."""
    images, classes = load_digits(return_X_y=True)
    images, classes = (images / 16).astype(np.float32), classes.astype(np.int64)
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            yield images[rows], classes[rows]


def network() -> nn.Module:
    tracejit.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(),
                         nn.Linear(128, 10))  # fmt: skip


def train(model: nn.Module, epochs: int, rank: int, size: int) -> list[float]:
    """Train on this process's part of every batch; return the losses of whole batches."""
    optimizer = tracejit.optim.AdamW(model.parameters(), lr=3e-3)
    part = slice(BATCH // size * rank, BATCH // size * (rank + 1))
    losses = []
    for images, classes in batches(epochs):
        optimizer.zero_grad()
        x, target = tracejit.from_numpy(images[part]), tracejit.from_numpy(classes[part])
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        if size > 1:
            dist.all_reduce(whole, dist.ReduceOp.AVG)
        losses.append(whole.item())
    return losses


def run(epochs: int) -> None:
    """Train in all processes; rank 0 trains alone as well, and compares."""
    rank, size = dist.get_rank(), dist.get_world_size()
    losses = train(DistributedDataParallel(network()), epochs, rank, size)
    if rank == 0:
        alone = train(network(), epochs, 0, 1)
        difference = max(abs(a - b) for a, b in zip(losses, alone, strict=True))
        print(f"{size} processes, {len(losses)} steps: loss {losses[0]:.4f} -> {losses[-1]:.4f}; "
              f"one process: {alone[0]:.4f} -> {alone[-1]:.4f}; largest difference "
              f"{difference:.1e}")  # fmt: skip
        if difference > TOLERANCE * max(alone):
            raise SystemExit("the processes did not learn what one process learns")
    dist.barrier()


def worker(rank: int, size: int, port: int, epochs: int) -> None:
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    dist.init_process_group("mpi", rank=rank, world_size=size)
    run(epochs)
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one epoch")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    epochs = 1 if options.quick else 10
    if "RANK" in os.environ:  # a launcher started this process
        dist.init_process_group("mpi")
        run(epochs)
        dist.destroy_process_group()
    else:
        multiprocessing.spawn(
            worker, (options.processes, free_port(), epochs), nprocs=options.processes
        )
        print("all as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
