"""Random schedules: an optimizer, schedulers on it, and what is done with them.

In: a seed and a library (tracejit or PyTorch). Out: rates, momenta and errors after each act; they
must be the same in both. A plan is data, so that both libraries follow the same one.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

Plan = dict[str, Any]

LEAVES = (
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR",
    "ExponentialLR", "PolynomialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "OneCycleLR", "SWALR",
)  # fmt: skip


class Decay:
    """A callable with a state of its own, which state dicts keep."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, epoch: int) -> float:
        return self.by**epoch


# -- making plans ----------------------------------------------------------------------------------


def plan(seed: int) -> Plan:
    """An optimizer, one or two schedulers and up to thirty acts."""
    r = random.Random(seed)
    groups = r.choice((1, 1, 2, 3))
    made: Plan = {
        "optimizer": r.choice(("sgd", "momentum", "adam")),
        "rates": [round(r.uniform(0.01, 1), 3) for _ in range(groups)],
        "tensor_rates": r.random() < 0.1,
        "schedulers": [_scheduler(r, groups, 0) for _ in range(r.choice((1, 1, 1, 2)))],
        "acts": [],
    }
    if r.random() < 0.15:
        made["schedulers"].append(_plateau(r, groups))
    for _ in range(r.randint(4, 30)):
        made["acts"].append(_act(r, groups))
    return made


def _act(r: random.Random, groups: int) -> tuple[Any, ...]:
    kind = r.random()
    if kind < 0.04:
        return ("resume",)
    if kind < 0.08:
        return ("to", r.randint(0, 12))
    if kind < 0.11:
        return ("rate", r.randrange(groups), round(r.uniform(0.01, 1), 3))
    if kind < 0.12:
        return ("group", 0.05)
    return ("step", round(r.uniform(0, 1), 2))


def _scheduler(r: random.Random, groups: int, depth: int) -> Plan:
    kind = r.random()
    if depth < 2 and kind < (0.45, 0.25)[depth]:
        parts = [_scheduler(r, groups, depth + 1) for _ in range(r.randint(1, 3))]
        if r.random() < 0.35:
            return {"class": "ChainedScheduler", "parts": parts, "given": r.random() < 0.5}
        milestones = sorted(r.randint(0, 9) for _ in parts[1:])
        return {"class": "SequentialLR", "parts": parts, "milestones": milestones,
                "last_epoch": r.choice((-1, -1, -1, 0, 5))}  # fmt: skip
    name = r.choice(LEAVES)
    options = globals()[f"_{name}"](r, groups)
    options["last_epoch"] = r.choice((-1, -1, -1, -1, 0, 1, 5))
    return {"class": name, "options": options}


def _each(r: random.Random, groups: int, low: float, high: float) -> Any:
    if r.random() < 0.3:
        return [round(r.uniform(low, high), 3) for _ in range(groups)]
    return round(r.uniform(low, high), 3)


def _function(r: random.Random) -> tuple[str, float]:
    return (r.choice(("power", "object", "slope")), round(r.uniform(0.5, 1), 3))


def _LambdaLR(r: random.Random, groups: int) -> Plan:
    many = r.random() < 0.3
    return {"lr_lambda": [_function(r) for _ in range(groups)] if many else _function(r)}


_MultiplicativeLR = _LambdaLR


def _StepLR(r: random.Random, groups: int) -> Plan:
    return {"step_size": r.randint(1, 5), "gamma": round(r.uniform(0.1, 1), 3)}


def _MultiStepLR(r: random.Random, groups: int) -> Plan:
    at = sorted(r.randint(0, 9) for _ in range(r.randint(0, 4)))
    return {"milestones": at, "gamma": round(r.uniform(0.1, 1), 3)}


def _ConstantLR(r: random.Random, groups: int) -> Plan:
    return {"factor": r.choice((0.0, 0.5, 1.0, 0.3)), "total_iters": r.randint(0, 6)}


def _LinearLR(r: random.Random, groups: int) -> Plan:
    return {"start_factor": r.choice((0.1, 0.5, 1.0)), "end_factor": r.choice((0.0, 0.4, 1.0)),
            "total_iters": r.randint(0, 7)}  # fmt: skip


def _ExponentialLR(r: random.Random, groups: int) -> Plan:
    return {"gamma": round(r.uniform(0.5, 1.1), 3)}


def _PolynomialLR(r: random.Random, groups: int) -> Plan:
    return {"total_iters": r.randint(0, 8), "power": r.choice((0.5, 1.0, 2.0))}


def _CosineAnnealingLR(r: random.Random, groups: int) -> Plan:
    return {"T_max": r.randint(1, 8), "eta_min": r.choice((0.0, 0.01))}


def _CosineAnnealingWarmRestarts(r: random.Random, groups: int) -> Plan:
    return {"T_0": r.randint(1, 4), "T_mult": r.randint(1, 3), "eta_min": r.choice((0.0, 0.01))}


def _CyclicLR(r: random.Random, groups: int) -> Plan:
    return {
        "base_lr": _each(r, groups, 0.01, 0.2), "max_lr": _each(r, groups, 0.3, 1),
        "step_size_up": r.randint(1, 4), "step_size_down": r.choice((None, 1, 3)),
        "mode": r.choice(("triangular", "triangular2", "exp_range")),
        "gamma": r.choice((1.0, 0.9)), "cycle_momentum": r.random() < 0.6,
        "scale_fn": r.choice((None, None, ("slope", 0.7), ("object", 0.8))),
        "scale_mode": r.choice(("cycle", "iterations")),
    }  # fmt: skip


def _OneCycleLR(r: random.Random, groups: int) -> Plan:
    return {
        "max_lr": _each(r, groups, 0.3, 1), "total_steps": r.randint(1, 30),
        "pct_start": r.choice((0.0, 0.3, 0.6, 1.0)), "three_phase": r.random() < 0.4,
        "anneal_strategy": r.choice(("cos", "linear")), "cycle_momentum": r.random() < 0.6,
        "base_momentum": _each(r, groups, 0.5, 0.8), "div_factor": r.choice((25.0, 5.0)),
    }  # fmt: skip


def _SWALR(r: random.Random, groups: int) -> Plan:
    return {"swa_lr": _each(r, groups, 0.01, 0.5), "anneal_epochs": r.randint(0, 6),
            "anneal_strategy": r.choice(("cos", "linear"))}  # fmt: skip


def _plateau(r: random.Random, groups: int) -> Plan:
    return {"class": "ReduceLROnPlateau", "options": {
        "mode": r.choice(("min", "max")), "factor": round(r.uniform(0.1, 0.9), 2),
        "patience": r.randint(0, 3), "threshold": r.choice((1e-4, 0.1)),
        "threshold_mode": r.choice(("rel", "abs")), "cooldown": r.randint(0, 2),
        "min_lr": _each(r, groups, 0, 0.05), "eps": r.choice((1e-8, 0.01)),
    }}  # fmt: skip


# -- following them --------------------------------------------------------------------------------


def follow(library: Any, made: Plan) -> list[Any]:
    """What can be seen after each act."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = World(library, made)
        return [world.seen(), *(world.after(act) for act in made["acts"])]


class World:
    """An optimizer with its schedulers, and the last error."""

    def __init__(self, library: Any, made: Plan) -> None:
        self.library, self.made = library, made
        self.error: str | None = None
        self.make()

    def make(self) -> None:
        T = self.library
        groups = []
        for rate in self.made["rates"]:
            weight = T.nn.Parameter(T.ones(2, dtype=T.float64))
            weight.grad = T.ones(2, dtype=T.float64)
            lr = T.tensor(rate, dtype=T.float64) if self.made["tensor_rates"] else rate
            groups.append({"params": [weight], "lr": lr, "initial_lr": rate})
            groups[-1].update(max_lr=1.0, min_lr=1e-4, max_momentum=0.95, base_momentum=0.8)
        kind = self.made["optimizer"]
        if kind == "adam":
            self.optimizer = T.optim.Adam(groups, lr=0.1)
        else:
            momentum = 0.9 if kind == "momentum" else 0.0
            self.optimizer = T.optim.SGD(groups, lr=0.1, momentum=momentum)
        self.schedulers: list[Any] = []
        self.attempt(self.schedule)

    def schedule(self) -> None:
        for described in self.made["schedulers"]:
            self.schedulers.append(self.scheduler(described))

    def scheduler(self, described: Plan) -> Any:
        L = self.library.optim.lr_scheduler
        name = described["class"]
        if name == "ChainedScheduler":
            parts = [self.scheduler(part) for part in described["parts"]]
            return L.ChainedScheduler(parts, self.optimizer if described["given"] else None)
        if name == "SequentialLR":
            parts = [self.scheduler(part) for part in described["parts"]]
            return L.SequentialLR(self.optimizer, parts, described["milestones"],
                                  last_epoch=described["last_epoch"])  # fmt: skip
        options = {key: _made(value) for key, value in described["options"].items()}
        where = self.library.optim.swa_utils if name == "SWALR" else L
        return getattr(where, name)(self.optimizer, **options)

    def attempt(self, act: Any) -> None:
        try:
            act()
            self.error = None
        except Exception as failure:
            self.error = type(failure).__name__

    def after(self, act: tuple[Any, ...]) -> Any:
        getattr(self, f"do_{act[0]}")(*act[1:])
        return self.seen()

    def do_step(self, metric: float) -> None:
        self.optimizer.step()
        for scheduler in self.schedulers:
            watches = type(scheduler).__name__ == "ReduceLROnPlateau"
            self.attempt(lambda s=scheduler, w=watches: s.step(metric) if w else s.step())
            if self.error:
                break

    def do_to(self, epoch: int) -> None:
        if self.schedulers:
            self.attempt(lambda: self.schedulers[0].step(epoch))

    def do_rate(self, k: int, rate: float) -> None:
        group = self.optimizer.param_groups[k]
        if isinstance(group["lr"], self.library.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate

    def do_group(self, rate: float) -> None:
        weight = self.library.nn.Parameter(self.library.ones(1))
        group = {"params": [weight], "lr": rate, "initial_lr": rate, "swa_lr": 0.1}
        self.attempt(lambda: self.optimizer.add_param_group(group))

    def do_resume(self) -> None:
        kept = [scheduler.state_dict() for scheduler in self.schedulers]
        optimizer = self.optimizer.state_dict()
        self.make()

        def load() -> None:
            self.optimizer.load_state_dict(optimizer)
            for scheduler, state in zip(self.schedulers, kept):
                scheduler.load_state_dict(state)

        self.attempt(load)

    def seen(self) -> Any:
        groups = self.optimizer.param_groups
        rates = [float(group["lr"]) for group in groups]
        momenta = [group.get("momentum", group.get("betas", (0,))) for group in groups]
        firsts = [float(m[0] if isinstance(m, tuple) else m) for m in momenta]
        last = [getattr(scheduler, "_last_lr", []) for scheduler in self.schedulers]
        epochs = [getattr(scheduler, "last_epoch", None) for scheduler in self.schedulers]
        return self.error, rates, firsts, [[float(x) for x in each] for each in last], epochs


def _made(value: Any) -> Any:
    """Functions of their descriptions."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [_made(each) for each in value]
    if not (isinstance(value, tuple) and isinstance(value[0], str)):
        return value
    kind, by = value
    if kind == "power":
        return lambda epoch: by**epoch
    return Decay(by) if kind == "object" else lambda epoch: 1 - by * epoch / 20
