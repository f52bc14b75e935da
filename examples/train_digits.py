"""Train on scikit-learn's handwritten digits, eagerly and compiled, and compare the two.

The whole step (forward, backward, AdamW) is one function; `@tracejit.script` is all that differs.
An MLP, and a small attention block that reads the 8 rows of an image as tokens.

    python examples/train_digits.py            about a minute
    python examples/train_digits.py --quick    a few seconds, no accuracy asked
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import tracejit
import tracejit.nn.functional as F
from tracejit import nn

BATCH = 64
COMPARED_STEPS = 50
TOLERANCE = 1e-5
WANTED_ACCURACY = 0.97


@dataclass
class Digits:
    """Images as rows of 64 float32 in 0..1, and their classes, split for training and testing."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    @classmethod
    def load(cls) -> "Digits":
        images, classes = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(images))
        images = (images[order] / 16).astype(np.float32)
        classes = classes[order].astype(np.int64)
        cut = len(images) * 4 // 5
        return cls((images[:cut], classes[:cut]), (images[cut:], classes[cut:]))

    def batches(self, epochs: int) -> Iterator[tuple[Any, Any]]:
        """Shuffled batches of every epoch; the last one of each is short."""
        rng = np.random.default_rng(1)
        images, classes = self.train
        for _ in range(epochs):
            order = rng.permutation(len(images))
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                yield tracejit.from_numpy(images[rows]), tracejit.from_numpy(classes[rows])

    def steps(self, epochs: int) -> int:
        return epochs * math.ceil(len(self.train[0]) / BATCH)


class MLP(nn.Module):
    """64 pixels, two hidden layers with GELU, 10 classes."""

    def __init__(self, width: int = 128):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        return self.last(F.gelu(self.second(F.gelu(self.first(x)))))


class RowAttention(nn.Module):
    """The 8 rows of an image as tokens: one pre-norm attention block, then a linear head."""

    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.width, self.heads = width, heads
        self.embed = nn.Linear(8, width)
        self.position = nn.Parameter(0.02 * tracejit.randn(8, width))
        self.norm_attention, self.norm_hidden = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.head = nn.Linear(8 * width, 10)

    def attend(self, tokens):
        count, per_head = tokens.shape[0], self.width // self.heads

        def by_head(x):
            return x.reshape(count, 8, self.heads, per_head).permute(0, 2, 1, 3)

        q, k, v = map(by_head, self.query_key_value(tokens).split(self.width, dim=-1))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(per_head), dim=-1)
        return self.out((weights @ v).permute(0, 2, 1, 3).reshape(count, 8, self.width))

    def forward(self, x):
        tokens = self.embed(x.reshape(x.shape[0], 8, 8)) + self.position
        tokens = tokens + self.attend(self.norm_attention(tokens))
        tokens = tokens + self.down(F.gelu(self.up(self.norm_hidden(tokens))))
        return self.head(tokens.reshape(x.shape[0], 8 * self.width))


@dataclass
class Run:
    """What one training run gave."""

    name: str
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracy: float = 0.0
    step: Any = None

    @property
    def milliseconds(self) -> float:
        """What nine in ten steps take at least; other processes slow down the rest."""
        return 1e3 * sorted(self.seconds[1:])[len(self.seconds) // 10]


def training_step(model: nn.Module, optimizer: Any):
    """The step as anyone would write it: nothing in it knows about compiling."""

    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train(kind: type[nn.Module], digits: Digits, epochs: int, compiled: bool) -> Run:
    """Train from the same seed on the same batches; only `compiled` differs between runs."""
    tracejit.manual_seed(0)
    model = kind()
    optimizer = tracejit.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    step = training_step(model, optimizer)
    if compiled:
        step = tracejit.script(step)
    run = Run(f"{kind.__name__} {'compiled' if compiled else 'eager'}", step=step)
    bar = tqdm(digits.batches(epochs), total=digits.steps(epochs), desc=run.name, disable=None)
    for x, target in bar:
        begin = time.perf_counter()
        loss = step(x, target).item()
        run.seconds.append(time.perf_counter() - begin)
        run.losses.append(loss)
        bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
    images, classes = digits.test
    with tracejit.no_grad():
        guesses = model(tracejit.from_numpy(images)).argmax(dim=1).numpy()
    run.accuracy = float((guesses == classes).mean())
    return run


def worst_difference(eager: Run, compiled: Run) -> float:
    """Largest relative difference of the losses over the first steps."""
    pairs = list(zip(eager.losses, compiled.losses))[:COMPARED_STEPS]
    return max(abs(a - b) / abs(a) for a, b in pairs)


def show_runs(eager: Run, compiled: Run) -> None:
    print(f"\n{eager.name.split()[0]:<14} {'first step':>12} {'per step':>12} {'held out':>10}")
    for run in (eager, compiled):
        print(f"  {run.name.split()[1]:<12} {run.seconds[0]:>10.3f} s {run.milliseconds:>9.3f} ms"
              f" {run.accuracy:>9.2%}")
    print(f"  speed-up {eager.milliseconds / compiled.milliseconds:.1f}x; losses of the first "
          f"{COMPARED_STEPS} steps agree to {worst_difference(eager, compiled):.1e} (relative)")


def show_report(step: Any) -> None:
    """What was compiled: the launches, one kernel's source, some of the guards."""
    report = step.report()
    print(f"\ncaptures {report.compiles}, programs {report.variants}, replays {report.cache_hits}, "
          f"breaks {len(report.breaks)}\n")
    print(report)
    fused = [kernel for kernel in report.kernels if len(kernel.ops) > 1 and kernel.source]
    if fused:
        lines = min((kernel.source for kernel in fused), key=len).splitlines()
        print("\nthe shortest fused kernel, as generated:\n")
        print("\n".join(f"    {line}" for line in lines[:30]))
        print(f"    ... {len(lines) - 30} more lines" if len(lines) > 30 else "", end="\n")
    print(f"\nguarded (what a call must match to replay), some of {len(report.guards)}:")
    for text in ("dimensions", "any value", ".training", "same tensor", "sizes:", "mode:"):
        for guard in [line for line in report.guards if text in line][:2]:
            print(f"    {guard}")


def plot(runs: list[Run], path: Path) -> None:
    """Losses over steps: the compiled run's line lies on the eager one's."""
    kinds = list(dict.fromkeys(run.name.split()[0] for run in runs))
    figure = Figure(figsize=(5.5 * len(kinds), 3.6), layout="tight")
    axes = figure.subplots(1, len(kinds), squeeze=False)
    for axis, kind in zip(axes[0], kinds):
        for run in (run for run in runs if run.name.startswith(kind)):
            eager = run.name.endswith("eager")
            axis.plot(run.losses, lw=4 if eager else 1.2, alpha=0.35 if eager else 1,
                      color="tab:orange" if eager else "tab:blue",
                      label=f"{run.name.split()[1]}, {run.milliseconds:.2f} ms per step")
        axis.set(title=f"{kind} on digits", xlabel="step", ylabel="training loss", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def verdict(runs: list[Run], quick: bool) -> list[str]:
    """What does not hold, in words; empty when all does."""
    wrong = []
    for eager, compiled in zip(runs[::2], runs[1::2]):
        name, report = compiled.name, compiled.step.report()
        if not worst_difference(eager, compiled) <= TOLERANCE:
            wrong.append(f"{name}: losses differ from eager's by more than {TOLERANCE:g}")
        if report.compiles != 1:
            wrong.append(f"{name}: {report.compiles} captures, 1 should serve every batch")
        wrong += [f"{name}: recompiled, {cause}" for cause in report.recompiles]
        wrong += [f"{name}: break at {b.file}:{b.line}, {b.reason}" for b in report.breaks]
    if not quick and not runs[1].accuracy >= WANTED_ACCURACY:
        found = f"{runs[1].accuracy:.2%} held out, {WANTED_ACCURACY:.0%} wanted"
        wrong.append(f"{runs[1].name}: {found}")
    return wrong


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three epochs, no accuracy asked")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--plot", type=Path, default=Path("out/train_digits.png"))
    options = parser.parse_args(argv)
    epochs = 3 if options.quick else options.epochs

    digits = Digits.load()
    short = len(digits.train[0]) % BATCH
    print(f"{len(digits.train[0])} images to train on, {len(digits.test[0])} held out; batches of "
          f"{BATCH}, the last of each epoch {short}; {digits.steps(epochs)} steps")
    runs = []
    for kind in (MLP, RowAttention):
        runs += [train(kind, digits, epochs, compiled) for compiled in (False, True)]
        show_runs(*runs[-2:])
    print("\nwhat became of the MLP's step")
    show_report(runs[1].step)
    plot(runs, options.plot)
    print(f"\nlosses plotted in {options.plot}")
    wrong = verdict(runs, options.quick)
    print("\n".join(f"WRONG: {line}" for line in wrong) or "all as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
