"""Averages of models against PyTorch: states along training, batch norms, schedules, errors."""

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")

from tests.optim.test_schedule_protocol_oracle import both  # noqa: E402

pytestmark = pytest.mark.oracle


def model(library):
    nn = library.nn
    made = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).double()
    rng = np.random.default_rng(0)
    for p in made.parameters():
        p.data.copy_(library.tensor(rng.normal(size=tuple(p.shape))))
    return made


AVERAGES = {
    "equal": lambda s: {},
    "with buffers": lambda s: {"use_buffers": True},
    "moving": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
    "moving one by one": lambda s: {"avg_fn": s.get_ema_avg_fn(0.8), "use_buffers": True},
    "equal, given": lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()},
    "of a user": lambda s: {"avg_fn": lambda average, p, count: average * 0.5 + p * 0.5},
}


def states(library, options, script=lambda step: step):
    net = model(library)
    average = library.optim.swa_utils.AveragedModel(net, **options(library.optim.swa_utils))
    optimizer = library.optim.SGD(net.parameters(), lr=0.1)
    rng, seen = np.random.default_rng(1), [repr(average)]

    def step(x):
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()
        average.update_parameters(net)

    step = script(step)
    for _ in range(5):
        step(library.tensor(rng.normal(size=(6, 3))))
        seen += [(key, v.numpy().copy()) for key, v in average.state_dict().items()]
    batches = [library.tensor(rng.normal(size=(6, 3))) for _ in range(3)]
    library.optim.swa_utils.update_bn([[batches[0], 1], *batches[1:]], average)
    seen += [(key, v.numpy().copy()) for key, v in average.state_dict().items()]
    return seen, step


def compared(a, b):
    """PyTorch has the weights of `get_swa_multi_avg_fn` in float32."""
    assert a[0] == b[0]
    for (key, mine), (name, theirs) in zip(a[1:], b[1:], strict=True):
        assert key == name and mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", AVERAGES)
def test_averages(name):
    mine, theirs = (states(library, AVERAGES[name])[0] for library in (tracejit, torch))
    compared(mine, theirs)
    captured, step = states(
        tracejit, AVERAGES[name], lambda step: tracejit.script(step, mode="graph")
    )
    compared(captured, theirs)
    assert (step.report().compiles, step.report().breaks) == (1, [])


@pytest.mark.parametrize(
    "options",
    [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"anneal_epochs": 0}],
    ids=str,
)
def test_schedule(options):
    def run(library):
        p, q = (library.nn.Parameter(library.zeros(1)) for _ in range(2))
        groups = [{"params": [p]}, {"params": [q], "lr": 0.3}]
        optimizer = library.optim.SGD(groups, lr=0.1)
        before = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        schedule = library.optim.swa_utils.SWALR(optimizer, [0.05, 0.02], **options)
        seen = []
        for k in range(14):
            optimizer.step()
            (before if k < 3 else schedule).step()
            seen += [group["lr"] for group in optimizer.param_groups]
        return seen, list(schedule.state_dict())

    (mine, noted), (theirs, expected) = both(run)
    assert mine[1] == theirs[1] and noted == expected
    assert mine[0] == pytest.approx(theirs[0], rel=1e-12)
    assert mine[0][-2:] == pytest.approx([0.05, 0.02])


REFUSED = [
    lambda s, o, m: s.SWALR(o, [0.1, 0.2]),
    lambda s, o, m: s.SWALR(o, 0.1, anneal_strategy="x"),
    lambda s, o, m: s.SWALR(o, 0.1, anneal_epochs=-1),
    lambda s, o, m: s.SWALR(o, 0.1, anneal_epochs=1.5),
    lambda s, o, m: s.AveragedModel(m, avg_fn=1, multi_avg_fn=2),
    lambda s, o, m: s.get_ema_avg_fn(2),
    lambda s, o, m: s.get_ema_multi_avg_fn(-1),
]


@pytest.mark.parametrize("make", REFUSED)
def test_refused(make):
    def run(library):
        net = library.nn.Linear(1, 1)
        make(library.optim.swa_utils, library.optim.SGD(net.parameters(), lr=0.1), net)

    mine, theirs = both(run)
    assert mine == theirs and "Error: " in mine[0]
