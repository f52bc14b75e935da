"""Schedules set PyTorch's rates (and momenta), and continue from a state dict."""

import math
import re

import pytest

import tracejit
from tracejit import optim
from tracejit.optim import lr_scheduler

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: epoch]}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 6}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 5}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": [0.5, 1.0], "epochs": 4, "steps_per_epoch": 5, "three_phase": True}),
    (
        "OneCycleLR",
        {"max_lr": 0.5, "total_steps": 20, "anneal_strategy": "linear", "cycle_momentum": False},
    ),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - 1 / (2 + epoch)}),
    ("PolynomialLR", {"total_iters": 7}),
    ("PolynomialLR", {"total_iters": 30, "power": 2.5}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": [0.5, 0.7], "step_size_up": 3, "step_size_down": 4}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3, "mode": "triangular2"}),
    (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9},
    ),
    (
        "CyclicLR",
        {
            "base_lr": [0.1, 0.2],
            "max_lr": 0.5,
            "step_size_up": 3,
            "scale_fn": lambda x: 1 / x,
            "base_momentum": [0.7, 0.8],
        },
    ),
]
METRICS = [5, 4, 4, 4, 4, 3.9999, 4, 4, 3, 3, 3, 3, 3, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5]


def optimizer_of(library, kind):
    p, q = (library.nn.Parameter(library.zeros(1)) for _ in range(2))
    return getattr(library.optim, kind)([{"params": [p]}, {"params": [q], "lr": 0.3}], lr=0.1)


def numbers(optimizer):
    return [(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups]


def flat(rows):
    return [
        x
        for row in rows
        for group in row
        for v in group
        if v is not None
        for x in (v if isinstance(v, tuple) else (v,))
    ]


def rates(library, kind, name, options, count=30):
    """The numbers of each step, and what the schedule says of itself."""
    optimizer = optimizer_of(library, kind)
    if kind == "SGD":
        for group in optimizer.param_groups:
            group["momentum"] = 0.9
    scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
    seen, states = [numbers(optimizer)], [shown(scheduler)]
    for _ in range(19 if name == "OneCycleLR" else count):
        optimizer.step()
        scheduler.step()
        seen.append(numbers(optimizer))
        states.append(shown(scheduler))
    assert scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
    return seen, states


def shown(scheduler):
    """The state dict, numbers rounded."""
    return {key: rounded(value) for key, value in scheduler.state_dict().items()}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def named(x):
    """The id of a test: without addresses, for all processes collect the same tests."""
    return re.sub(" at 0x[0-9a-f]+", "", str(x))[:40]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=named)
def test_rates(kind, name, options):
    (mine, states), (theirs, expected) = (
        rates(library, kind, name, options) for library in (tracejit, torch)
    )
    assert states == expected
    assert flat(mine) == pytest.approx(flat(theirs), rel=1e-12, abs=1e-15)
    assert len(set(flat(mine))) > 2


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 0, "factor": 0.5, "cooldown": 2},
        {"patience": 1, "min_lr": [0.05, 0.2]},
        {"patience": 1, "threshold": 0.5, "threshold_mode": "abs"},
        {"patience": 3, "mode": "max"},
    ],
)
def test_plateau(options):
    seen, states = [], []
    for library in (tracejit, torch):
        optimizer = optimizer_of(library, "SGD")
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rows = []
        for metric in METRICS:
            scheduler.step(metric)
            rows.append(numbers(optimizer))
        states.append(shown(scheduler))
        seen.append(flat(rows))
    assert states[0] == states[1]
    assert seen[0] == pytest.approx(seen[1], rel=1e-12)
    assert len(set(seen[0])) > 2


def test_plateau_takes_a_tensor_and_refuses_nonsense():
    optimizer = optimizer_of(tracejit, "SGD")
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    scheduler.step(tracejit.tensor(1.0))
    scheduler.step(tracejit.tensor(math.inf))
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    with pytest.raises(ValueError, match="mode best is unknown!"):
        lr_scheduler.ReduceLROnPlateau(optimizer, mode="best")
    with pytest.raises(ValueError, match="Factor should be < 1.0."):
        lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.5)


def test_state_dict_continues():
    optimizer = optimizer_of(tracejit, "SGD")
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=9)
    for _ in range(4):
        scheduler.step()
    other = optimizer_of(tracejit, "SGD")
    resumed = lr_scheduler.CosineAnnealingLR(other, T_max=9)
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    for _ in range(4):
        scheduler.step()
        resumed.step()
        assert numbers(other) == numbers(optimizer)


def test_resuming_needs_initial_rates():
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(
            optim.SGD([tracejit.nn.Parameter(tracejit.zeros(1))], lr=1.0), 2, last_epoch=4
        )


def test_one_cycle_ends():
    optimizer = optimizer_of(tracejit, "SGD")
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=3, cycle_momentum=False)
    for _ in range(3):
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
    with pytest.raises(ValueError, match="total_steps OR"):
        lr_scheduler.OneCycleLR(optimizer, 1.0)
