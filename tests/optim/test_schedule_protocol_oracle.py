"""Schedules around their formulas, as PyTorch has it: combined, resumed, set to an epoch, saved;
what they warn of and refuse."""

import copy
import warnings

import pytest

import tracejit

torch = pytest.importorskip("torch")

from tests.optim.test_lr_scheduler_oracle import (  # noqa: E402
    SCHEDULES,
    flat,
    named,
    numbers,
    optimizer_of,
    shown,
)

pytestmark = pytest.mark.oracle


def both(run):
    """What `run(library)` gives in both libraries: result or error, and warnings."""
    seen = []
    for library in (tracejit, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = run(library)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
        seen.append((result, [(w.category, str(w.message).partition(" Please open")[0])
                              for w in caught]))  # fmt: skip
    return seen


def sequential(s, o):
    parts = [s.LinearLR(o, 0.5, total_iters=3), s.CosineAnnealingLR(o, 6), s.StepLR(o, 2)]
    return s.SequentialLR(o, parts, [4, 9])


def chained(s, o):
    return s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)])


def nested(s, o):
    inner = s.SequentialLR(o, [s.ConstantLR(o, 0.5, 2), s.StepLR(o, 2)], [3])
    return s.SequentialLR(o, [inner, s.PolynomialLR(o, 5)], [6])


def restarts(s, o):
    first, then = s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingWarmRestarts(o, 5, 2)
    return s.SequentialLR(o, [first, then], [4])


COMBINED = [sequential, chained, nested, restarts]


@pytest.mark.parametrize("make", COMBINED)
def test_combined(make):
    def run(library, count=20):
        optimizer = optimizer_of(library, "SGD")
        scheduler = make(library.optim.lr_scheduler, optimizer)
        seen = [numbers(optimizer)]
        for _ in range(count):
            optimizer.step()
            scheduler.step()
            seen.append(numbers(optimizer))
        state = scheduler.state_dict()
        inner = [sorted(s) for s in state.pop("_schedulers")]
        return flat(seen), list(state), scheduler.last_epoch if make is not chained else 0, inner

    (mine, noted), (theirs, expected) = both(run)
    assert mine[1:] == theirs[1:] and noted == expected
    assert mine[0] == pytest.approx(theirs[0], rel=1e-10, abs=1e-15)
    assert len(set(mine[0])) > 4


@pytest.mark.parametrize("make", COMBINED)
def test_combined_continue_from_their_state_dict(make):
    def run(library, state=None):
        optimizer = optimizer_of(library, "SGD")
        scheduler = make(library.optim.lr_scheduler, optimizer)
        if state is not None:
            scheduler.load_state_dict(state[0])
            for group, rate in zip(optimizer.param_groups, state[1]):
                group["lr"] = rate
        for _ in range(5):
            optimizer.step()
            scheduler.step()
        return [group["lr"] for group in optimizer.param_groups], scheduler.state_dict()

    rate, state = run(torch)
    saved = copy.deepcopy((state, rate))
    assert run(tracejit, copy.deepcopy(saved))[0] == pytest.approx(run(torch, saved)[0], rel=1e-10)


@pytest.mark.parametrize("epoch", [0, 1, 3, 4, 6])
@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=named)
def test_resumed(name, options, epoch):
    def run(library):
        optimizer = optimizer_of(library, "Adam")
        for group in optimizer.param_groups:
            group |= {"initial_lr": 0.7, "max_lr": 0.9, "min_lr": 0.01, "max_momentum": 0.9}
            group |= {"base_momentum": 0.7}
        scheduler = getattr(library.optim.lr_scheduler, name)(
            optimizer, last_epoch=epoch, **options
        )
        seen = [numbers(optimizer)]
        for _ in range(4):
            optimizer.step()
            scheduler.step()
            seen.append(numbers(optimizer))
        return flat(seen)

    (mine, noted), (theirs, expected) = both(run)
    assert noted == expected
    assert mine == pytest.approx(theirs, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=named)
def test_set_to_an_epoch(name, options):
    def run(library):
        optimizer = optimizer_of(library, "Adam")
        scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, **options)
        optimizer.step()
        seen = []
        for epoch in (3, 7, None, 2, 11, None):
            scheduler.step(epoch)
            seen.append(numbers(optimizer))
        return flat(seen), scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]

    (mine, noted), (theirs, expected) = both(run)
    assert noted == expected and mine[1] and theirs[1]
    assert mine[0] == pytest.approx(theirs[0], rel=1e-12, abs=1e-15)


def early(library):
    scheduler = library.optim.lr_scheduler.StepLR(optimizer_of(library, "SGD"), 2)
    scheduler.step()
    scheduler.step()


def overridden(library):
    optimizer = optimizer_of(library, "SGD")
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    scheduler.step()


def asked(library):
    optimizer = optimizer_of(library, "SGD")
    return library.optim.lr_scheduler.LinearLR(optimizer, 0.5).get_lr()


def second(library):
    optimizer = optimizer_of(library, "SGD")
    first = library.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    first.step()
    library.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).step()


def missing(library):
    library.optim.lr_scheduler.LRScheduler(optimizer_of(library, "SGD"))


@pytest.mark.parametrize("run", [early, overridden, asked, second, missing])
def test_warnings(run):
    mine, theirs = both(run)
    assert mine == theirs
    assert mine[1] or run in (second, missing)


class Weight:
    """A callable with a state."""

    def __init__(self):
        self.k = 3

    def __call__(self, epoch):
        return self.k**-epoch


REFUSED = [
    lambda s, o, other: s.StepLR(3, 2),
    lambda s, o, other: s.StepLR(o, 2, last_epoch=3),
    lambda s, o, other: s.LambdaLR(o, [lambda e: 1]),
    lambda s, o, other: s.MultiplicativeLR(o, [lambda e: 1]),
    lambda s, o, other: s.ConstantLR(o, factor=2),
    lambda s, o, other: s.LinearLR(o, start_factor=2),
    lambda s, o, other: s.LinearLR(o, end_factor=2),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 2.5),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 2, 0),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 2, 1.5),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 2, eta_min="a"),
    lambda s, o, other: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    lambda s, o, other: s.CyclicLR(3, 0.1, 0.2),
    lambda s, o, other: s.CyclicLR(o, [0.1], 0.2),
    lambda s, o, other: s.CyclicLR(o, 0.1, [0.2]),
    lambda s, o, other: s.CyclicLR(o, 0.1, 0.2, mode="x"),
    lambda s, o, other: s.CyclicLR(other, 0.1, 0.2),
    lambda s, o, other: s.ChainedScheduler([]),
    lambda s, o, other: s.ChainedScheduler([3], o),
    lambda s, o, other: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    lambda s, o, other: s.SequentialLR(o, [], []),
    lambda s, o, other: s.SequentialLR(o, [s.StepLR(o, 2)], [3]),
    lambda s, o, other: s.SequentialLR(o, [s.StepLR(o, 2), 3], [2]),
    lambda s, o, other: s.SequentialLR(o, [s.StepLR(o, 2), s.ReduceLROnPlateau(o)], [2]),
    lambda s, o, other: s.OneCycleLR(3, 0.1, 5),
    lambda s, o, other: s.OneCycleLR(o, 0.1),
    lambda s, o, other: s.OneCycleLR(o, 0.1, total_steps=0),
    lambda s, o, other: s.OneCycleLR(o, 0.1, total_steps=2.0),
    lambda s, o, other: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
    lambda s, o, other: s.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=0),
    lambda s, o, other: s.OneCycleLR(o, 0.1, 5, pct_start=2),
    lambda s, o, other: s.OneCycleLR(o, 0.1, 5, pct_start=1),
    lambda s, o, other: s.OneCycleLR(o, 0.1, 5, anneal_strategy="x"),
    lambda s, o, other: s.OneCycleLR(other, 0.1, 5),
    lambda s, o, other: s.OneCycleLR(o, [0.1], 5),
    lambda s, o, other: s.ReduceLROnPlateau(3),
    lambda s, o, other: s.ReduceLROnPlateau(o, mode="x"),
    lambda s, o, other: s.ReduceLROnPlateau(o, factor=1),
    lambda s, o, other: s.ReduceLROnPlateau(o, threshold_mode="x"),
    lambda s, o, other: s.ReduceLROnPlateau(o, min_lr=[1]),
    lambda s, o, other: s.SequentialLR(o, [s.StepLR(o, 2), s.StepLR(o, 2)], [2]).step(3),
]


@pytest.mark.parametrize("make", REFUSED)
def test_refused(make):
    def run(library):
        schedules = library.optim.lr_scheduler
        make(schedules, optimizer_of(library, "SGD"), optimizer_of(library, "Adagrad"))

    mine, theirs = both(run)
    assert mine == theirs and "Error: " in mine[0]


def test_schedules_of_another_optimizer_are_refused():
    optimizer, other = optimizer_of(tracejit, "SGD"), optimizer_of(tracejit, "SGD")
    schedules = tracejit.optim.lr_scheduler
    mixed = [schedules.StepLR(optimizer, 2), schedules.StepLR(other, 2)]
    with pytest.raises(ValueError, match=r"^SequentialLR .* scheduler StepLR at index 1 has SGD"):
        schedules.SequentialLR(optimizer, mixed, [2])
    with pytest.raises(ValueError, match="which is different from SGD.$"):
        schedules.ChainedScheduler(mixed)


@pytest.mark.parametrize("old", [False, True])
def test_classes_of_users(old):
    """Subclasses that read what the base class keeps, under both of its names."""

    def run(library):
        schedules = library.optim.lr_scheduler
        base = schedules._LRScheduler if old else schedules.LRScheduler

        class Warmup(base):
            def __init__(self, optimizer, steps, last_epoch=-1):
                self.steps = steps
                super().__init__(optimizer, last_epoch)

            def get_lr(self):
                part = min(1.0, self._step_count / self.steps)
                return [lr * part / (1 + self.last_epoch) for lr in self.base_lrs]

        optimizer = optimizer_of(library, "SGD")
        scheduler, seen = Warmup(optimizer, 4), []
        for _ in range(6):
            optimizer.step()
            scheduler.step()
            seen.append(scheduler.get_last_lr())
        assert isinstance(scheduler, schedules.LRScheduler)
        return seen, shown(scheduler)

    mine, theirs = both(run)
    assert mine == theirs


def test_callables_with_a_state_are_saved():
    def run(library):
        schedules, states = library.optim.lr_scheduler, []
        optimizer = optimizer_of(library, "SGD")
        options = {"base_lr": 0.1, "max_lr": 0.3, "scale_fn": Weight(), "cycle_momentum": False}
        for make in (
            lambda: schedules.LambdaLR(optimizer, [Weight(), lambda e: 2]),
            lambda: schedules.MultiplicativeLR(optimizer, [Weight(), lambda e: 2]),
            lambda: schedules.CyclicLR(optimizer, **options),
        ):
            scheduler, other = make(), make()
            functions = getattr(scheduler, "lr_lambdas", None) or [scheduler._scale_fn_custom]
            functions[0].k = 7
            other.load_state_dict(scheduler.state_dict())
            functions = getattr(other, "lr_lambdas", None) or [other._scale_fn_custom]
            states.append((list(scheduler.state_dict()), functions[0].k))
        return states

    mine, theirs = both(run)
    assert mine == theirs and mine[0][0][1] == 7


def test_rates_that_are_tensors_are_written_in_place():
    def run(library):
        rate = library.tensor(0.5)
        optimizer = library.optim.SGD([library.nn.Parameter(library.zeros(1))], lr=rate)
        scheduler = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        scheduler.step()
        last = [r.item() for r in scheduler.get_last_lr()]
        return rate.item(), last, scheduler.base_lrs[0].item()

    mine, theirs = both(run)
    assert mine == theirs == ((0.25, [0.25], 0.5), [])
