"""Two processes: collectives and steps of DistributedDataParallel, beside PyTorch's over gloo.

    python -m bench.distributed                 two processes, one thread each
    python -m bench.distributed --processes 4

In: mpi4py with an MPI library, PyTorch if it is there. Out: a table of medians. Both contenders
take turns in the same processes, so that they have the same neighbours. Ratios are what counts.
"""

import argparse
import functools
import os
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

SIZES = [2**k for k in range(12, 27, 2)]  # bytes: 4 KB to 64 MB
NETWORKS = {"MLP of 3 layers, width 512": 512, "MLP of 3 layers, width 1536": 1536}
BATCH = 64


def turns(calls: dict[str, Callable[[], Any]], wait: Callable[[], Any], count: int) -> dict:
    """Return the median of each call's seconds; they take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            wait()
            begun = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - begun)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def step_of(library: Any, wrapper: Any, width: int) -> Callable[[], Any]:
    """Return a training step of a network in a library."""
    nn = library.nn
    library.manual_seed(0)
    layers = [nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(),
              nn.Linear(width, 10)]  # fmt: skip
    model = wrapper(nn.Sequential(*layers))
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)
    x, target = library.randn(BATCH, width), library.randint(0, 10, (BATCH,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


def contenders(rank: int, size: int, port: int) -> dict[str, tuple[Any, Any]]:
    """Join the groups; return (library, DistributedDataParallel) by name."""
    import tracejit
    import tracejit.distributed as dist
    from tracejit.nn.parallel import DistributedDataParallel

    dist.init_process_group("mpi", rank=rank, world_size=size)
    found: dict[str, tuple[Any, Any]] = {"tracejit": (tracejit, DistributedDataParallel)}
    try:
        import torch
        import torch.distributed
    except ImportError:
        return found
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://localhost:{port}", rank=rank, world_size=size
    )
    found["torch"] = torch, torch.nn.parallel.DistributedDataParallel
    return found


def run(rank: int, size: int, ports: tuple[int, int]) -> None:
    """Measure in all processes; rank 0 prints."""
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(ports[0]))
    found = contenders(rank, size, ports[1])
    wait = found["tracejit"][0].distributed.barrier
    rows = []
    for bytes_ in SIZES:
        tensors = {name: library.ones(bytes_ // 4) for name, (library, _) in found.items()}
        calls = {
            name: functools.partial(library.distributed.all_reduce, tensors[name])
            for name, (library, _) in found.items()
        }
        rows.append((f"all_reduce of {bytes_ >> 10} KB",
                     turns(calls, wait, 60 if bytes_ < 2**22 else 12)))  # fmt: skip
    for name, width in NETWORKS.items():
        steps = {which: step_of(*pair, width) for which, pair in found.items()}
        alone = step_of(found["tracejit"][0], lambda module: module, width)
        for step in [*steps.values(), alone]:
            step()
        rows.append((name, turns({**steps, "without averaging": alone}, wait, 25)))
    if rank == 0:
        show(rows)
    found["tracejit"][0].distributed.barrier()


def show(rows: list[tuple[str, dict[str, float]]]) -> None:
    """Print a row for each measurement, in milliseconds."""
    print(f"{'':<28}{'tracejit':>10}{'torch':>10}{'ratio':>8}   milliseconds")
    for name, seconds in rows:
        ours, theirs = seconds["tracejit"], seconds.get("torch")
        text = f"{theirs * 1e3:>10.3f}{theirs / ours:>8.2f}" if theirs else f"{'-':>10}{'-':>8}"
        plain = seconds.get("without averaging")
        more = f"   without averaging {plain * 1e3:.2f}" if plain else ""
        print(f"{name:<28}{ours * 1e3:>10.3f}{text}{more}")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def main() -> None:
    # before anything is imported that reads them
    for name in ("TRACEJIT_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    from tracejit import multiprocessing

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    count = parser.parse_args().processes
    multiprocessing.spawn(run, (count, (free_port(), free_port())), nprocs=count)


if __name__ == "__main__":
    main()
