"""Two processes: collectives and steps of DistributedDataParallel, beside PyTorch's over gloo.

    python -m bench.distributed                 two processes, one thread each
    python -m bench.distributed --processes 4

In: mpi4py with an MPI library, PyTorch if it is there. Out: a table of medians. The contenders take
turns in the same processes, so that they have the same neighbours. Ratios are what counts.

A step of tracejit's is one captured function, one of PyTorch's is eager. "hidden" is the part of
the communication that costs no time: 1 - (step - step without averaging) / (all-reduce alone).
Below the table stands what `cost_model` predicts for more processes from these figures.
"""

from __future__ import annotations

import argparse
import functools
import os
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench import cost_model, networks

SIZES = [2**k for k in range(12, 27, 2)]  # bytes: 4 KB to 64 MB
BATCH, LENGTH = 4, 64
ROUNDS = 25
# between hosts, where nothing was measured: 20 microseconds, 10 GB a second
NETWORK = cost_model.Link(20e-6, 10e9)


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


def perceptron(library: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return a network of three layers of width 512 with its loss, and a batch."""
    nn = library.nn
    layers = [nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)]
    x, target = library.randn(64, 512), library.randint(0, 10, (64,))
    network = nn.Sequential(*layers)

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any, target: Any) -> Any:
            return nn.functional.cross_entropy(self.network(x), target)

    return Loss(), (x, target)


def transformer(library: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return the transformer of the other benchmarks, four layers of width 128, and a batch."""
    tokens = library.randint(0, networks.TOKENS, (BATCH, LENGTH + 1))
    return networks.gpt(library), (tokens[:, :-1], tokens[:, 1:])


NETWORKS = {"MLP, 3 layers of 512": perceptron, "transformer, 4 layers of 128": transformer}


def step_of(library: Any, make: Callable[..., Any], wrapper: Any) -> tuple[Callable[[], Any], int]:
    """Return a training step of a network in a library, and the bytes of its gradients."""
    library.manual_seed(0)
    network, (x, target) = make(library)
    model = wrapper(network)
    optimizer = library.optim.SGD(model.parameters(), lr=0.01)

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x, target)
        loss.backward()
        optimizer.step()
        return loss

    run = library.script(step) if hasattr(library, "script") else step
    nbytes = sum(one.numel() * 4 for one in network.parameters())
    return functools.partial(run, x, target), nbytes


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
    rows: list[tuple[str, dict[str, float], str]] = []
    steps_alone: dict[str, cost_model.Step] = {}
    for nbytes in SIZES:
        rows.append((f"all_reduce of {nbytes >> 10} KB", turns(sums(found, nbytes), wait,
                     60 if nbytes < 2**22 else 12), ""))  # fmt: skip
    for name, make in NETWORKS.items():
        steps = {which: step_of(library, make, wrapper)[0]
                 for which, (library, wrapper) in found.items()}  # fmt: skip
        alone, nbytes = step_of(found["tracejit"][0], make, lambda module: module)
        ours = sums({"tracejit": found["tracejit"]}, nbytes)["tracejit"]
        calls = {**steps, "alone": alone, "communication": ours}
        for call in calls.values():
            call()
            call()
        seconds = turns(calls, wait, ROUNDS)
        hidden = 1 - (seconds["tracejit"] - seconds["alone"]) / seconds["communication"]
        more = (f"without averaging {seconds['alone'] * 1e3:.2f}, all-reduce of "
                f"{nbytes / 2**20:.1f} MB {seconds['communication'] * 1e3:.2f}, "
                f"hidden {hidden:.0%}")  # fmt: skip
        rows.append((name, seconds, more))
        whole, share = seconds["alone"], min(max(hidden, 0.0), 1.0)
        steps_alone[name] = cost_model.Step(whole * 0.3, whole * 0.6, whole * 0.1, nbytes, share)
    if rank == 0:
        show(rows)
        predict(rows, steps_alone, size)
    wait()


def sums(found: dict[str, tuple[Any, Any]], nbytes: int) -> dict[str, Callable[[], Any]]:
    """Return an all-reduce of so many bytes for each contender."""
    return {
        name: functools.partial(library.distributed.all_reduce, library.ones(nbytes // 4))
        for name, (library, _) in found.items()
    }


def show(rows: list[tuple[str, dict[str, float], str]]) -> None:
    """Print a row for each measurement, in milliseconds."""
    print(f"{'':<30}{'tracejit':>10}{'torch':>10}{'ratio':>8}   milliseconds")
    for name, seconds, more in rows:
        ours, theirs = seconds["tracejit"], seconds.get("torch")
        text = f"{theirs * 1e3:>10.3f}{theirs / ours:>8.2f}" if theirs else f"{'-':>10}{'-':>8}"
        print(f"{name:<30}{ours * 1e3:>10.3f}{text}   {more}".rstrip())


def predict(rows: list[Any], steps: dict[str, cost_model.Step], size: int) -> None:
    """Print what the model makes of the figures. Forward, backward, optimizer: 3, 6, 1 of 10."""
    if size != 2:
        return
    seconds = [row[1]["tracejit"] for row in rows]
    host = cost_model.Link.measured((SIZES[0], seconds[0]), (SIZES[-1], seconds[len(SIZES) - 1]))
    print(f"\nmodel: {host.latency * 1e6:.1f} us and {host.bandwidth / 1e9:.2f} GB/s in a host, "
          f"{NETWORK.latency * 1e6:.0f} us and {NETWORK.bandwidth / 1e9:.0f} GB/s between hosts, "
          f"{cost_model.PER_HOST} processes a host")  # fmt: skip
    print(cost_model.table(steps, host, NETWORK))


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
