"""Predicts the time of a data-parallel step for many processes, from latency, bandwidth, overlap.

    python -m bench.cost_model --latency 20 --bandwidth 10    networks of your own

In: what `bench.distributed` measures: seconds of an all-reduce of few and of many bytes, of a step
alone, and the bytes of its gradients. Out: seconds of a step, part by part.

An all-reduce of n bytes over p processes is the better of two algorithms (Thakur, Rabenseifner,
Gropp, "Optimization of collective communication operations in MPICH", 2005):

    recursive doubling             log2(p) (latency + n / bandwidth)
    reduce-scatter and all-gather  2 log2(p) latency + 2 (p - 1) / p n / bandwidth

The bandwidth is the measured one, with the additions in it. Where several processes share a host,
they add up inside it first. Then the hosts' sums cross the network, one message a host.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

BUCKET = 25 * 2**20  # bytes, PyTorch's bucket_cap_mb
PROCESSES = (2, 8, 64, 1024)
PER_HOST = 8


@dataclass(frozen=True)
class Link:
    """Latency in seconds and bandwidth in bytes a second between two processes."""

    latency: float
    bandwidth: float

    @classmethod
    def measured(cls, small: tuple[int, float], large: tuple[int, float]) -> Link:
        """Fit a link to (bytes, seconds) of two all-reduces of two processes.

        >>> link = Link.measured((1000, 2e-6), (1_001_000, 1.002e-3))
        >>> round(link.latency * 1e6, 3), round(link.bandwidth / 1e9, 3)
        (1.0, 1.0)
        """
        each = (large[1] - small[1]) / (large[0] - small[0])
        return cls(max(small[1] - small[0] * each, 0.0), 1 / each)

    def all_reduce(self, nbytes: float, processes: int) -> float:
        """Return the seconds of an all-reduce.

        >>> Link(1e-6, 1e9).all_reduce(1e6, 1)
        0.0
        >>> round(Link(1e-6, 1e9).all_reduce(1e6, 4) * 1e6)  # 4 messages, 1.5 times the bytes
        1504
        """
        if processes == 1:
            return 0.0
        rounds = math.ceil(math.log2(processes))
        doubling = rounds * (self.latency + nbytes / self.bandwidth)
        halving = 2 * rounds * self.latency
        halving += 2 * (processes - 1) / processes * nbytes / self.bandwidth
        return min(doubling, halving)


@dataclass(frozen=True)
class Step:
    """A step of one process: seconds of its forward and backward, and of the rest.

    hidden  the part of the time of a bucket that passes beside the backward: 1 where communication
            has a core or a GPU of its own, 0 where it shares the core that computes
    """

    forward: float
    backward: float
    optimizer: float
    nbytes: int
    hidden: float = 1.0

    @property
    def alone(self) -> float:
        return self.forward + self.backward + self.optimizer


def all_reduce(host: Link, network: Link, nbytes: float, processes: int, per_host: int) -> float:
    """Return the seconds of an all-reduce inside hosts, then between them."""
    inside = host.all_reduce(nbytes, min(processes, per_host))
    return inside + network.all_reduce(nbytes, math.ceil(processes / per_host))


def step_seconds(
    step: Step, host: Link, network: Link, processes: int, per_host: int = PER_HOST
) -> float:
    """Return the seconds of a step of so many processes, each with a batch of the same size.

    Gradients come at an even pace through the backward, buckets travel one after another.

    >>> link = Link(0.0, 1e9)
    >>> step = Step(1.0, 2.0, 0.0, 50 * 2**20)
    >>> round(step_seconds(step, link, link, 2), 3)  # the last of two buckets is not hidden
    3.026
    >>> round(step_seconds(Step(1.0, 2.0, 0.0, 50 * 2**20, hidden=0), link, link, 2), 3)
    3.052
    """
    count = max(1, math.ceil(step.nbytes / BUCKET))
    each = all_reduce(host, network, step.nbytes / count, processes, per_host)
    over = 0.0  # when the network is free again
    for number in range(1, count + 1):
        over = max(over, step.forward + step.backward * number / count) + each
    last = step.forward + step.backward
    spared = (last + count * each - over) * step.hidden
    return last + count * each - spared + step.optimizer


def table(steps: dict[str, Step], host: Link, network: Link) -> str:
    """Return a row for each step and number of processes."""
    lines = [f"{'':<34}{'processes':>10}{'step, ms':>10}{'all-reduce':>12}{'efficiency':>12}"]
    for name, step in steps.items():
        for processes in PROCESSES:
            seconds = step_seconds(step, host, network, processes)
            travels = all_reduce(host, network, step.nbytes, processes, PER_HOST)
            lines.append(f"{name:<34}{processes:>10}{seconds * 1e3:>10.2f}{travels * 1e3:>12.2f}"
                         f"{step.alone / seconds:>12.0%}")  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=20.0, help="between hosts, microseconds")
    parser.add_argument("--bandwidth", type=float, default=10.0, help="between hosts, GB a second")
    parser.add_argument("--host-latency", type=float, default=5.0, help="within a host")
    parser.add_argument("--host-bandwidth", type=float, default=5.0, help="within a host")
    parser.add_argument("--milliseconds", type=float, default=500.0, help="of a step alone")
    parser.add_argument("--megabytes", type=float, default=498.0, help="of gradients")
    parser.add_argument("--hidden", type=float, default=1.0, help="0 on a shared core, else 1")
    chosen = parser.parse_args()
    seconds = chosen.milliseconds / 1e3
    step = Step(seconds * 0.3, seconds * 0.6, seconds * 0.1, int(chosen.megabytes * 1e6),
                chosen.hidden)  # fmt: skip
    host = Link(chosen.host_latency * 1e-6, chosen.host_bandwidth * 1e9)
    network = Link(chosen.latency * 1e-6, chosen.bandwidth * 1e9)
    print(table({f"{chosen.megabytes:g} MB, {chosen.milliseconds:g} ms": step}, host, network))


if __name__ == "__main__":
    main()
