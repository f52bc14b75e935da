"""What the training examples share: one step, run eagerly and compiled, and what to say about it.

An example gives a task: its `step` is the whole training step as anyone would write it and returns
the loss, its `batches()` gives the arguments of each call. Both ways start from the same seed.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import tracejit

COMPARED_STEPS = 20
TOLERANCE = 1e-4


@dataclass
class Run:
    """One way to train: the losses, what each step took, and the task with what it learned."""

    way: str
    task: Any
    step: Any
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        """What nine in ten steps take at least; other processes slow down the rest."""
        return 1e3 * sorted(self.seconds)[len(self.seconds) // 10]


def arguments(text: str | None, steps: int, quick: int) -> argparse.ArgumentParser:
    """The options of a training example: `steps` as a rule, `quick` with --quick."""
    parser = argparse.ArgumentParser(description=(text or "").split("\n")[0])
    parser.add_argument("--steps", type=int, help=f"training steps, {steps} unless told")
    parser.add_argument("--quick", action="store_true", help=f"{quick} steps, no target asked")
    parser.add_argument("--eager", action="store_true", help="only eagerly")
    parser.add_argument("--compiled", action="store_true", help="only compiled")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where pictures go")
    parser.add_argument("--logs", type=Path, help="folder for TensorBoard's logs of the losses")
    parser.set_defaults(usual=steps, fewer=quick)
    return parser


def parsed(parser: argparse.ArgumentParser, argv: list[str] | None) -> argparse.Namespace:
    """The options, with `asked`: whether the target has to be reached."""
    options = parser.parse_args(argv)
    options.asked = options.steps is None and not options.quick
    if options.steps is None:
        options.steps = options.fewer if options.quick else options.usual
    if options.eager and options.compiled:
        parser.error("--eager and --compiled exclude each other")
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def train(make: Callable[[], Any], options: argparse.Namespace) -> list[Run]:
    """Train the compiled way, after some eager steps to compare with; or one way alone."""
    runs = []
    if not options.compiled:
        steps = options.steps if options.eager else min(COMPARED_STEPS, options.steps)
        runs.append(_train(make, "eager", steps, options.logs))
    if not options.eager:
        runs.append(_train(make, "compiled", options.steps, options.logs))
    return runs


def _train(make: Callable[[], Any], way: str, steps: int, logs: Path | None) -> Run:
    tracejit.manual_seed(0)
    task = make()
    run = Run(way, task, tracejit.script(task.step) if way == "compiled" else task.step)
    writer = None
    if logs is not None:
        from tracejit.utils.tensorboard import SummaryWriter
        writer = SummaryWriter(str(logs / way))
    bar = tqdm(itertools.islice(task.batches(), steps), total=steps, desc=way, disable=None)
    for number, batch in enumerate(bar):
        begin = time.perf_counter()
        run.losses.append(run.step(*batch).item())
        run.seconds.append(time.perf_counter() - begin)
        bar.set_postfix(loss=f"{run.losses[-1]:.4f}", refresh=False)
        if writer is not None:
            writer.add_scalar("loss", run.losses[-1], number)
    if writer is not None:
        writer.close()
    return run


def worst_difference(eager: Run, compiled: Run) -> float:
    """Largest difference of the losses over the first steps, relative to the larger of it and 1."""
    pairs = list(zip(eager.losses, compiled.losses))[:COMPARED_STEPS]
    return max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)


def verdict(runs: list[Run], wrong: Iterable[str] = ()) -> int:
    """Show the runs and what does not hold, `wrong` first; the exit status."""
    wrong = list(wrong)
    print(f"\n{'':<10} {'steps':>6} {'first step':>12} {'per step':>12} {'last loss':>10}")
    for run in runs:
        print(f"{run.way:<10} {len(run.losses):>6} {run.seconds[0]:>10.3f} s "
              f"{run.milliseconds:>9.3f} ms {np.mean(run.losses[-5:]):>10.4f}")
    if len(runs) == 2:
        worst = worst_difference(*runs)
        print(f"losses of the first {min(map(len, (r.losses for r in runs)))} steps agree to "
              f"{worst:.1e}")
        if not worst <= TOLERANCE:
            wrong.append(f"losses differ from eager's by more than {TOLERANCE:g}")
    if runs[-1].way == "compiled":
        report = runs[-1].step.report()
        print(f"captures {report.compiles}, programs {report.variants}, "
              f"replays {report.cache_hits}, breaks {len(report.breaks)}")
        wrong += [f"recompiled, {cause}" for cause in report.recompiles]
        wrong += [f"break at {b.file}:{b.line}, {b.reason}" for b in report.breaks]
    print("\n".join(f"WRONG: {line}" for line in wrong) or "all as it should be")
    return 1 if wrong else 0


def target(options: argparse.Namespace, what: str, found: float, low: float = -np.inf,
           high: float = np.inf) -> list[str]:
    """Print a figure; what is wrong with it, where the run was long enough to ask."""
    print(f"{what}: {found:.4g}")
    bounds = f"at least {low:g}" if low > -np.inf else f"at most {high:g}"
    return [f"{what} {found:.4g}, {bounds} wanted"] if options.asked and not (
        low <= found <= high) else []


def save_pictures(pictures: Any, path: Path, titles: Iterable[str] = (), columns: int = 8) -> None:
    """Grey pictures (count, height, width), values from 0 to 1, side by side in one PNG file."""
    count, height, width = pictures.shape
    rows = -(-count // columns)
    sheet = np.zeros((rows, columns, height + 1, width + 1))
    sheet.reshape(-1, height + 1, width + 1)[:count, 1:, 1:] = pictures.numpy()
    figure = Figure(figsize=(columns, rows * height / width))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.axis("off")
    axis.imshow(sheet.transpose(0, 2, 1, 3).reshape(rows * (height + 1), -1), cmap="gray",
                vmin=0, vmax=1, aspect="auto")
    for place, title in enumerate(titles):
        row, column = divmod(place, columns)
        axis.text(column * (width + 1), row * (height + 1), title, color="tab:orange", va="top")
    figure.savefig(path, dpi=100)
    print(f"pictures in {path}")
