"""Random optimizer runs: parameters, gradients, options and what is done on the way.

In: a seed, and a library (tracejit or PyTorch). Out: parameters after each act, and its error if
there was one, which must be the same in both. A plan is data, so both follow the same one.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

Plan = dict[str, Any]

SHAPES = ((), (3,), (2, 3), (4, 2), (1, 1), (0,))
# Not `capturable`: PyTorch refuses it on the CPU.
FLAGS = {
    "SGD": ("foreach", "fused", "differentiable", "maximize"),
    "Adam": ("foreach", "fused", "differentiable", "maximize"),
    "AdamW": ("foreach", "fused", "differentiable", "maximize"),
    "Adagrad": ("foreach", "fused", "differentiable", "maximize"),
    "NAdam": ("foreach", "differentiable", "maximize"),
    "RAdam": ("foreach", "differentiable", "maximize"),
    "Adamax": ("foreach", "differentiable", "maximize"),
    "RMSprop": ("foreach", "differentiable", "maximize"),
    "Rprop": ("foreach", "differentiable", "maximize"),
    "Adadelta": ("foreach", "differentiable", "maximize"),
    "ASGD": ("foreach", "differentiable", "maximize"),
    "Adafactor": ("foreach", "maximize"),
    "SparseAdam": ("maximize",),
    "Muon": (),
    "LBFGS": (),
}
SPARSE = ("SGD", "Adagrad", "SparseAdam")


# -- making plans ----------------------------------------------------------------------------------


def plan(seed: int) -> Plan:
    """An optimizer of any class over a few parameters, and up to twelve acts."""
    r = random.Random(seed)
    name = r.choice((*FLAGS, "LBFGS", "Adam", "SGD"))
    options = _options(r, name)
    for flag in FLAGS[name]:
        if r.random() < 0.2:
            options[flag] = r.random() < 0.8
    sparse = name == "SparseAdam" or name in SPARSE and r.random() < 0.2
    if sparse:
        options.pop("fused", None)
    one = name == "LBFGS" or r.random() < 0.5
    made: Plan = {
        "name": name, "options": options, "seed": seed,
        "groups": [_group(r, name, first=k == 0) for k in range(1 if one else r.randint(2, 3))],
        "sparse": sparse,
        "tensor_rate": r.random() < 0.1, "named": r.random() < 0.1,
        "loss": r.choice(("square", "quartic", "rosenbrock")),
        "acts": [_act(r, name) for _ in range(r.randint(3, 12))],
    }  # fmt: skip
    return made


def _group(r: random.Random, name: str, first: bool) -> Plan:
    shapes = ((2, 3), (4, 2), (3, 3)) if name == "Muon" else SHAPES
    if name == "SparseAdam":
        shapes = ((2, 3), (4, 2), (3,))
    group: Plan = {"shapes": [r.choice(shapes) for _ in range(r.randint(1, 3))]}
    if first and name == "LBFGS":
        group["shapes"].append((3,))
    if not first and r.random() < 0.7:
        group["lr"] = round(r.uniform(0.001, 0.2), 4)
    return group


def _act(r: random.Random, name: str) -> tuple[Any, ...]:
    kind = r.random()
    if kind < 0.08:
        return ("resume",)
    if kind < 0.12:
        return ("rate", round(r.uniform(0.001, 0.2), 4))
    if kind < 0.16 and name != "LBFGS":
        return ("group", round(r.uniform(0.001, 0.2), 4))
    return ("step", r.choice(("all", "all", "all", "some missing", "none set")))


def _uniform(r: random.Random, low: float, high: float) -> float:
    return round(r.uniform(low, high), 4)


def _options(r: random.Random, name: str) -> Plan:
    """Each option by chance, at random."""
    betas = (_uniform(r, 0, 0.95), _uniform(r, 0.5, 0.999))
    decay, eps = _uniform(r, 0, 0.3), r.choice((1e-8, 1e-3, 0.1))
    of_adam = {"betas": betas, "eps": eps, "weight_decay": decay}
    momentum = r.choice((0.0, _uniform(r, 0.1, 0.95)))
    choices: dict[str, Plan] = {
        "SGD": {"momentum": momentum, "weight_decay": decay} | (
            {"nesterov": True} if momentum and r.random() < 0.5
            else {"dampening": _uniform(r, 0, 0.5)}),
        "Adam": of_adam | {"amsgrad": r.random() < 0.5, "decoupled_weight_decay": True},
        "AdamW": of_adam | {"amsgrad": r.random() < 0.5},
        "Adagrad": {"lr_decay": decay, "weight_decay": decay, "eps": eps,
                    "initial_accumulator_value": _uniform(r, 0, 1)},
        "NAdam": of_adam | {"momentum_decay": _uniform(r, 0, 0.1), "decoupled_weight_decay": True},
        "RAdam": of_adam | {"decoupled_weight_decay": True},
        "Adamax": of_adam,
        "RMSprop": {"alpha": betas[1], "eps": eps, "weight_decay": decay, "momentum": momentum,
                    "centered": r.random() < 0.5},
        "Rprop": {"etas": (_uniform(r, 0.2, 0.9), _uniform(r, 1.05, 2)),
                  "step_sizes": (1e-4, _uniform(r, 0.1, 5))},
        "Adadelta": {"rho": betas[1], "eps": eps, "weight_decay": decay},
        "ASGD": {"lambd": decay, "alpha": betas[1], "t0": r.choice((1e6, 2, 0)),
                 "weight_decay": decay},
        "Adafactor": {"beta2_decay": -_uniform(r, 0.2, 1), "eps": (r.choice((None, 0.1)), 0.01),
                      "d": _uniform(r, 1, 2), "weight_decay": decay},
        "SparseAdam": {"betas": betas, "eps": eps},
        "Muon": {"weight_decay": decay, "momentum": betas[0], "nesterov": r.random() < 0.5,
                 "ns_steps": r.randint(1, 6), "eps": r.choice((1e-7, 0.1)),
                 "adjust_lr_fn": r.choice((None, "original", "match_rms_adamw"))},
        "LBFGS": {"max_iter": r.randint(1, 25), "max_eval": r.choice((None, 1, 4, 40)),
                  "tolerance_grad": r.choice((1e-7, 0.0, 1e-2)),
                  "tolerance_change": r.choice((1e-9, 0.0, 1e-3)),
                  "history_size": r.choice((1, 3, 100))},
    }  # fmt: skip
    options = {key: value for key, value in choices[name].items() if r.random() < 0.6}
    if options.get("nesterov") and name == "SGD":
        options["momentum"] = momentum
    options["lr"] = r.choice((0.0, 1.0, *(_uniform(r, 0.001, 0.3) for _ in range(8))))
    if name == "LBFGS":
        options["lr"] = r.choice((1, 1.0, 0.5, 0.1, 2.0))
        options["line_search_fn"] = r.choice((None, "strong_wolfe", "strong_wolfe"))
    return options


# -- following them --------------------------------------------------------------------------------


def follow(library: Any, made: Plan, noise: float = 0.0, captured: bool = False) -> list[Any]:
    """The parameters, and the error if there was one, after each act.

    noise     the parameters begin this much off, relatively
    captured  steps are calls of a captured function (of tracejit's)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Run(library, made, noise, captured)
        return [run.seen(), *(run.after(act) for act in made["acts"])]


def taken(optimizer: Any, closure: Any) -> None:
    optimizer.step(closure)


class Run:
    """Parameters and their optimizer in one of the libraries."""

    def __init__(self, library: Any, made: Plan, noise: float = 0.0, captured: bool = False):
        self.library, self.made, self.noise = library, made, noise
        self.stepping = library.script(taken, mode="graph") if captured else taken
        self.rng = np.random.default_rng(made["seed"])
        self.error: str | None = None
        self.groups = [self.group(described) for described in made["groups"]]
        self.optimizer: Any = None
        self.attempt(self.make)

    def group(self, described: Plan) -> Plan:
        parameters = [self.parameter(shape) for shape in described["shapes"]]
        given: list[Any] = parameters
        if self.made["named"]:
            given = [(f"p{id(described)}.{k}", p) for k, p in enumerate(parameters)]
        rate = {"lr": described["lr"]} if "lr" in described else {}
        return {"params": given, **rate}

    def parameter(self, shape: tuple[int, ...]) -> Any:
        T = self.library
        value = self.rng.normal(size=shape)
        value = value * (1 + self.noise * np.cos(np.arange(value.size).reshape(shape)))
        return T.nn.Parameter(T.tensor(value, dtype=T.float64))

    def make(self) -> None:
        options = dict(self.made["options"])
        if self.made["tensor_rate"]:
            options["lr"] = self.library.tensor(float(options["lr"]), dtype=self.library.float64)
        groups = [dict(group) for group in self.groups]
        self.optimizer = getattr(self.library.optim, self.made["name"])(groups, **options)

    def parameters(self) -> list[Any]:
        found = [p for group in self.groups for p in group["params"]]
        return [p[1] if isinstance(p, tuple) else p for p in found]

    def attempt(self, act: Any) -> None:
        try:
            act()
            self.error = None
        except Exception as failure:
            self.error = type(failure).__name__

    def after(self, act: tuple[Any, ...]) -> Any:
        if self.optimizer is not None:
            getattr(self, f"do_{act[0]}")(*act[1:])
        return self.seen()

    def do_step(self, gradients: str) -> None:
        if self.made["name"] == "LBFGS":
            self.attempt(lambda: self.stepping(self.optimizer, self.closure))
            return
        for p in self.parameters():
            chance = {"all": 0.0, "some missing": 0.4, "none set": 1.0}[gradients]
            missing = self.rng.random() < chance
            value = self.rng.normal(size=tuple(p.shape))
            p.grad = None if missing else self.gradient(p, value)
        self.attempt(lambda: self.stepping(self.optimizer, None))

    def gradient(self, p: Any, value: np.ndarray) -> Any:
        T = self.library
        if not self.made["sparse"] or p.dim() == 0 or p.numel() == 0:
            return T.tensor(value, dtype=T.float64)
        rows = self.rng.integers(0, p.shape[0], 3)
        return T.sparse_coo_tensor(T.tensor(rows[None]), T.tensor(value[rows]), tuple(p.shape))

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        return loss

    def loss(self) -> Any:
        x = self.library.cat([p.reshape(-1) for p in self.parameters()])
        if self.made["loss"] == "square":
            return ((x - 1) ** 2).sum()
        if self.made["loss"] == "quartic":
            return (x**4 - 2 * x**2 + 0.3 * x).sum()
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def do_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], self.library.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def do_group(self, rate: float) -> None:
        shape = (2, 3) if self.made["name"] == "Muon" else (3,)
        group = self.group({"shapes": [shape], "lr": rate})
        self.groups.append(group)
        self.attempt(lambda: self.optimizer.add_param_group(dict(group)))

    def do_resume(self) -> None:
        kept = self.optimizer.state_dict()
        self.make()
        self.attempt(lambda: self.optimizer.load_state_dict(kept))

    def seen(self) -> Any:
        return self.error, [np.array(p.detach().numpy()) for p in self.parameters()]
