"""Small ops of eager mode beside PyTorch's: microseconds of one op on 16 numbers.

    python -m bench.eager_ops                  all rows
    python -m bench.eager_ops --only view,sum  rows whose name contains one of these

In: tracejit and PyTorch, each on one thread. Out: for each row the median of runs in turns, the
ratio, and the geometric mean of all ratios.
"""

import argparse
import gc
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TRACEJIT_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

Call = Callable[[], Any]
_RUN = 2e-3  # seconds of one run


def _chain(xp: Any) -> Call:
    x, w = xp.ones(16), xp.ones(16, requires_grad=True)

    def forward_and_backward() -> None:
        y = w
        for _ in range(50):
            y = y * x
            y = y + x
        y.sum().backward()
        w.grad = None

    return forward_and_backward


def _mlp(xp: Any) -> Call:
    model = xp.nn.Sequential(xp.nn.Linear(8, 8), xp.nn.ReLU(), xp.nn.Linear(8, 4))
    optimizer = xp.optim.SGD(model.parameters(), lr=0.01)
    x, target = xp.ones(8, 8), xp.zeros(8, 4)

    def step() -> None:
        optimizer.zero_grad()
        xp.nn.functional.mse_loss(model(x), target).backward()
        optimizer.step()

    return step


def rows(xp: Any) -> dict[str, Call]:
    """Return the calls of one library, by name."""
    f = xp.nn.functional
    x, y, w = xp.linspace(0.1, 2, 16), xp.linspace(1, 3, 16), xp.ones(16, requires_grad=True)
    m, n = xp.linspace(0, 1, 64).reshape(8, 8), xp.linspace(1, 2, 64).reshape(8, 8)
    p, bias = xp.ones(8, 8, requires_grad=True), xp.ones(8)
    labels, whole = xp.arange(8), xp.arange(16)
    condition, one, v = x > 1, xp.tensor(1.5), xp.linspace(0, 1, 8)

    def in_place() -> Any:
        return x.mul_(1.0)

    return {
        "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "div": lambda: x / y,
        "mul by a number": lambda: x * 2.5, "number minus": lambda: 1 - x, "neg": lambda: -x,
        "integers": lambda: whole + whole, "add, function": lambda: xp.add(x, y),
        "add with history": lambda: w + y, "mul with history": lambda: w * y,
        "relu": lambda: xp.relu(x), "relu with history": lambda: xp.relu(w),
        "exp": lambda: xp.exp(x), "log": lambda: xp.log(x), "sqrt": lambda: x.sqrt(),
        "tanh": lambda: xp.tanh(x), "sigmoid": lambda: xp.sigmoid(x), "abs": lambda: x.abs(),
        "tanh with history": lambda: xp.tanh(w), "compare": lambda: x > y,
        "compare with a number": lambda: x > 0.5, "where": lambda: xp.where(condition, x, y),
        "view": lambda: x.view(4, 4), "view with history": lambda: w.view(4, 4),
        "reshape": lambda: x.reshape(4, 4), "transpose": lambda: m.transpose(0, 1),
        "t": lambda: m.t(), "unsqueeze": lambda: x.unsqueeze(0), "permute": lambda: m.permute(1, 0),
        "x[0]": lambda: x[0], "x[2:5]": lambda: x[2:5], "x[0] with history": lambda: w[0],
        "expand": lambda: one.expand(4), "detach": lambda: w.detach(), "item": lambda: one.item(),
        "sum": lambda: x.sum(), "sum with history": lambda: w.sum(), "mean": lambda: x.mean(),
        "sum of one dimension": lambda: m.sum(1), "max": lambda: x.max(),
        "argmax": lambda: x.argmax(), "8x8 product": lambda: m @ n,
        "matrix and vector": lambda: m @ v, "vector and matrix": lambda: v @ m,
        "dot": lambda: x.dot(y), "matrix and vector with history": lambda: p @ v,
        "product with history": lambda: m @ p, "linear": lambda: f.linear(m, n, bias),
        "softmax": lambda: xp.softmax(m, 1), "log_softmax": lambda: xp.log_softmax(m, 1),
        "gelu": lambda: f.gelu(x), "layer_norm": lambda: f.layer_norm(m, (8,)),
        "cross_entropy": lambda: f.cross_entropy(m, labels), "mul_ in place": in_place,
        "100 ops, there and back": _chain(xp), "step of a tiny MLP": _mlp(xp),
    }  # fmt: skip


def _seconds(call: Call, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def compared(ours: Call, theirs: Call, rounds: int) -> tuple[float, float]:
    """Return the medians of both, in microseconds, of runs in turns."""
    found: list[list[float]] = [[], []]
    counts = []
    for call in (ours, theirs):
        _seconds(call, 600)  # until the native functions are made
        counts.append(max(1, int(_RUN / _seconds(call, 10))))
    gc.collect()
    for _ in range(rounds):
        for times, call, count in zip(found, (ours, theirs), counts):
            times.append(_seconds(call, count))
    return statistics.median(found[0]) * 1e6, statistics.median(found[1]) * 1e6


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.eager_ops", description=__doc__)
    parser.add_argument("--only", default="", help="parts of names, comma separated")
    parser.add_argument("--rounds", type=int, default=25, help="turns of each library")
    options = parser.parse_args(argv)
    import torch

    import tracejit

    torch.set_num_threads(1)
    wanted = [part.strip() for part in options.only.split(",")]
    ratios = []
    print(f"{'us per call':28} tracejit  PyTorch   ratio")
    for (name, ours), theirs in zip(rows(tracejit).items(), rows(torch).values()):
        if any(part in name for part in wanted):
            mine, other = compared(ours, theirs, options.rounds)
            ratios.append(mine / other)
            print(f"{name:28} {mine:8.2f} {other:8.2f} {ratios[-1]:7.2f}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"{len(ratios)} ratios: geometric mean {mean:.2f}, largest {max(ratios):.2f}, above 1.5: "
          f"{sum(r > 1.5 for r in ratios)}")


if __name__ == "__main__":
    main()
