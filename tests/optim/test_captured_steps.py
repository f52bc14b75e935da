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
    (optim.RAdam, {"lr": 0.01, "betas": (0.9, 0.99)}),
    (optim.RMSprop, {"lr": 0.01, "momentum": 0.5, "centered": True}),
    (optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    (optim.Adadelta, {"lr": 0.5, "weight_decay": 0.01}),
    (optim.Adamax, {"lr": 0.01}),
    (optim.NAdam, {"lr": 0.01, "weight_decay": 0.01}),
    (optim.Adafactor, {"lr": 0.1, "weight_decay": 0.01}),
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


class Counted(nn.Module):
    """A model that counts its steps and averages their number."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        self.step, self.average = 0, 0.0

    def forward(self, x):
        self.step += 1
        self.average = self.average * 0.9 + 0.1 * self.step
        return self.inner(x) * (1 + 1 / self.step)


def counted(script, count, kind, options, schedule, inside=False):
    """What training a counted model shows, and the step."""
    tracejit.manual_seed(0)
    model = Counted().double()
    optimizer = kind(model.parameters(), **options)
    scheduler = schedule(optimizer)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if inside:
            scheduler.step()
        return loss.detach()

    step, seen = script(step), []
    x = tracejit.arange(20.0, dtype=tracejit.float64).reshape(5, 4) / 20
    for _ in range(count):
        seen.append(step(x).item())
        if not inside:
            scheduler.step()
        seen += [model.step, model.average, *scheduler.get_last_lr()]
        assert type(model.step) is int and type(model.average) is float
        assert all(type(rate) is float for rate in scheduler.get_last_lr())
    return seen + [v for p in model.parameters() for v in p.flatten().tolist()], step


def both(*arguments, mode="graph"):
    plain, _ = counted(lambda step: step, *arguments)
    got, step = counted(lambda step: tracejit.script(step, mode=mode), *arguments)
    assert got == pytest.approx(plain, rel=1e-9, abs=1e-12)
    return step.report()


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_a_thousand_steps_are_one_program(mode):
    def schedule(optimizer):
        return optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=1000 + 1)

    report = both(1000, optim.AdamW, {"lr": 0.01}, schedule, mode=mode)
    assert (report.compiles, report.cache_hits, report.breaks) == (1, 999, []), report


SCHEDULES = {
    "StepLR": {"step_size": 4, "gamma": 0.5},
    "MultiStepLR": {"milestones": [2, 5, 5], "gamma": 0.5},
    "ConstantLR": {"factor": 0.5, "total_iters": 4},
    "LinearLR": {"start_factor": 0.25, "total_iters": 6},
    "ExponentialLR": {"gamma": 0.8},
    "CosineAnnealingLR": {"T_max": 7, "eta_min": 0.001},
    "OneCycleLR": {"max_lr": 0.05, "total_steps": 20},
    "PolynomialLR": {"total_iters": 9, "power": 2.0},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.05, "step_size_up": 4},
    "CosineAnnealingWarmRestarts": {"T_0": 5},
}


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_change_numbers(name, inside, kind):
    options = {"lr": 0.05, "momentum": 0.9} if kind is optim.SGD else {"lr": 0.05}

    def schedule(optimizer):
        return getattr(optim.lr_scheduler, name)(optimizer, **SCHEDULES[name])

    report = both(16, kind, options, schedule, inside)
    assert report.compiles <= (5 if inside else 1) and not report.breaks, report


STEPPED = [*CASES, (optim.Rprop, {"lr": 0.01}), (optim.ASGD, {"lr": 0.01}),
           (optim.Muon, {"lr": 0.01})]
EACH = pytest.mark.parametrize(("kind", "options"), STEPPED)


def trained(kind, options, count, capture):
    weight = nn.Parameter(tracejit.ones(3, 2, dtype=tracejit.float64))
    optimizer = kind([weight], **options)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9 ** (30 / count))

    def step(x):
        optimizer.zero_grad()
        ((x @ weight - 2) ** 2).mean().backward()
        optimizer.step()

    run = tracejit.script(step, mode="graph") if capture else step
    for k in range(count):
        run(tracejit.tensor([[1.0, -2.0, 0.01 * k]], dtype=tracejit.float64))
        schedule.step()
    return weight.flatten().tolist(), run.report() if capture else None


@EACH
def test_a_changing_rate_is_one_program(kind, options):
    one_program(kind, options, 30)


@pytest.mark.full
@EACH
def test_a_thousand_changing_rates_are_one_program(kind, options):
    one_program(kind, options, 1000)


def one_program(kind, options, count):
    got, report = trained(kind, options, count, True)
    want, _ = trained(kind, options, count, False)
    assert got == pytest.approx(want, rel=1e-9, abs=1e-12)
    assert (report.compiles, report.cache_hits, report.breaks) == (1, count - 1, []), report


def written(groups, rates):
    for group, rate in zip(groups, rates):
        group["lr"] = rate


def halved(optimizer):
    written(optimizer.param_groups, [group["lr"] * 0.5 for group in optimizer.param_groups])


def read(optimizer):
    return optimizer.param_groups[0]["lr"]


@pytest.mark.parametrize("use", [read, halved])
def test_a_rate_that_is_used_beside_the_optimizer(use):
    """By code that is found when the optimizer has read the rate."""
    weight = nn.Parameter(tracejit.ones(1))
    optimizer = optim.SGD([weight], lr=1.0)

    @tracejit.script
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return x * (use(optimizer) or 1)

    seen = []
    for _ in range(3):
        seen.append(step(tracejit.ones(1)).item())
        if use is read:
            halved(optimizer)
    assert seen == ([1.0, 0.5, 0.25] if use is read else [1.0, 1.0, 1.0])
    assert (read(optimizer), step.report().compiles) == (0.125, 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda group: group["betas"][0],
        lambda group: sum(group["betas"]),
        lambda group: next(v for v in group.values() if isinstance(v, tuple))[1],
    ],
)
def test_betas_that_are_used_beside_the_optimizer(use):
    """In a tuple nothing can stand for a number: it is guarded where other code may read it."""
    weight = nn.Parameter(tracejit.ones(1))
    optimizer = optim.AdamW([weight], lr=1.0)

    @tracejit.script
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return x * use(optimizer.param_groups[0])

    for k in range(5):
        optimizer.param_groups[0]["betas"] = (0.5 + k / 16, 0.75 + k / 32)
        assert step(tracejit.ones(1)).item() == use(optimizer.param_groups[0])


def test_dampening_leaves_no_trace_in_the_state_and_survives_loading():
    captured, plain = (
        Training(optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, mode)
        for mode in ("graph", None)
    )
    assert_same(captured, plain, 3)
    for training in (captured, plain):
        kept = training.optimizer.state_dict()
        assert {tuple(state) for state in kept["state"].values()} == {("momentum_buffer",)}
        training.optimizer.load_state_dict(kept)
    assert_same(captured, plain, 3)
    for training in (captured, plain):
        training.optimizer.state.clear()
    assert_same(captured, plain, 3)
    assert captured.step.report().breaks == []
