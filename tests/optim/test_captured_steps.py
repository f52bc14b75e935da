"""Whole training steps under `script`: one program for every optimizer and any learning rate."""

import pytest

import tracejit
from tracejit import nn, optim
from tracejit.nn import functional as F

CASES = [
    (optim.SGD, {"lr": 0.1}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    (optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    (optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    (optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    (optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
]


class Training:
    """A model, an optimizer with a schedule, and the step, captured or not."""

    def __init__(self, kind, options, mode=None, clip=1.0):
        tracejit.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
        model = self.model.double()
        optimizer = self.optimizer = kind(model.parameters(), **options)
        self.schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            return loss.detach()

        self.step = step if mode is None else tracejit.script(step, mode=mode, fullgraph=True)

    def run(self, count, seed=1):
        """Losses of some steps, on batches of several sizes."""
        tracejit.manual_seed(seed)
        losses = []
        for k in range(count):
            size = 5 + k % 2
            x = tracejit.randn(size, 4, dtype=tracejit.float64)
            losses.append(self.step(x, tracejit.randint(3, (size,))).item())
            self.schedule.step()
        return losses

    def values(self):
        return [v for p in self.model.parameters() for v in p.flatten().tolist()]


def assert_same(captured, plain, count=6):
    assert captured.run(count) == pytest.approx(plain.run(count), rel=1e-9)
    assert captured.values() == pytest.approx(plain.values(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=lambda x: str(x))
def test_one_program_takes_eager_steps(kind, options):
    captured, plain = Training(kind, options, "graph"), Training(kind, options)
    assert_same(captured, plain)
    report = captured.step.report()
    assert (report.compiles, report.cache_hits, report.breaks) == (1, 5, [])
    assert all(p.is_leaf and p.grad is not None for p in captured.model.parameters())


@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW])
def test_compiled(kind):
    captured, plain = Training(kind, {"lr": 0.05}, "compiled"), Training(kind, {"lr": 0.05})
    assert_same(captured, plain)
    assert captured.step.report().compiles == 1


def test_loading_a_state_dict_between_replays():
    captured, plain = (
        Training(optim.Adam, {"lr": 0.01}, "graph"),
        Training(optim.Adam, {"lr": 0.01}),
    )
    assert_same(captured, plain, 2)
    for training in (captured, plain):
        training.optimizer.load_state_dict(training.optimizer.state_dict())
        for kept in training.optimizer.state.values():
            kept["exp_avg"].mul_(-3)
    assert_same(captured, plain, 2)


def test_another_option_is_noticed():
    captured, plain = (
        Training(optim.AdamW, {"lr": 0.01}, "graph"),
        Training(optim.AdamW, {"lr": 0.01}),
    )
    assert_same(captured, plain, 2)
    for training in (captured, plain):
        training.optimizer.param_groups[0]["weight_decay"] = 0.5
        training.optimizer.param_groups[0]["betas"] = (0.5, 0.9)
    assert_same(captured, plain, 3)
    assert captured.step.report().compiles == 2


def test_parameters_added_later_are_trained():
    captured, plain = (
        Training(optim.AdamW, {"lr": 0.01}, "graph"),
        Training(optim.AdamW, {"lr": 0.01}),
    )
    for training in (captured, plain):
        training.model[0].weight.requires_grad_(False)
    assert_same(captured, plain, 2)
    for training in (captured, plain):
        training.model[0].weight.requires_grad_(True)
    before = plain.model[0].weight.tolist()
    assert_same(captured, plain, 2)
    assert plain.model[0].weight.tolist() != before


def test_a_one_cycle_schedule_does_not_recompile_momentum():
    runs = []
    for mode in (None, "graph"):
        training = Training(optim.SGD, {"lr": 0.1, "momentum": 0.9}, mode)
        training.schedule = optim.lr_scheduler.OneCycleLR(training.optimizer, 0.5, total_steps=10)
        runs.append((training, training.run(6)))
    assert runs[1][1] == pytest.approx(runs[0][1], rel=1e-9)
    assert runs[1][0].step.report().compiles == 1
