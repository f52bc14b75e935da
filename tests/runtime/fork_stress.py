"""Forks while other threads capture, compile, run, differentiate, draw and load: no child hangs.

    python -m tests.runtime.fork_stress --count 200 --seed 0

In: how many forks. Out: one line with the number of forks, of hangs and of wrong results. Called by
`test_forks.py`, in a process of its own.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import threading
import time
from collections.abc import Callable

import tracejit as tj
from tracejit.core.memory import forks
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache

DEADLINE = 45.0  # seconds that a child has; it needs a few
generator = tj.Generator()
linear = tj.nn.Linear(4, 3)


def chain(x, n):
    for k in range(n):
        x = (x * 1.01 + k).sin()
    return x.sum()


def branches(x):
    if x.sum() > 0:
        y = x.exp()
    else:
        y = -x
    for row in y:
        x = x + row
    return x


def step(x):
    linear.zero_grad()
    loss = linear(x).pow(2).mean()
    loss.backward()
    return loss


def drawing(x):
    return x + tj.rand(4, generator=generator)


shared = {f: tj.script(f) for f in (chain, branches, step, drawing)}


def new_number(k: int) -> Callable:
    """A function that needs kernels that nobody has compiled."""
    return tj.script(lambda x: (x * (k + 0.5)).cumsum(0) / (k + 2))


def capture(rng: random.Random) -> None:
    tj.script(chain)(tj.ones(5), rng.randrange(50, 400))
    tj.script(branches)(tj.randn(4, 4))


def capture_shared(rng: random.Random) -> None:
    shared[chain](tj.ones(5), rng.randrange(2, 200))
    shared[branches](tj.randn(rng.randrange(1, 5), 4))


def compile_new(rng: random.Random) -> None:
    new_number(rng.randrange(10**6))(tj.ones(6))


def train(rng: random.Random) -> None:
    shared[step](tj.randn(rng.randrange(1, 9), 4))


def draw(rng: random.Random) -> None:
    tj.rand(3)
    shared[drawing](tj.zeros(4))
    generator.manual_seed(rng.randrange(100))


def load(rng: random.Random) -> None:
    with cache._lock:
        for digest in rng.sample(sorted(cache._addresses), min(3, len(cache._addresses))):
            directory = cache.native_directory()
            if directory is not None:
                cache._load_from(directory, [Kernel("again", "", digest, loops=1)])


def futures(rng: random.Random) -> None:
    later = tj.futures.Future()
    threading.Thread(target=later.set_result, args=(1,)).start()
    later.then(lambda f: f.wait() + 1).wait()


WORK = (capture, capture_shared, compile_new, train, draw, load, futures)


def child(rng: random.Random) -> int:
    """Do a bit of everything; returns the exit status: 0 where the results are right."""
    x = tj.rand(4) - 0.5
    pending = tj.futures.Future()
    pending.set_result(3)
    right = (
        tj.allclose(shared[chain](x, 3), chain(x, 3), atol=1e-5)
        and tj.allclose(tj.script(branches)(x.expand(2, 4)), branches(x.expand(2, 4)), atol=1e-5)
        and tj.allclose(new_number(7)(x), new_number(7).function(x), atol=1e-5)
        and tj.allclose(shared[step](x[None]), step(x[None]), atol=1e-5)
        and shared[drawing](x).shape == (4,)
        and pending.wait() == 3
        and all(p.isfinite().all() for p in linear.parameters())
    )
    return 0 if right else 3


def fork_once(rng: random.Random) -> tuple[int | None, float]:
    """The status of a child, None where it hangs, and how long the fork itself took."""
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        status = 4
        try:
            faulthandler.dump_traceback_later(DEADLINE - 5)  # where it hangs
            status = child(rng)
        finally:
            os._exit(status)
    took = time.perf_counter() - started
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), took
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None, took


def main() -> None:
    """Fork `--count` times and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stop, errors = threading.Event(), []

    def keep_on(work: Callable, rng: random.Random) -> None:
        while not stop.is_set():
            try:
                work(rng)
            except BaseException as error:
                errors.append(f"{work.__name__}: {error!r}")
                return

    threads = [
        threading.Thread(target=keep_on, args=(work, random.Random(f"{options.seed} {k}")))
        for k, work in enumerate(WORK)
    ]
    for thread in threads:
        thread.start()
    rng = random.Random(options.seed)
    statuses, longest = [], 0.0
    for _ in range(options.count):
        time.sleep(rng.random() * 0.05)
        status, took = fork_once(rng)
        statuses.append(status)
        longest = max(longest, took)
    stop.set()
    for thread in threads:
        thread.join()
    hung = statuses.count(None)
    wrong = sum(status not in (0, None) for status in statuses)
    print(f"forks {len(statuses)} hung {hung} wrong {wrong} errors {errors} "
          f"longest {longest:.2f}s locks {len(forks._renewed)}")


if __name__ == "__main__":
    main()
