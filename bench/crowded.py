"""More processes than cores: the same collectives on two processes and on four.

    python -m bench.crowded                 taskset -c 0,1 gives a machine of two cores

In: mpi4py with an MPI library. Out: seconds for a round of every collective, and their ratio: 2.5
at most is the aim on two cores, for the sizes that the tests have. With large tensors a ratio of 4
is the memory's: each of twice as many processes moves twice as much.
"""

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

SIZES = {"as in the tests": (1, 5, 12, 1000), "large": (100_000,)}
COUNTS = (2, 4)


def a_round(dist: Any, library: Any, rank: int, count: int, sizes: tuple[int, ...]) -> None:
    """Call every collective once with tensors of every size."""
    for size in sizes:
        x = library.ones(size)
        parts = [library.zeros(size) for _ in range(count)]
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        dist.reduce(x, count - 1)
        dist.all_gather(parts, x)
        dist.reduce_scatter(x, parts)
        dist.all_to_all([library.zeros(size) for _ in range(count)], parts)
        dist.gather(x, parts if rank == 0 else None, dst=0)
        dist.scatter(x, parts if rank == 0 else None, src=0)
        work = dist.isend(x, (rank + 1) % count)
        dist.recv(parts[0], (rank - 1) % count)
        work.wait()
        dist.all_reduce(x, async_op=True).wait()
    dist.all_gather_object([None] * count, {"rank": rank})
    dist.barrier()


def worker(rank: int, count: int, port: int, rounds: int, folder: str) -> None:
    """Join the others; rank 0 writes the medians of a round's seconds."""
    import tracejit
    import tracejit.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCAL_WORLD_SIZE=str(count))
    dist.init_process_group("mpi", rank=rank, world_size=count)
    medians = []
    for sizes in SIZES.values():
        found = []
        for _ in range(rounds):
            begun = time.perf_counter()
            a_round(dist, tracejit, rank, count, sizes)
            found.append(time.perf_counter() - begun)
        medians.append(statistics.median(found))
    if rank == 0:
        with open(os.path.join(folder, str(count)), "a") as file:
            file.write(" ".join(map(str, medians)) + "\n")
    dist.destroy_process_group()


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main() -> None:
    """Print the table."""
    import tempfile

    from tracejit import multiprocessing

    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--rounds", type=int, default=100)
    reader.add_argument("--turns", type=int, default=3)
    options = reader.parse_args()
    whole: dict[int, list[float]] = {count: [] for count in COUNTS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            for count in COUNTS:  # by turns: they have the same neighbours
                with socket.socket() as one:
                    one.bind(("127.0.0.1", 0))
                    port = one.getsockname()[1]
                arguments = (count, port, options.rounds, folder)
                whole[count].append(timed(
                    lambda arguments=arguments, count=count: multiprocessing.spawn(
                        worker, arguments, nprocs=count
                    )
                ))  # fmt: skip
        rounds = {}
        for count in COUNTS:
            with open(os.path.join(folder, str(count))) as file:
                turns = [list(map(float, line.split())) for line in file]
            rounds[count] = [statistics.median(column) for column in zip(*turns)]
    print(f"{os.cpu_count()} cores; medians of {options.turns} turns\n")
    print(f"{'':30}" + "".join(f"{count} processes".rjust(14) for count in COUNTS) + "     ratio")
    for k, name in enumerate(SIZES):
        low, high = (rounds[count][k] * 1e3 for count in COUNTS)
        print(f"{'a round, ' + name:30}{low:11.2f} ms{high:11.2f} ms{high / low:10.2f}")
    low, high = (statistics.median(whole[count]) for count in COUNTS)
    print(f"{'all, with the start':30}{low:12.2f} s{high:12.2f} s{high / low:10.2f}")


if __name__ == "__main__":
    main()
