"""Stop, save, load, go on: a compiled run that is resumed repeats the uninterrupted one exactly.

What a checkpoint needs to hold: the model, the optimizer, the schedule, the state of the random
generator (there is dropout), and where in the data one was.

    python examples/resume.py
"""

import sys
from pathlib import Path

import numpy as np
import runs

import tracejit
import tracejit.nn.functional as F
from tracejit import nn
from tracejit.datasets import Digits

BATCH = 64


class Task:
    """A network with dropout and batch norm, AdamW, a cosine schedule; batches by their number."""

    def __init__(self, data):
        self.images, self.classes = data
        self.model = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(),
                                   nn.Dropout(0.2), nn.Linear(96, 10))
        self.optimizer = tracejit.optim.AdamW(self.model.parameters(), lr=5e-3)
        self.schedule = tracejit.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=400)
        self.done = 0

    def batches(self):
        while True:
            rows = np.random.default_rng(self.done).integers(0, len(self.images), BATCH)
            yield self.images[rows], self.classes[rows]
            self.schedule.step()
            self.done += 1

    def step(self, x, target):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), target)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def save(self, path):
        tracejit.save({"done": self.done, "generator": tracejit.get_rng_state(),
                       **{name: part.state_dict() for name, part in self.parts().items()}}, path)

    def load(self, path):
        checkpoint = tracejit.load(path)
        for name, part in self.parts().items():
            part.load_state_dict(checkpoint[name])
        tracejit.set_rng_state(checkpoint["generator"])
        self.done = checkpoint["done"]


def go_on(task, steps, compiled):
    """Losses of so many more steps."""
    step = tracejit.script(task.step) if compiled else task.step
    losses: list[float] = []
    for batch in task.batches():
        if len(losses) == steps:
            break
        losses.append(step(*batch).item())
    return losses


def resumed(data, steps, compiled, path: Path):
    """Losses of a run that is saved half-way, and taken up by objects that know nothing of it."""
    tracejit.manual_seed(0)
    task = Task(data)
    losses = go_on(task, steps // 2, compiled)
    task.save(path)
    tracejit.manual_seed(99)
    again = Task(data)
    again.load(path)
    return losses + go_on(again, steps - steps // 2, compiled)


def main(argv: list[str] | None = None) -> int:
    options = runs.parsed(runs.arguments(__doc__, steps=300, quick=30), argv)
    digits = Digits()
    data = digits.data.flatten(1).float() / digits.full, digits.targets
    found = runs.train(lambda: Task(data), options)
    wrong = []
    for run in found:
        losses = resumed(data, len(run.losses), run.way == "compiled", options.out / "resume.pt")
        if losses == run.losses:
            print(f"{run.way}: resumed after {len(losses) // 2} of {len(losses)} steps, "
                  "all losses equal")
        else:
            place = next(i for i, (a, b) in enumerate(zip(losses, run.losses)) if a != b)
            wrong.append(f"{run.way}: resumed, step {place} gives {losses[place]}, "
                         f"uninterrupted {run.losses[place]}")
    wrong += runs.target(options, "last loss", float(np.mean(found[-1].losses[-10:])), high=0.1)
    return runs.verdict(found, wrong)


if __name__ == "__main__":
    sys.exit(main())
